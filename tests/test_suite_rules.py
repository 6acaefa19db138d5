"""What every test obeys: none depends on how busy the machine is, and what takes long has its mark."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parent
REPO = TESTS.parent
CLOCKS = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic|default_timer)(?:_ns)?\b"
    r"|\btime\.time(?:_ns)?\(|\bsignal\.(?:alarm|setitimer)\b|\bfaulthandler\.dump_traceback_later\b"
)
WAITS = {"join", "wait", "result", "acquire", "communicate", "settimeout", "poll", "select"}


def files() -> list[Path]:
    return sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


def clocks(text: str) -> list[str]:
    """Every clock that a test reads, also in code for another process; gzip writes the time unless told."""
    packed = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    packed = [node for node in packed if ast.unparse(node.func) in ("gzip.compress", "gzip.GzipFile")]
    undated = [ast.unparse(node) for node in packed if "mtime" not in {keyword.arg for keyword in node.keywords}]
    return CLOCKS.findall(text) + undated


def limits(text: str) -> list[str]:
    """Every wait with a limit that is not HANG, by name or by place, and every sleep outside of a loop."""
    tree = ast.parse(text)
    polling = {id(node) for loop in ast.walk(tree) if isinstance(loop, ast.While) for node in ast.walk(loop)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("timeout", "deadline"):
            good = isinstance(node.value, ast.Constant) and node.value.value is None
            if not good and not (isinstance(node.value, ast.Name) and node.value.id == "HANG"):
                found.append(f"{node.arg}={ast.unparse(node.value)}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            numbers = [a for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, (int, float))]
            if node.func.attr in WAITS and numbers and not isinstance(numbers[0].value, bool):
                found.append(ast.unparse(node))
            if node.func.attr == "sleep" and id(node) not in polling:
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_depends_on_the_clock(path):
    """Speed is measured by `make bench`. HANG ends what would never end; a deadline of hypothesis is None."""
    text = path.read_text(encoding="utf-8")
    assert not clocks(text)
    assert not limits(text)


def test_the_rule_can_fail():
    for wrong in (
        "start = time.perf_counter()",
        "run('import time; print(time.process_time())')",
        "assert time.time() - start < 5",
        "signal.alarm(5)",
        "gzip.compress(gzip.compress(text), mtime=0)",
    ):
        assert clocks(wrong), wrong
    for wrong in (
        "subprocess.run(command, timeout=180)",
        "subprocess.run(command, timeout=LIMIT)",
        "settings(deadline=200)",
        "thread.join(20)",
        "process.wait(0.5)",
        "time.sleep(1)",
    ):
        assert limits(wrong), wrong
    good = "subprocess.run(command, timeout=HANG)\nsettings(deadline=None)\n', '.join(names)\nlock.acquire(True)\n"
    assert not limits(good + "while not done():\n    time.sleep(0.01)\n")
    assert not clocks("'2026-01-01T00:00:00Z' in certificate.time")
    assert not clocks("gzip.compress(gzip.compress(text, mtime=0), mtime=0)")


def test_hang_is_longer_than_anything_takes():
    from support import HANG

    assert HANG >= 1800


def recipe(target: str) -> str:
    found = re.search(
        rf"^{target}:.*\n((?:\t.*\n)+)", (REPO / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert found is not None, target
    return found[1]


def test_make_test_and_make_audit_run_everything_between_them():
    assert re.findall(r'-m "(.*)"', recipe("test")) == ["not audit"]
    assert re.findall(r'-m "(.*)"', recipe("audit")) == ["audit"]


def test_ci_runs_lint_test_and_audit():
    steps = re.findall(r"^make (.*)$", (REPO / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [target for step in steps for target in step.split()] == ["lint", "test", "audit"]


@pytest.mark.parametrize(("workers", "worker", "compiles"), [(2, False, 1), (2, True, 0), (None, False, 0)])
def test_samplers_are_compiled_once_before_workers_start(monkeypatch, workers, worker, compiles):
    """By the process that starts them; a single process compiles what it needs by itself."""
    calls = []
    config = SimpleNamespace(getoption=lambda name, default: workers, **({"workerinput": {}} if worker else {}))
    monkeypatch.setattr("subprocess.run", lambda command, **_: calls.append(command))
    own = importlib.util.spec_from_file_location("own_conftest", TESTS / "conftest.py")
    module = importlib.util.module_from_spec(own)
    own.loader.exec_module(module)
    module.pytest_configure(config)
    assert [Path(command[-1]).name for command in calls] == ["compiling.py"] * compiles
