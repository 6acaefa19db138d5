import resource
import subprocess
import sys

import pytest

import keepsum as ks
import keepsum_shell
from keepsum import _memory as memory
from keepsum.cli import app, reporting
from support import mostly_audit

PLAN = ["plan", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "1"]


def test_a_limit_too_small_to_load_the_library_is_one_sentence():
    """With 300 MB of address space, loading the linear algebra library hung."""
    limit = 300 * 10**6
    done = subprocess.run(
        [sys.executable, "-c", "from keepsum_shell import main; main()", "--version"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 7
    assert done.stderr == (
        b"keepsum: The memory limit of this shell must be at least 600 MB, got 300 MB. Raise it (ulimit -v).\n"
    )


def test_a_library_that_cannot_be_loaded_under_a_limit(monkeypatch, capsys):
    class Loading:
        def find_spec(self, name, *_):
            if name == "keepsum.cli.app":
                raise ImportError("failed to map segment from shared object")

    monkeypatch.delitem(sys.modules, "keepsum.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Loading(), *sys.meta_path])
    monkeypatch.setattr(keepsum_shell, "memory_limit", lambda: 10**10)
    assert keepsum_shell._run(keepsum_shell.Stop.__new__(keepsum_shell.Stop)) == 7
    assert "Memory ran out while loading: this shell allows 10000 MB." in capsys.readouterr().err
    monkeypatch.setattr(keepsum_shell, "memory_limit", lambda: None)
    with pytest.raises(ImportError):
        keepsum_shell._run(keepsum_shell.Stop.__new__(keepsum_shell.Stop))


@mostly_audit("problem", [MemoryError(), ImportError("libllvm"), RuntimeError("can't start new thread")])
def test_running_out_of_memory_is_not_blamed_on_a_small_table(monkeypatch, tmp_path, capsys, problem):
    def plan(*_, **__):
        raise problem

    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("county,n\nA,1\nB,2\n")
    monkeypatch.setattr(reporting, "compile_plan", plan)
    monkeypatch.setattr(memory, "_process", lambda: 5 * 10**6)
    assert app.run(PLAN) == 7
    message = "keepsum: Memory ran out: 5 MB of what this shell allows is left. Raise its limit (ulimit -v).\n"
    assert capsys.readouterr().err.endswith(message)
    monkeypatch.setattr(memory, "_process", lambda: None)
    if isinstance(problem, MemoryError):
        assert app.run(PLAN) == 7
        assert "Memory ran out. Drop an axis" in capsys.readouterr().err
    else:  # a defect, not a lack of memory
        with pytest.raises(type(problem)):
            app.run(PLAN)


def test_a_table_too_large_for_a_limit_says_which(monkeypatch):
    monkeypatch.setattr(memory, "_machine", lambda: 10**12)
    monkeypatch.setattr(memory, "_container", lambda: None)
    monkeypatch.setattr(memory, "_process", lambda: 5 * 10**6)
    with pytest.raises(
        ks.TooMuchWorkError, match=r"5 MB is available.*raise the memory limit of this shell \(ulimit -v\)"
    ):
        memory.check_room(10**6, "A table of 1,000,000 cells", 200)
    monkeypatch.setattr(memory, "_machine", lambda: 5 * 10**6)
    monkeypatch.setattr(memory, "_process", lambda: None)
    with pytest.raises(ks.TooMuchWorkError, match="or use a larger machine"):
        memory.check_room(10**6, "A table of 1,000,000 cells", 200)
