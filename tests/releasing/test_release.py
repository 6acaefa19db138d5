import warnings

import numpy as np
import polars as pl
import pytest

import keepsum as ks

LAPLACE = ks.Laplace.per_unit(epsilon=0.25)


def test_totals_are_kept_and_counts_are_not(children):
    keep = children.keep("county", "education", total=True)
    outs = [ks.plan(keep=keep, mechanism=LAPLACE).release(children) for _ in range(5)]
    for out in outs:
        assert out.table.counts.dtype == np.int64
        assert keep.holds(children, out.table)
    assert len({out.table.counts.tobytes() for out in outs}) == 5


def test_the_released_counts_are_the_confidential_ones_plus_the_noise_of_the_plan(children):
    plan = ks.plan(children, keep=["county"], mechanism=LAPLACE)
    out = plan.release(children, rng=ks.rng(seed=4))
    assert (out.table.counts - children.counts).tolist() == plan.sample(rng=ks.rng(seed=4)).tolist()
    assert out.certificate.randomness == "seed"
    assert any("seed" in words for words in out.certificate.warnings)


def test_threads_do_not_change_a_seeded_release(children):
    plan = ks.plan(children, keep=["county"], mechanism=LAPLACE)
    one, two = (plan.release(children, rng=ks.rng(seed=4), threads=n) for n in (1, 2))
    assert one.table.counts.tolist() == two.table.counts.tolist()


def test_a_polars_frame_comes_back_as_one():
    frame = pl.DataFrame({"g": ["b", "a", "c"], "n": [5, 9, 7]})
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.Table.from_frame(frame, count="n")
    out = ks.release(table, keep=[[]], mechanism=LAPLACE)
    back = out.table.to_frame()
    assert back["g"].to_list() == ["a", "b", "c"]
    assert back["n"].sum() == 21
    assert back.schema == frame.schema
    assert out.certificate.domain.taken_from_data == ["g"]


def test_cells_without_names_are_named_by_the_table(children, circles):
    keep = ks.Invariants.subsets(16, [range(8), range(4, 12)])
    out = ks.plan(keep=keep, mechanism=LAPLACE).release(children)
    assert keep.holds(children.counts, out.table.counts)
    assert "county" in out.plan.invariants.cell_name(0)
    with pytest.raises(ks.InputError, match="cells"):
        ks.plan(keep=circles, mechanism=LAPLACE).release(children)


def test_pinned_cells_must_be_accepted_by_name():
    table = ks.Table.from_array([[7, 3, 2], [5, 1, 4]], axes={"a": ["x", "y"], "b": ["p", "q", "r"]})
    keep = table.keep("a") + ks.Invariants.subsets(6, [[0], [1]]).over(table.domain)
    plan = ks.plan(keep=keep, mechanism=LAPLACE)
    with pytest.raises(ks.PlanError, match=r"pin 3 cells.*'a=x, b=p', 'a=x, b=q', 'a=x, b=r'"):
        plan.release(table)
    with pytest.raises(ks.PlanError, match="pin 1 cell,"):
        plan.release(table, accept_pinned=["a=x, b=p", {"a": "x", "b": "q"}])
    with pytest.raises(ks.InputError, match="'a=y, b=p' fits no pinned cell"):
        plan.release(table, accept_pinned=["a=y, b=p"])
    with pytest.raises(ks.InputError, match="by name, number or labels"):
        plan.release(table, accept_pinned=[99])
    for accepted in ("all", ["a=x, b=p", 1, {"a": "x", "b": "r"}]):
        out = plan.release(table, accept_pinned=accepted)
        assert out.table.counts[:3].tolist() == [7, 3, 2]
        assert out.certificate.exposure.pinned == [["x", "p"], ["x", "q"], ["x", "r"]]


def test_what_must_not_be_released(children, released):
    with pytest.raises(ks.InputError, match="already released"):
        ks.release(released.table, keep=["county"], mechanism=LAPLACE)
    with pytest.raises(ks.PlanError, match="determine every cell"):
        ks.release(children, keep=[["county", "education"]], mechanism=LAPLACE, accept_pinned="all")
    with pytest.raises(ks.NoSamplerError):
        ks.release(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=100))
    with pytest.raises(ks.InputError, match="keepsum Table"):
        ks.release([1, 2], keep=["county"], mechanism=LAPLACE)
    huge = ks.Table.from_array([2**62, 1], axes={"a": ["x", "y"]})
    with pytest.raises(ks.DataError, match="below 2"):
        ks.release(huge, keep=[[]], mechanism=LAPLACE)
    other = ks.Table.from_array([1, 2], axes={"b": ["x", "y"]})
    with pytest.raises(ks.InputError, match="domain of the plan"):
        ks.plan(children, keep=["county"], mechanism=LAPLACE).release(other)


