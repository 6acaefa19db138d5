"""The native library: fresh, or a clear error; the build that a processor runs; and installations of every kind."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.sampling.core import kernel
from keepsum.sampling.native import build
from support import HANG

REPO = Path(__file__).parents[3]
SAMPLE = (
    "import keepsum as ks; keep = ks.Invariants.subsets(3, [[0, 1]]); "
    "print(ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(2).shape)"
)
BUILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1] + "/native")
import build
build.build_library(build.library_path("baseline", Path(sys.argv[2])), folder=Path(sys.argv[2]))
"""
V3 = [level for level in build.levels() if level == "v3"]


@pytest.fixture
def native(tmp_path):
    """A copy of the package, whose native folder is returned."""
    package = Path(ks.__file__).parent
    copy = shutil.copytree(package, tmp_path / "site" / "keepsum", ignore=shutil.ignore_patterns("__pycache__"))
    return copy / "sampling" / "native"


def sample(native, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(native), "PYTHONPATH": str(native.parents[2]), **variables}
    command = [sys.executable, "-c", SAMPLE]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG, check=False)


def test_a_missing_library_says_what_to_run(native):
    assert sample(native).stdout.strip() == "(2, 3)"
    build.library_path("baseline", native).unlink()
    done = sample(native)
    assert done.returncode == 1
    assert re.search(
        r"InstallationError: .*kernels-baseline.so is missing. Run make .* install Keepsum again\.", done.stderr
    )


def test_a_stale_library_says_what_to_run(native):
    with (native / "forced_sums.c").open("a", encoding="utf-8") as file:
        file.write("/* changed */\n")
    done = sample(native)
    assert done.returncode == 1
    assert re.search(r"InstallationError: .* C files of the package, which have changed. Run make ", done.stderr)
    header = (native / "forced_sums.c").read_text(encoding="utf-8").removesuffix("/* changed */\n")
    (native / "forced_sums.c").write_text(header, encoding="utf-8")
    assert sample(native).returncode == 0


@pytest.mark.parametrize("share", [0, 0.5, 0.8, 0.95, 0.999])
def test_a_part_of_a_library_is_an_error_and_is_built_again(native, share):
    """The system would end the process where it reads behind the end of the file."""
    path = build.library_path("baseline", native)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert not build.is_fresh(path, native)
    done = sample(native)
    assert done.returncode == 1
    assert re.search(r"InstallationError: .* is not a library of kernels .*, or only a part of one\. Run ", done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="the format of libraries is another one")
def test_a_library_of_another_processor_is_an_error_and_is_built_again(native):
    path = build.library_path("baseline", native)
    content = bytearray(path.read_bytes())
    content[18:20] = b"\xf3\x00"  # RISC-V
    path.write_bytes(content)
    assert not build.is_fresh(path, native)
    assert "is not a library of kernels for this machine" in sample(native).stderr


def test_a_library_that_is_named_must_be_of_the_same_sources(native, tmp_path):
    """Whether it is stale, something else, or not there: it would make other draws."""
    built = build.library_path("baseline", native)
    other = shutil.copy(built, tmp_path / "other.so")
    assert sample(native, KEEPSUM_KERNELS=str(other)).stdout.strip() == "(2, 3)"
    other.write_bytes(built.read_bytes().replace(build.digest_of(native).encode(), b"0" * 64))
    assert "which have changed" in sample(native, KEEPSUM_KERNELS=str(other)).stderr
    other.write_text("not a library", encoding="utf-8")
    assert "is not a library of kernels" in sample(native, KEEPSUM_KERNELS=str(other)).stderr
    assert "InstallationError" in sample(native, KEEPSUM_KERNELS="no-such-build").stderr


def test_other_flags_make_a_library_stale(monkeypatch):
    path = build.library_path("baseline")
    assert build.is_fresh(path)
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-fno-inline"))
    assert not build.is_fresh(path)


def code(library):
    """The machine code of a library."""
    done = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", str(library)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    return done.stdout.partition("Disassembly")[2]


@pytest.mark.audit
@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("objdump")), reason="GCC and objdump are needed")
def test_options_in_cc_change_nothing_about_numbers(native, monkeypatch):
    """Of all of them the machine code is the same; without the options that undo them it would not be."""
    loose = ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only -fno-signed-zeros")
    monkeypatch.setattr(build, "sources", lambda _: [native / "general_factors.c", native / "library.c"])
    target = native / "built" / "kernels-other.so"

    def compiled(options):
        monkeypatch.setenv("CC", f"gcc {options}")
        build.build_library(target, *build.levels()["baseline"], folder=native)
        return code(target)

    plain = compiled("")
    assert all(compiled(options) == plain for options in loose)
    if platform.machine() == "x86_64":
        assert compiled("-march=native") == plain
    monkeypatch.setattr(build, "FLAGS", tuple(flag for flag in build.FLAGS if flag not in build.AS_WRITTEN))
    assert compiled("-funsafe-math-optimizations") != plain


