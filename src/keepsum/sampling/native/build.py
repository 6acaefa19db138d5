"""Compile the kernels into shared libraries, with the compiler at hand.

``python build.py`` in this folder, or ``python -m keepsum.sampling.native.build``, compiles what is missing or stale.
Nothing else of the package is needed: the build hook runs this file where the package is not yet installed. ``CC`` may
name another compiler; ``CFLAGS`` and ``LDFLAGS`` are not read.

On x86-64 there are two libraries of the same code, one of them for processors of level v3 (from 2013 on), which
``core/kernel.py`` chooses where it can. Products are rounded before they are added, and nothing is reordered, so that
both give the same numbers.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

if sys.platform != "win32":
    import fcntl

FOLDER = Path(__file__).resolve().parent
# Operations are those that are written, in their order, whatever options ``CC`` brings along: these come behind them.
AS_WRITTEN = (
    "-fno-fast-math",
    "-fno-unsafe-math-optimizations",
    "-fno-finite-math-only",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fsigned-zeros",
    "-ffp-contract=off",
)
FLAGS = ("-std=c11", "-O3", *AS_WRITTEN, "-fno-math-errno", "-fvisibility=hidden", "-fPIC", "-shared")
# GCC 10 and older do not know x86-64-v3 by its name; Haswell was the first processor of that level.
LEVELS: dict[str, tuple[str, ...]] = {"baseline": ("-march=x86-64",), "v3": ("-march=haswell", "-mtune=generic")}
COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang"  # a package with a C compiler, for machines that have none
OLDEST_GLIBC = 17  # 2.17 of 2012: what the oldest systems have that installers still know


def sources(folder: Path = FOLDER) -> list[Path]:
    """The files that a library is made of."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h"))


def digest_of(folder: Path = FOLDER) -> str:
    """A name for the text of all sources and for how they are compiled, which every library carries."""
    text = hashlib.sha256(repr((FLAGS, LEVELS)).encode())
    for path in sources(folder):
        content = path.read_bytes()
        text.update(f"{path.name} {len(content)}\n".encode() + content)
    return text.hexdigest()


def levels() -> dict[str, tuple[str, ...]]:
    """The libraries that this kind of processor has, and the flags of each."""
    return LEVELS if platform.machine().lower() in ("x86_64", "amd64") else {"baseline": ()}


def library_path(level: str, folder: Path = FOLDER) -> Path:
    """Where a library is."""
    return folder / "built" / f"kernels-{level}.so"  # a folder of its own: beside Python's files it would be a module


def compiler() -> list[str] | None:
    """The compiler at hand: that of ``CC``, which may have options, or one in the path."""
    stated = os.environ.get("CC", "")
    try:
        named = shlex.split(stated)
    except ValueError as error:
        sys.exit(f"keepsum: CC={stated} is not a command: {error}")
    if named and not shutil.which(named[0]):
        sys.exit(f"keepsum: CC={stated} names a compiler that is not there. Correct CC, or unset it")
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    return named or ([found] if found else None)


def zig() -> list[str]:
    """The compiler of the package ``ziglang``; it takes any system's library, so here an old one."""
    if find_spec(ZIG) is None:
        sys.exit(f"keepsum: there is no C compiler ({', '.join(COMPILERS)}). Install one, or: pip install {ZIG}")
    glibc = platform.libc_ver()[0] == "glibc"
    target = ["-target", f"{platform.machine()}-linux-gnu.2.{OLDEST_GLIBC}"] if glibc else ["-mcpu=baseline"]
    return [sys.executable, "-m", ZIG, "cc", *target]


def build_library(target: Path, *flags: str, folder: Path = FOLDER) -> None:
    """Compile a library: whole, or not at all."""
    digest = f'-DKEEPSUM_SOURCES="keepsum-sources:{digest_of(folder)}"'
    files = [str(path) for path in sources(folder) if path.suffix == ".c"]
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    command = compiler()
    if command is None:  # whose names of processors are its own, and which takes one for tuning as another target
        tuned = [flag for flag in flags if not flag.startswith("-mtune")]
        command, flags = zig(), tuple(flag.replace("x86-64", "x86_64") for flag in tuned)
    command = [*command, *FLAGS, *flags, digest, *files, "-o", str(unfinished)]
    try:
        subprocess.run(command, check=True)  # noqa: S603
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def is_fresh(library: Path, folder: Path = FOLDER) -> bool:
    """Whether a library is there, whole, for this kind of machine, and made of the sources as they are."""
    return library.is_file() and stated_digest(library) == digest_of(folder)


def stated_digest(library: Path) -> str | None:
    """The digest of the sources that a library was compiled from; none where it is not whole, or of another machine."""
    content = library.read_bytes()
    found = re.search(rb"keepsum-sources:([0-9a-f]{64})", content)
    return found[1].decode() if found and runs_here(content) else None


def runs_here(content: bytes) -> bool:
    """Whether a library in the format of Linux (ELF) is of the same kind as Python itself, and whole.

    The system would load the first part of a library, and end the process where it reads behind its end, which is where
    the table of its sections is.
    """
    if sys.platform != "linux":
        return True
    with Path(sys.executable).open("rb") as python:
        kind = python.read(20)
    if len(content) < 64 or (content[:6], content[18:20]) != (kind[:6], kind[18:20]):
        return False
    (start,), (size, count) = struct.unpack_from("=Q", content, 40), struct.unpack_from("=2H", content, 58)
    return len(content) >= int(start + size * count)


def build(folder: Path = FOLDER) -> list[Path]:
    """Compile the libraries that are missing or stale, side by side; all of them are returned."""
    built = {library_path(level, folder): flags for level, flags in levels().items()}
    with only_one(folder), ThreadPoolExecutor() as compilers:
        started = []
        for path, flags in built.items():
            if not is_fresh(path, folder):
                print(f"keepsum: compiling {path.name}", flush=True)
                started.append(compilers.submit(build_library, path, *flags, folder=folder))
    for compilation in started:
        compilation.result()
    return list(built)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """One process compiles; another waits, and finds the libraries made."""
    if sys.platform == "win32":
        yield
        return
    libraries = folder / "built"
    libraries.mkdir(exist_ok=True)
    handle = os.open(libraries, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def platform_tag(libraries: list[Path]) -> str:
    """The platform of a wheel with these libraries: the oldest glibc that has every function that they call."""
    named = b"".join(path.read_bytes() for path in libraries)
    minors = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", named)]
    if b"GLIBC_ABI_DT_RELR" in named:  # a kind of relocations
        minors.append(36)
    if not minors or sys.platform != "linux":
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"manylinux_2_{max(OLDEST_GLIBC, *minors)}_{platform.machine()}"


if __name__ == "__main__":
    build()
