"""What every test obeys: none depends on how busy the machine is, and what takes long has its mark."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
REPO = TESTS.parent
CLOCKS = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic|default_timer)(?:_ns)?\b"
    r"|\btime\.time(?:_ns)?\(|\bsignal\.(?:alarm|setitimer)\b|\bfaulthandler\.dump_traceback_later\b"
)
SHARE = (
    r"(?:(?:every|each|an?) +(?:\d+(?:th|rd|nd|st)|other|half|second|third|fourth|fifth|sixth|seventh|eighth|tenth)"
    r"|one (?:in|of) (?:\d+|two|three|four|five|six|seven|eight|nine|ten)|\d+ ?%)"
)
SHARE_OF_CASES = re.compile(rf"\bmostly_audit\b[^.]*?\b{SHARE}")
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


def stray_marks(text: str, name: str = "test_it.py") -> list[str]:
    """Every mark on what pytest does not collect as a test: a helper, a fixture, a function within one, a class."""
    tree = ast.parse(text)
    aliases = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_mark(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name) and target.id != "pytestmark"
    }
    collected = set() if not name.startswith("test_") else {id(node) for node in _collected(tree)}
    return [
        f"{node.name}: {ast.unparse(decorator)}"
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and id(node) not in collected
        for decorator in node.decorator_list
        if _is_mark(decorator, aliases)
    ]


def _is_mark(node: ast.expr, aliases: set[str]) -> bool:
    """Whether an expression is a mark, called or not, by its own name or by another."""
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Name):
        return named.id in aliases or named.id == "mostly_audit"
    return isinstance(named, ast.Attribute) and ast.unparse(named.value) in ("pytest.mark", "mark")


def _collected(tree: ast.Module) -> list[ast.AST]:
    """The functions of a module that are tests, its classes of tests, and the methods of these that are."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    functions = [
        node
        for scope in (tree, *classes)
        for node in scope.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test")
    ]
    return [*classes, *(node for node in functions if not _is_fixture(node))]


def _is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    named = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(ast.unparse(each) in ("pytest.fixture", "fixture") for each in named)


def test_every_mark_is_on_a_test():
    """A mark on a helper does nothing: the test below it was meant."""
    stray = {path.relative_to(TESTS): stray_marks(path.read_text(encoding="utf-8"), path.name) for path in files()}
    assert {str(path): marks for path, marks in stray.items() if marks} == {}


def test_the_rule_about_marks_can_fail():
    for wrong in (
        "@pytest.mark.audit\ndef without_shell(page): ...\n",
        "@mark.audit\ndef helper(): ...\n",
        "@mostly_audit('a', [1])\ndef helper(a): ...\n",
        "slow = pytest.mark.audit\n@slow\ndef helper(): ...\n",
        "@pytest.mark.parametrize('a', [1])\n@pytest.fixture\ndef test_data(a): ...\n",
        "def test_outer():\n    @pytest.mark.audit\n    def test_inner(): ...\n",
        "class Helper:\n    @pytest.mark.audit\n    def test_it(self): ...\n",
        "@pytest.mark.audit\nclass Helper: ...\n",
    ):
        assert stray_marks(wrong), wrong
    good = "slow = pytest.mark.audit\n@slow\n@pytest.mark.parametrize('a', [1])\ndef test_it(a): ...\n"
    good += (
        "@pytest.fixture\ndef page(): ...\n@pytest.mark.audit\nclass TestIt:\n    @slow\n    def test_it(self): ...\n"
    )
    assert not stray_marks(good)
    assert stray_marks(good, "helper.py")  # which pytest does not read


def shares_of_cases(text: str) -> list[str]:
    """Every sentence that says how many cases of a test that is mostly in the audit `make test` has."""
    return SHARE_OF_CASES.findall(text)


def test_the_share_of_cases_in_make_test_is_written_once():
    texts = {
        path.relative_to(REPO): path.read_text(encoding="utf-8")
        for path in [
            *REPO.glob("*.md"),
            *REPO.glob("docs/**/*.md"),
            REPO / "pyproject.toml",
            REPO / "Makefile",
            *files(),
        ]
    }
    assert {str(path): said for path, text in texts.items() if (said := shares_of_cases(text))} == {}
    assert [str(path) for path, text in texts.items() if re.search(r"^EVERY = \d+\b", text, re.MULTILINE)] == [
        "tests/support.py"
    ]


def test_the_rule_about_shares_of_cases_can_fail():
    for wrong in (
        "mostly_audit: `make test` has every third of its cases, `make audit` the others",
        "Of tests\nwith `mostly_audit` `make test` has every fifth case",
        "of the cases of a mostly_audit test, make test has every 5th",
        "`mostly_audit` tests run one in five of their cases",
        "a mostly_audit test has 20% of its cases",
    ):
        assert shares_of_cases(wrong), wrong
    assert not shares_of_cases("mostly_audit: `make test` has some of its cases (tests/support.py)")


def test_which_cases_run_does_not_depend_on_which_are_asked_for():
    """A case is in the audit by its place in its own list, and a mark of its own stays."""
    from support import mostly_audit

    mark = mostly_audit("a, b", [(k, "x") for k in range(7)]).mark
    assert [case.values for case in mark.args[1]] == [(k, "x") for k in range(7)]
    assert [[each.name for each in case.marks] for case in mark.args[1]] == [
        *([], ["audit"], ["audit"], ["exhaustive"], ["exhaustive"]),
        *([], ["audit"]),
    ]
    (own,) = mostly_audit("a", [pytest.param((1, 2), marks=pytest.mark.audit, id="own")]).mark.args[1]
    assert (own.values, own.id, [each.name for each in own.marks]) == (((1, 2),), "own", ["audit"])


def test_hang_is_longer_than_anything_takes():
    from support import HANG

    assert HANG >= 1800


def recipe(target: str) -> str:
    found = re.search(
        rf"^{target}:.*\n((?:\t.*\n)+)", (REPO / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert found is not None, target
    return found[1]


def test_test_audit_and_exhaustive_run_everything_between_them():
    assert re.findall(r'-m "(.*)"', recipe("test")) == ["not audit and not exhaustive"]
    assert re.findall(r'-m "(.*)"', recipe("audit")) == ["audit and not exhaustive"]
    assert re.findall(r'-m "(.*)"', recipe("exhaustive")) == ["exhaustive"]


def test_ci_runs_lint_test_and_audit():
    steps = re.findall(r"^make (.*)$", (REPO / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [target for step in steps for target in step.split()] == ["lint", "test", "audit"]