def test_a_large_loss_is_warned_of_and_recorded(children):
    with pytest.warns(ks.LargeLossWarning, match=r"epsilon 10\.4, above 10: this gives little protection") as caught:
        out = ks.release(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=2.6))
    assert caught[0].filename == __file__
    assert out.certificate.warnings[0].startswith("The per-person loss")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ks.release(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=2.5))


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (ks.Gaussian.per_unit(rho=100), r"rho 400 \(zCDP\), above epsilon 10 at delta 1e-6"),
        (ks.Gaussian(sigma="0.1"), r"rho 200 \(zCDP\), above epsilon 10 at delta 1e-6"),
        (ks.Gaussian.per_unit(epsilon=6, delta="1e-12"), "epsilon 12, delta .*, above 10"),
        (ks.Gaussian.per_unit(epsilon=1, delta="0.01"), r"epsilon 2, delta 0\.0\d*, above delta 0\.01"),
        (ks.Laplace.per_unit(epsilon=6, norm="l2"), "epsilon 12, above 10"),
    ],
)
def test_a_large_loss_is_one_in_any_currency(children, mechanism, words):
    """Rho 100 returned the table as it was, without a word."""
    with pytest.warns(ks.LargeLossWarning, match=words):
        out = ks.release(children, keep=["county"], mechanism=mechanism)
    assert "gives little protection" in out.certificate.warnings[0]


@pytest.mark.parametrize(
    "mechanism", [ks.Gaussian.per_unit(rho="0.3"), ks.Gaussian(sigma=2), ks.Gaussian.per_unit(1, "1e-6")]
)
def test_an_ordinary_loss_is_not_warned_of(children, mechanism):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ks.release(children, keep=["county"], mechanism=mechanism)


def test_views_show_released_data_only(children, released):
    html = released._repr_html_()
    assert "Alpha" in html
    for row in released.table.to_frame("polars").rows():
        assert f"<td>{row[-1]}</td>" in html
    assert "not shown" in repr(children)
    assert "; per-person epsilon 1)" in repr(released)
    shown = repr(released.table).splitlines()
    assert shown[0] == "ReleasedTable(county 4, education 4: 16 cells)"
    assert [line.split()[-1] for line in shown[2:]] == [str(n) for n in released.table.counts]
    tricky = ks.Table.from_array([3, 4], axes={"<b>": ["<i>", "&"]}, count="n")
    assert "<i>" not in ks.release(tricky, keep=[[]], mechanism=LAPLACE)._repr_html_()


def test_a_long_table_shows_its_first_rows_and_no_character_that_does_something():
    labels = ["Cook\x1b[2J\nx", *(f"c{k}" for k in range(29))]
    table = ks.Table.from_array(range(30), axes={"county": labels}, count="n")
    shown = repr(ks.release(table, keep=[[]], mechanism=LAPLACE).table).split("\n")
    assert all(line.isprintable() for line in shown)
    assert shown[1].split() == ["county", "n"]
    assert len(shown) == 2 + 20 + 1
    assert shown[-1] == "and 10 more rows"


def test_a_path_is_no_table():
    with pytest.raises(ks.InputError, match=r"got a value of type 'str'\. Read a file with ks\.read_table, or"):
        ks.release("counts.csv", keep=["county"], mechanism=LAPLACE)


def test_a_name_that_means_two_cells_accepts_neither():
    axes = {"a": ["1, b=2", "1"], "b": ["3", "2, b=3"]}
    table = ks.Table.from_array([[5, 6], [7, 8]], axes=axes)
    keep = ks.Invariants.subsets(4, [[0], [3]]).over(table.domain)
    plan = ks.plan(keep=keep, mechanism=LAPLACE)
    assert plan.invariants.cell_name(0) == plan.invariants.cell_name(3)
    with pytest.raises(ks.InputError, match="fits several cells"):
        plan.release(table, accept_pinned=["a=1, b=2, b=3"])
    assert plan.release(table, accept_pinned=[0, {"a": "1", "b": "2, b=3"}]).table.counts[3] == 8


@pytest.mark.parametrize(
    "arguments", [{"keep": None}, {"keep": 5}, {"accept_pinned": None}, {"accept_pinned": 5.0}, {"rng": 5}]
)
def test_wrong_kinds_of_arguments(children, arguments):
    options = {"keep": ["county"], "mechanism": LAPLACE} | arguments
    with pytest.raises(ks.InputError):
        ks.release(children, **options)
