"""Every error of the package, as the shell, a spec, the page and Python say it: each in its own words.

The errors are read from the code: each place that makes one is a template, whose references are evaluated and whose
other values are stood in for. So no error is left out because nothing happens to raise it.
"""

import ast
import builtins
import functools
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepsum as ks
from keepsum import errors
from keepsum._saying import METHODS, PYTHON, Face, Reference, Text, arg, said, the
from keepsum._text import printable
from keepsum.specs.faces import PAGE, SHELL, SPEC
from wording import ARGUMENTS, IN_PYTHON, IN_SHELL, MARKS

ROOT = Path(ks.__file__).parent
OURS = {name for name in vars(errors) if name.endswith(("Error", "Warning")) and name not in vars(builtins)}
OURS |= {"UndeclaredError", "CrossingTotalsError", "StaleError", "UnreadableError"}
STAND_IN = "x"
LIKE_A_MARK = '\ue0f0option\ue0f1"epsilon"\ue0f1\ue0f3\ue0f1\ue0f1with\ue0f2'  # as marks are, but for their number


def _reference(node: ast.expr) -> bool:
    """Whether an expression is a reference of a message: ``arg.within``, ``the.column(name)``."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in ("arg", "the")


class _StandIns(ast.NodeTransformer):
    """Values in references, which are not known, are stood in for."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        arguments = [one if isinstance(one, ast.Constant) else ast.Constant(STAND_IN) for one in node.args]
        return ast.Call(self.visit(node.func), arguments, [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return ast.Subscript(node.value, ast.Constant("epsilon"), node.ctx)


def template(node: ast.expr) -> str | None:
    """A message as it is written, with its references; None if it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        return None if left is None and right is None else (left or STAND_IN) + (right or STAND_IN)
    if isinstance(node, ast.IfExp):
        return template(node.body)
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(_piece(value) for value in node.values)


def _piece(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    assert isinstance(value, ast.FormattedValue)
    if not _reference(value.value):
        return template(value.value) or STAND_IN
    use = "" if value.format_spec is None else str(value.format_spec.values[0].value)
    expression = ast.fix_missing_locations(ast.Expression(_StandIns().visit(value.value)))
    part = eval(compile(expression, "<message>", "eval"), {"arg": arg, "the": the})  # noqa: S307
    assert isinstance(part, Reference)
    return format(part, use)


@functools.cache
def templates(path: Path) -> list[tuple[int, str]]:
    """The messages of the errors that a module makes, with their lines."""
    return list(_templates(path))


def _templates(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OURS and node.args:
            text = template(node.args[0])
            if text is not None and " " in text:
                yield node.lineno, text


def found(face: Face, wrong: re.Pattern[str]) -> list[str]:
    """Where a face says what it must not."""
    places = []
    for path in sorted(ROOT.rglob("*.py")):
        for line, text in templates(path):
            words = said(Text(text), face)
            if wrong.search(words) or MARKS.search(words):
                places.append(f"{path.relative_to(ROOT)}:{line}: {words}")
    return places


@pytest.mark.parametrize(
    ("face", "wrong"),
    [(SHELL, IN_PYTHON), (SPEC, IN_PYTHON), (PAGE, IN_PYTHON), (PAGE, IN_SHELL), (PYTHON, IN_SHELL)],
    ids=["shell", "spec", "page", "page, options", "python"],
)
def test_every_error_is_in_the_words_of_each_face(face, wrong):
    assert found(face, wrong) == []


def referred(tree: ast.AST) -> set[str]:
    """The options that messages refer to, by their names."""
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if ast.unparse(node.value) == "arg"}


def test_what_a_message_calls_an_option_is_one():
    """Each is a parameter or a flag somewhere: ``--county 2`` was said where ``county=2`` was meant."""
    trees = [ast.parse(path.read_text()) for path in ROOT.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    flags = {node.value for node in nodes if isinstance(node, ast.Constant) and str(node.value).startswith("--")}
    flags |= {f"--{node.arg.replace('_', '-')}" for node in nodes if isinstance(node, ast.arg)}
    known = {flag.removeprefix("--").replace("-", "_") for flag in flags} | ARGUMENTS | set(METHODS)
    assert set().union(*map(referred, trees)) <= known
    assert not referred(ast.parse('f"{arg.province(2)}"')) <= known


def test_there_are_hundreds_of_them():
    problems = {Text(text) for path in ROOT.rglob("*.py") for _, text in templates(path)}
    assert len(problems) >= 400


def test_what_the_suite_raises_is_checked():
    """Each error is rendered where it is made, whatever stands in it (``conftest.py``)."""
    with pytest.raises(AssertionError, match="not in the words of the Shell"):
        ks.InputError("A budget must be another. Pass carry= for it.")
    with pytest.raises(AssertionError, match=r"not in the words of the (Page|InPython)"):
        ks.InputError("A budget must be another. Pass --carry for it.")


def test_the_rules_can_fail():
    assert IN_PYTHON.search("Pass within={'a': 'b'}.")
    assert IN_PYTHON.search("plan.certify() measures it")
    assert IN_PYTHON.search("got Laplace(epsilon=0.25)")
    assert IN_PYTHON.search("See ks.plan.")
    assert not IN_PYTHON.search("--focus county=2, counts.csv (a file), or out/.")
    assert IN_SHELL.search("Option --keep must") is not None


@pytest.mark.parametrize(
    "name", ["carry=", "within={x}", "--keep", "ks.plan(", "a. Pass within=x", "\ue0f0option\ue0f2", LIKE_A_MARK]
)
def test_the_name_of_a_column_is_never_taken_for_words_of_ours(name):
    """A column called carry= was shown to its owner as --carry."""
    error = ks.DataError(f"Column {the.column(name)} must be declared. Leave it out {arg.drop([name]):with}.")
    for face in (SHELL, SPEC, PAGE, PYTHON):
        assert said(error.text, face).startswith(f"Column {name!r} must be declared. ")
    assert error.subject == Reference("column", name)
    assert error.problem == f"Column {name!r} must be declared."
    assert error.remedy == Reference("option", "drop", [name], use="with")
    assert ks.DataError(f"Got {name!r}.").text == f"Got {name!r}."


@pytest.mark.parametrize("text", [LIKE_A_MARK, LIKE_A_MARK.replace('"epsilon"', "no JSON")])
def test_no_text_from_outside_is_a_mark(text):
    """A message may repeat what another library says, such as the name of a field that it does not know."""
    error = ks.InputError(f"The certificate must be another: unknown field `{text}`. {arg.key:Pass}.")
    assert error.text == f"The certificate must be another: unknown field `{printable(text)}`. Pass key=."
    assert [part.name for part in error.text.parts] == ["key"]
    assert pickle.loads(pickle.dumps(error.text)).marked == error.text.marked  # noqa: S301


def test_a_text_from_another_process_keeps_its_references():
    program = "import pickle, sys; from keepsum._saying import Text, arg;" + (
        "sys.stdout.buffer.write(pickle.dumps(Text(f'Leave it out {arg.drop([1]):with}. {arg.within:Pass}.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    text = pickle.loads(done.stdout)  # noqa: S301
    assert text.marked == Text(f"Leave it out {arg.drop([1]):with}. {arg.within:Pass}.").marked
