"""Margins of error against the loss: the same as those of a plan for each, as text, frame and picture."""

import sys
from fractions import Fraction

import pytest

import keepsum as ks
from keepsum.accuracy.choose import around
from support import margins, titles_inside

KEEP = ks.Invariants.margins(ks.Domain({"a": ["x", "y"], "b": range(5)}), [["a"]])


def test_every_point_is_that_of_a_plan():
    curve = ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon="0.3"), level=0.9)
    assert [point.value for point in curve.points] == around(Fraction(3, 10))[:-1]  # epsilon 20 for one person
    for point in curve.points:
        plan = ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(point.value))
        found = plan.accuracy(0.9)
        assert (point.typical, point.draws) == (found.typical, 0)
        assert (point.smallest, point.largest) == (found.margins.min(), found.margins.max())
        assert point.person == plan.mechanism.loss(plan.person)
        assert point.mechanism == plan.mechanism


def test_simulated_margins_say_so():
    curve = ks.accuracy_curve(keep=margins(3, 3), mechanism=ks.Laplace.per_unit(1), values=[1, "1/2"])
    assert curve.draws == ks.plan(keep=margins(3, 3), mechanism=ks.Laplace.per_unit(1)).accuracy().draws > 0
    assert repr(curve).startswith(f"AccuracyCurve(95% margins of error per cell, from {curve.draws:,} simulated draws")


@pytest.mark.parametrize("value", ["0.25", "1", "0.999", "5", "1e-12", "1e12", "1/3"])
def test_values_around_one(value):
    number = Fraction(value)
    listed = around(number)
    assert listed == sorted(set(listed))
    assert number in listed
    below, above = [v for v in listed if v < number], [v for v in listed if v > number]
    assert len(below) == (0 if value == "1e-12" else 4)
    assert len(above) == (0 if value == "1e12" else 4)
    assert all(str(float(f"{float(v):e}".split("e")[0])) in ("1.0", "2.0", "5.0") for v in below + above)


def test_the_table_marks_its_own_loss_and_those_that_protect_little():
    lines = repr(ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace(epsilon=5), values=[20, 5, "0.5"])).splitlines()
    low, own, high = (
        f"±{ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(e)).accuracy().typical}" for e in (0.125, 1.25, 5)
    )
    assert lines == [
        "AccuracyCurve(95% margins of error per cell)",
        "  epsilon per person  typical  per unit of distance",
        f"  0.5                 {low:>7}  epsilon 0.125",
        f"> 5                   {own:>7}  epsilon 1.25",
        f"  20                  {high:>7}  epsilon 5             little protection",
    ]
    html = ks.accuracy_curve(keep=KEEP, mechanism=ks.Gaussian.per_unit(1, "1e-6"))._repr_html_()
    assert "epsilon 2, delta" in html
    assert "\n&gt; 1" in html


def test_the_largest_margin_has_a_column_where_it_differs():
    keep = ks.Invariants.subsets(9, [[0, 1], [2, 3], [4, 5], [6, 7, 8]])
    small, large = (ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(0.1)).accuracy().margins[cell] for cell in (0, 8))
    assert repr(ks.accuracy_curve(keep=keep, mechanism=ks.Laplace.per_unit(1), values=[0.1])).splitlines()[1:] == [
        "  epsilon  typical  largest  per unit of distance",
        f"  0.1      {f'±{small}':>7}  {f'±{large}':>7}  epsilon 0.1",
    ]


def test_what_protects_little_is_proposed_only_if_it_was_asked_for():
    large = ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=5))
    assert [float(point.value) for point in large.points] == [0.2, 0.5, 1.0, 2.0, 5.0]
    assert large.points[-1].person.excess == "epsilon"
    assert repr(large).splitlines()[-1].split()[-4:] == ["epsilon", "20", "little", "protection"]
    narrow = ks.accuracy_curve(keep=KEEP, mechanism=ks.Gaussian(sigma=3))
    assert [float(point.value) for point in narrow.points] == [2.0, 3.0, 5.0, 10.0, 20.0, 50.0]