@pytest.mark.parametrize("command", ["no-such-compiler -O2", "gcc '"])
def test_a_compiler_that_is_not_there_is_named(native, monkeypatch, command):
    monkeypatch.setenv("CC", command)
    with pytest.raises(SystemExit, match=re.escape(f"CC={command}")):
        build.build_library(native / "built" / "kernels-other.so", folder=native)
    assert not list(native.rglob("kernels-other*"))


def test_a_build_that_is_killed_leaves_the_library_that_was_there(native, tmp_path):
    """And one that runs at the same time does not write to its file."""
    path = build.library_path("baseline", native)
    before = path.read_bytes()
    slow = tmp_path / "slow compiler"
    slow.write_text('#!/bin/sh\nfor last; do :; done\necho half > "$last"\nexec sleep 3600\n', encoding="utf-8")
    slow.chmod(0o755)
    command = [sys.executable, "-c", BUILD, str(build.FOLDER.parent), str(native)]
    running = [subprocess.Popen(command, env={**os.environ, "CC": f"'{slow}'"}, start_new_session=True) for _ in "ab"]
    parts = {Path(f"{path}.{process.pid}") for process in running}
    try:
        while not all(part.exists() for part in parts):
            assert all(process.poll() is None for process in running)
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert path.read_bytes() == before
    assert set(path.parent.glob(f"{path.name}.*")) == parts
    assert sample(native).stdout.strip() == "(2, 3)"


def test_building_again_makes_a_stale_library_fresh(native):
    path = build.library_path("baseline", native)
    with (native / "library.c").open("a", encoding="utf-8") as file:
        file.write("/* changed */\n")
    assert not build.is_fresh(path, native)
    build.build_library(path, "-O1", folder=native)
    assert build.is_fresh(path, native)


def test_a_fresh_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(build, "build_library", lambda *_, **__: pytest.fail("nothing has changed"))
    assert build.build() == [build.library_path(level) for level in build.levels()]


def test_of_builds_that_start_together_one_compiles(native, tmp_path, need):
    """``make`` compiles while packages are fetched, and the installation of Keepsum itself wants to, too."""
    need("cc")
    for level in build.levels():
        build.library_path(level, native).unlink()
    runs, compiler = tmp_path / "runs", tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\necho >>'{runs}'\nexec cc \"$@\" -O0\n", encoding="utf-8")
    compiler.chmod(0o755)
    environment = {**os.environ, "CC": str(compiler)}
    running = [subprocess.Popen([sys.executable, native / "build.py"], env=environment) for _ in "abc"]
    assert [process.wait(HANG) for process in running] == [0, 0, 0]
    assert runs.read_text(encoding="utf-8").count("\n") == len(build.levels())
    assert all(build.is_fresh(build.library_path(level, native), native) for level in build.levels())


def test_a_build_that_fails_leaves_no_library(native):
    (native / "broken.c").write_text("not C\n", encoding="utf-8")
    target = native / "built" / "kernels-other.so"
    with pytest.raises(subprocess.CalledProcessError):
        build.build_library(target, folder=native)
    assert not list(native.rglob("kernels-other*"))


@pytest.mark.parametrize("level", build.levels())
def test_every_build_that_this_processor_runs_draws(native, level):
    if level == "v3" and not kernel.load(build.library_path("baseline")).keepsum_runs_v3():
        pytest.skip("this processor is older")
    assert sample(native, KEEPSUM_KERNELS=level).stdout.strip() == "(2, 3)"


@pytest.mark.parametrize("level", V3)
def test_the_faster_build_is_chosen_where_the_processor_runs_it(level, monkeypatch):
    monkeypatch.delenv("KEEPSUM_KERNELS", raising=False)
    chosen = Path(kernel.library.__wrapped__()._name)
    runs = kernel.load(build.library_path("baseline")).keepsum_runs_v3()
    assert chosen == build.library_path("v3" if runs else "baseline")


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the system does not list what its processor has")
@pytest.mark.parametrize("level", V3)
def test_the_processor_is_judged_as_linux_does(level):
    text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    flags = set(re.search(r"^flags\s*: (.*)$", text, flags=re.MULTILINE)[1].split())
    needed = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "sse4_2", "ssse3", "popcnt", "xsave"}
    assert bool(kernel.load(build.library_path("baseline")).keepsum_runs_v3()) == (needed <= flags)


def test_the_oldest_glibc_of_a_wheel_is_that_of_the_functions_it_calls(tmp_path):
    path = tmp_path / "kernels.so"
    for content, minor in (
        (b"", None),
        (b"GLIBC_2.2.5", 17),
        (b"GLIBC_2.4 GLIBC_2.29", 29),
        (b"GLIBC_2.17", 17),
        (b"GLIBC_2.4 GLIBC_ABI_DT_RELR", 36),
    ):
        path.write_bytes(content)
        tag = build.platform_tag([path])
        if minor is not None and sys.platform == "linux":
            assert tag == f"manylinux_2_{minor}_{platform.machine()}"


