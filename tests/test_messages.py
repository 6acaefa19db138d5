"""No message shows a count, none does anything to a terminal, and no error carries another with the data in it."""

import ast
import io
import traceback
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from keepsum._text import printable
from keepsum.sources.declarations import read_domain, read_totals
from test_arguments import COUNTS, SECRET, check_message

ROOT = Path(ks.__file__).parent
# Errors that hold the name of a file or of a module, and nothing of what is in it.
HARMLESS = {"OSError", "FileExistsError", "ImportError", "ModuleNotFoundError"}


def raises_in_handlers(source: str) -> list[int]:
    """The lines of ``raise SomeError`` inside an ``except`` block of errors that may hold data."""
    lines = []
    for handler in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)):
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if not all(isinstance(kind, ast.Name) and kind.id in HARMLESS for kind in kinds):
            inside = [node for statement in handler.body for node in ast.walk(statement)]
            lines += [node.lineno for node in inside if isinstance(node, ast.Raise) and node.exc is not None]
    return lines


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_errors_are_raised_outside_of_handlers(path):
    """``from None`` hides an error from the terminal only: debuggers and error trackers show the context."""
    assert raises_in_handlers(path.read_text(encoding="utf-8")) == []


def test_the_rule_can_fail():
    assert raises_in_handlers("try: x()\nexcept ValueError:\n    raise InputError('no') from None") == [3]
    assert raises_in_handlers("try: x()\nexcept OSError:\n    raise InputError('no') from None") == []
    assert raises_in_handlers("try: x()\nexcept ValueError:\n    raise") == []


@pytest.fixture
def table() -> ks.Table:
    return ks.Table.from_array(COUNTS, axes={"county": ["Alpha", "Beta", "Gamma"]}, count="n")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table: ks.release(table, keep=table.counts, mechanism=ks.Laplace.per_unit(1)),
        lambda table: ks.release(table, keep=[table.counts], mechanism=ks.Laplace.per_unit(1)),
        lambda table: ks.release(table, keep=[[]], mechanism=table.counts),
        lambda table: ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(1), accept_pinned=table.counts),
        lambda table: ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(1), accept_pinned=COUNTS[0]),
        lambda table: table.keep(*table.counts),
        lambda table: ks.Table.from_array(COUNTS, axes={"county": [*COUNTS, SECRET]}),
        lambda table: ks.Table.from_array(COUNTS, axes={"county": ["a", "b", "c"]}, count=COUNTS),
        lambda table: ks.Table.from_array(COUNTS, axes={SECRET: ["a", "b", "c"]}),
        lambda table: ks.Table.from_array(COUNTS, axes={"county": ["a", "b", "c"]}, within={"county": SECRET}),
        lambda table: table.domain.index({"county": SECRET}),
        lambda table: table.domain.index({SECRET: "Alpha"}),
        lambda table: table.domain.without({"county": SECRET}),
        lambda table: ks.Invariants.subsets(3, [SECRET]),
        lambda table: ks.Invariants.subsets(3, [[0, SECRET]]),
        lambda table: ks.Invariants.subsets(3, [[0]], names=COUNTS),
    ],
)
def test_counts_given_for_something_else_are_not_repeated(table, wrong):
    with pytest.raises(ks.KeepsumError) as caught:
        wrong(table)
    check_message(caught.value)


def test_accepted_cells_are_not_named_by_a_count():
    """A number among them may be a count, and its cell would tell which."""
    table = ks.Table.from_array([7, 5, 3, 2], axes={"county": ["Alpha", "Beta", "Gamma", "Delta"]})
    with pytest.raises(ks.InputError) as caught:
        ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(1), accept_pinned=[3])
    assert "Delta" not in str(caught.value)


HEADERLESS = f"Alpha,Low,{SECRET}\nAlpha,High,{SECRET + 2}\n"