def test_cells_without_names_have_no_person():
    curve = ks.accuracy_curve(keep=[[1, 1, 1]], mechanism=ks.Gaussian.per_unit(rho=1), values=[1])
    assert curve.subject == "unit of distance"
    assert repr(curve).splitlines()[1].split("  ")[-1] == "per unit of distance"
    assert list(curve.to_dict())[-1] == "unit_of_distance_rho"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend):
    curve = ks.accuracy_curve(keep=KEEP, mechanism=ks.Gaussian.per_unit(1, "1e-6"), values=[0.5, 1])
    frame = curve.to_frame(backend)
    columns = ["epsilon", "typical", "smallest", "largest", "draws", "scaled"]
    columns += ["per_unit", "person_epsilon", "person_delta"]
    assert list(getattr(frame, "column_names", None) or frame.columns) == columns
    assert type(frame).__module__.split(".")[0] == backend
    assert [float(str(value)) for value in frame["epsilon"]] == [0.5, 1.0]
    assert [int(str(value)) for value in frame["typical"]] == [point.typical for point in curve.points]
    with pytest.raises(ks.InputError, match="The library must be 'pandas', 'polars' or 'pyarrow', got 'excel'"):
        curve.to_frame("excel")


def test_round_values_without_such_noise_are_left_out():
    curve = ks.accuracy_curve(keep=KEEP, mechanism=ks.Gaussian.per_unit(Fraction(1, 4), "1e-6", calibration="paper"))
    assert max(point.value for point in curve.points) == Fraction(1, 4)  # which must be below 1/e
    assert len(curve.points) == 5
    with pytest.raises(ks.InputError, match=r"Values must be such that there is this noise .* number 2 in their order"):
        ks.accuracy_curve(
            keep=KEEP, mechanism=ks.Gaussian.per_unit(Fraction(1, 4), "1e-6", calibration="paper"), values=[1, "0.1"]
        )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("0.1", "Values must be a list of numbers, got a value of type 'str'."),
        (3, "Values must be a list of numbers, got a value of type 'int'."),
        ([], "Values must be from 1 to 200 numbers, got 0."),
        (range(1, 1000), "Values must be from 1 to 200 numbers, got 999."),
        ([1, -5], "Values must be numbers from 1e-12 to 1e12; value 2 is not."),
        ([0.1, "tenth"], "Values must be numbers from 1e-12 to 1e12; value 2 is not."),
    ],
)
def test_bad_values(values, words):
    with pytest.raises(ks.InputError) as error:
        ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace.per_unit(1), values=values)
    assert str(error.value) == words


def words(axes):
    texts = [text.get_text() for text in axes.texts]
    return [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel(), *texts]


def test_the_picture_says_what_the_table_says(tmp_path):
    curve = ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace(epsilon=2), values=[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50])
    figure = curve.plot()
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    title, x, y, *texts = words(axes)
    own = next(point for point in curve.points if point.value == 2)
    assert title == f"Epsilon 2 per person gives a typical margin of ±{own.typical}"
    assert (x, y) == ("epsilon per person (log scale)", "95% margin of error of a count\n(log scale)")
    assert f"epsilon 2: ±{own.typical}" in texts
    assert "little protection" in texts
    for point in curve.points:
        assert point is own or f"±{point.typical}" in texts
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.2", "0.5", "1", "5", "10", "20", "50"]
    assert titles_inside(figure)
    figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 10_000


@pytest.mark.parametrize("mechanism", [ks.Gaussian(sigma=2), ks.Gaussian(rho="0.1")])
def test_pictures_of_other_parameters(mechanism):
    figure = ks.accuracy_curve(keep=margins(3, 4), mechanism=mechanism).plot()
    figure.draw_without_rendering()
    assert titles_inside(figure)
    assert "simulated draws or more" in figure.axes[0].get_xlabel()


def test_the_largest_margin_is_drawn_where_it_differs():
    keep = ks.Invariants.subsets(9, [[0, 1], [2, 3], [4, 5], [6, 7, 8]])
    (axes,) = ks.accuracy_curve(keep=keep, mechanism=ks.Laplace.per_unit(1), values=[0.1, 0.2]).plot().axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["largest", "typical"]
    (axes,) = ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace.per_unit(1), values=[0.1, 0.2]).plot().axes
    assert axes.get_legend() is None
    assert words(axes)[0] == "Margins of error against the privacy loss"  # epsilon 1 is not on it


def test_without_matplotlib_one_sentence_helps(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ks.InputError, match=r"pip install '\.\[report\]'"):
        ks.accuracy_curve(keep=KEEP, mechanism=ks.Laplace.per_unit(1), values=[1]).plot()