# -- installations ----------------------------------------------------------------------------------


def pip(python, *arguments, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CC"))}
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, env={**environment, **variables}, timeout=HANG, check=True)


def copied(tmp_path):
    """The sources alone, as in an sdist."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", ".venv*", ".git", "out", "dist", "*.pyc")
    return shutil.copytree(REPO, tmp_path / "clone", ignore=ignored)


def environment_of(python, folder):
    subprocess.run([python, "-m", "venv", str(folder)], timeout=HANG, check=True)
    return folder / "bin" / "python"


def draws(python, **variables):
    command = [str(python), "-c", SAMPLE]
    environment = {"HOME": "/nonexistent", "PATH": "", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG, check=True, cwd="/")
    assert done.stdout.strip() == "(2, 3)"


@pytest.mark.audit
@pytest.mark.parametrize("editable", [False, True])
def test_without_a_compiler_the_package_index_has_one(tmp_path, editable):
    """No compiler is in the path: the hook asks for ziglang, and what it compiles draws."""
    clone, python = copied(tmp_path), environment_of(sys.executable, tmp_path / "venv")
    path = str(tmp_path / "venv" / "bin")
    assert all(shutil.which(name, path=path) is None for name in build.COMPILERS)
    pip(
        python,
        "install",
        "--constraint",
        str(clone / "constraints.txt"),
        *(["--editable"] if editable else []),
        str(clone),
        PATH=path,
    )
    draws(python)
    found = list(tmp_path.rglob("kernels-*.so"))
    assert found
    assert not any(
        minor > 17 for path in found for minor in map(int, re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes()))
    )


PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.mark.audit
def test_the_wheel_works_in_every_python_at_hand_and_beside_the_newest_numba(tmp_path):
    """Made once; installed where there is no compiler, it releases and verifies."""
    clone = copied(tmp_path)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(clone))
    (wheel,) = tmp_path.glob("*.whl")
    assert re.fullmatch(r"keepsum-.*-py3-none-(manylinux_2_\d+_\w+|macosx_\w+|linux_\w+)\.whl", wheel.name)
    tried = 0
    for version in PYTHONS:
        beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python"))  # as pyenv keeps them
        found = next((p for p in (f"python{version}", sys.executable, *beside) if _is(p, version)), None)
        if found is None:
            continue
        tried += 1
        python = environment_of(found, tmp_path / version)
        pip(
            python,
            "install",
            f"{wheel}[cli]",
            *(["numba"] if version in ("3.11", "3.12", "3.13") else []),
            PATH=str(python.parent),
        )
        draws(python)
        released(python, tmp_path / f"release-{version}")
    assert tried


def _is(python, version):
    command = [python, "-c", "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    except OSError:
        return False
    return done.stdout.strip() == version


def released(python, folder):
    """A release by the command, and its verification."""
    table = REPO / "examples" / "children.csv"
    run = {
        "env": {"HOME": str(folder), "PATH": str(python.parent)},
        "timeout": HANG,
        "check": True,
        "capture_output": True,
    }
    command = str(python.parent / "keepsum")
    options = ["--count", "n", "--keep", "county", "--epsilon", "0.25", "--yes", "--output", f"{folder}/"]
    subprocess.run([command, "release", str(table), *options], **run)
    subprocess.run([command, "verify", f"{folder}/"], **run)


@pytest.mark.audit
def test_a_folder_of_wheels_installs_without_a_network_and_a_changed_one_does_not(tmp_path):
    clone = copied(tmp_path)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(clone))
    (wheel,) = tmp_path.glob("*.whl")
    folder = tmp_path / "offline"
    script = [str(clone / "scripts" / "offline"), sys.executable, str(wheel), str(folder)]
    subprocess.run(script, cwd=clone, timeout=HANG, check=True, capture_output=True)
    listed = (folder / "requirements.txt").read_text()
    assert listed.count("--hash=sha256:") == len(list(folder.glob("*.whl"))) > 10
    python = environment_of(sys.executable, tmp_path / "venv")
    install = [
        "install",
        "--no-index",
        "--find-links",
        str(folder),
        "--require-hashes",
        "-r",
        f"{folder}/requirements.txt",
    ]
    pip(python, *install, PIP_CONFIG_FILE=os.devnull)
    released(python, tmp_path / "release")
    with (folder / wheel.name).open("ab") as changed:
        changed.write(b"\0")
    with pytest.raises(subprocess.CalledProcessError):
        pip(python, *install, "--force-reinstall", PIP_CONFIG_FILE=os.devnull)