def test_a_file_without_a_header_is_not_shown(released, tmp_path):
    out = released.save(tmp_path / "out.csv")
    bare = tmp_path / "bare.csv"
    bare.write_text(HEADERLESS)
    with pytest.raises(ks.InputError) as caught:
        ks.read_table(bare, count="n")
    check_message(caught.value)
    (failed,) = [c for c in ks.verify(bare, tmp_path / "out.certificate.json").checks if c.name == "table"]
    assert not failed.passed
    assert str(SECRET) not in failed.words
    for text in (HEADERLESS, HEADERLESS.replace("Alpha,Low", "Alpha,count"), f"count,{SECRET}\n1,2\n"):
        bare.write_text(text)
        with pytest.raises(ks.InputError) as caught:
            ks.verify(out, totals=bare)
        check_message(caught.value)
        with pytest.raises(ks.InputError) as caught:
            read_totals(bare, released.plan.invariants, "count")
        check_message(caught.value)


@pytest.mark.parametrize(
    "text",
    [HEADERLESS, f"county = {SECRET}\n", f"[{SECRET}\n", f"{SECRET} = [\n", f'n = "{SECRET}\n', "a = 1\na = 2\n"],
)
def test_counts_for_categories_are_not_shown(tmp_path, text):
    path = tmp_path / "categories.toml"
    path.write_text(text)
    with pytest.raises(ks.InputError) as caught:
        read_domain(path)
    check_message(caught.value)


BAD_UTF8 = b"county,n\nAlpha,%d\nBeta,\xff\n" % SECRET


def reachable(error: BaseException) -> str:
    """What a debugger shows of an error and of those that it carries, without the variables of frames."""
    shown = []
    while error is not None:
        shown.append(repr(error) + repr(vars(error)) + "".join(traceback.format_exception_only(error)))
        shown.append(repr(getattr(error, "object", "")) + repr(getattr(error, "doc", "")))
        error = error.__cause__ or error.__context__
    return "".join(shown)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: ks.read_table(path, count="n"),
        lambda path: ks.read_table(io.BytesIO(path.read_bytes()), count="n"),
        read_domain,
    ],
)
def test_an_error_of_encoding_does_not_carry_the_file(tmp_path, read):
    path = tmp_path / "table.csv"
    path.write_bytes(BAD_UTF8)
    with pytest.raises(ks.InputError, match="UTF-8") as caught:
        read(path)
    check_message(caught.value)
    assert str(SECRET) not in reachable(caught.value)


def test_broken_quotes_and_half_characters_carry_nothing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f'county,n\n"Alpha"x,{SECRET}\n')
    with pytest.raises(ks.DataError, match="well-formed CSV") as caught:
        ks.read_table(path, count="n")
    check_message(caught.value)
    with pytest.raises(ks.DomainError, match="half a character") as caught:
        ks.Table.from_array(COUNTS, axes={"county": ["a", "b", "\ud800"]})
    check_message(caught.value)


def test_ragged_counts_carry_nothing():
    with pytest.raises(ks.DataError) as caught:
        ks.Table.from_array([COUNTS, [SECRET]], axes={"county": ["Alpha"]})
    check_message(caught.value)


FORGERIES = [
    "a\nok      signature",
    "a\x1b[2J",
    "a\x9b2J",
    "a\u202eb",
    "a\x7f",
    "a\u2028b",
    "a\u2029b",
    "a\rb",
    "a\x00",
]


@pytest.mark.parametrize("label", FORGERIES)
def test_labels_do_nothing_to_a_terminal(label):
    assert printable(label).isprintable()
    assert str(ks.InputError(f"Axis {label} must be known.")).isprintable()
    assert str(ks.CategoriesFromDataWarning(label)).isprintable()
    domain = ks.Domain({"county": [label, "Beta"], f"axis {label}": ["p", "q"]})
    table = ks.Table.from_array(np.ones((2, 2), dtype=int), axes=domain)
    plan = ks.plan(table, keep=["county"], mechanism=ks.Laplace.per_unit(1))
    for text in (repr(domain), repr(table), repr(plan.invariants), *plan.explain(details=True).split("\n")):
        assert text.isprintable(), text
