"""Margins of one release: sums of released counts, told apart from kept totals, in memory and from files."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import keepsum as ks

DOMAIN = ks.Domain(
    {"state": ["a", "b"], "county": {"a": ["x", "y"], "b": ["x", "y", "z"]}, "sex": ["f", "m"]},
    within={"county": "state"},
)
TABLE = ks.Table(DOMAIN, np.arange(5, 15), "n")


@pytest.fixture(scope="module")
def release() -> ks.Release:
    return ks.release(TABLE, keep=[["state", "sex"]], mechanism=ks.Laplace.per_unit(epsilon=0.2), rng=ks.rng(seed=1))


@pytest.mark.parametrize("axes", [["state"], ["county"], ["sex"], ["county", "sex"], "sex", ["sex", "state"]])
def test_totals_are_sums_of_released_counts(release, axes):
    margin = release.marginal(axes)
    frame = release.table.to_frame("pandas")
    names = list(DOMAIN.closure(axes))
    expected = frame.groupby(names, sort=False)["n"].agg(["sum", "size"])
    assert margin.axes == tuple(names)
    shown = margin.to_frame("pandas").set_index(names)["n"]
    assert shown.to_dict() == expected["sum"].to_dict()
    assert margin.cells.tolist() == expected["size"].tolist()


def test_the_grand_total(release):
    margin = release.marginal([])
    assert (margin.axes, margin.cells.tolist(), margin.kept) == ((), [10], True)
    assert margin.table.to_dict() == {"total": ["grand total"], "n": [95]}
    assert repr(margin).startswith("Marginal(the grand total. These totals are kept exactly")
    assert repr(margin).endswith(")\ntotal         n\ngrand total  95")


def test_the_grand_total_of_a_count_called_total():
    table = ks.Table(DOMAIN, np.arange(5, 15), "total")
    released = ks.release(table, keep=["state"], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert released.marginal([]).table.to_dict() == {"margin": ["grand total"], "total": [95]}


@pytest.mark.parametrize(
    ("axes", "kept"),
    [(["state"], True), (["sex"], True), (["state", "sex"], True), (["county"], False), (["county", "sex"], False)],
)
def test_kept_totals_are_exact_and_others_are_not(release, axes, kept):
    margin = release.marginal(axes)
    assert margin.kept == kept
    assert ("kept exactly" in margin.note) == kept
    assert margin.deviations.any() != kept
    if kept:
        exact = np.bincount(DOMAIN.marginal_index(axes), weights=TABLE.counts).astype(int)
        assert margin.table.counts.tolist() == exact.tolist()


def test_totals_that_follow_from_others_are_kept():
    """No margin, but subsets whose sums are the margin: the rank says so."""
    sexes = [np.flatnonzero(DOMAIN.codes("sex") == code) for code in (0, 1)]
    keep = ks.Invariants.subsets(10, sexes).over(DOMAIN)
    released = ks.release(TABLE, keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
    assert released.marginal(["sex"]).kept
    assert released.marginal([]).kept
    assert not released.marginal(["state"]).kept


def test_the_note_says_how_many_counts_and_how_much_noise(release):
    margin = release.marginal(["county"])
    typical = int(np.median(margin.accuracy().margins))
    assert margin.note == (
        "Each total is a sum of 2 released counts, so its noise is usually larger than that of a count: "
        f"a typical 95% margin of error of ±{typical}."
    )
    ragged = ks.release(TABLE, keep=["sex"], mechanism=ks.Laplace.per_unit(epsilon=1)).marginal(["state"])
    assert "a sum of 4 to 6 released counts" in ragged.note


def test_structural_zeros_are_not_summed():
    domain = ks.Domain({"sex": ["f", "m"], "pregnant": ["no", "yes"]}).without({"sex": "m", "pregnant": "yes"})
    table = ks.Table(domain, np.array([3, 4, 5]), "n")
    margin = ks.release(table, keep=["sex"], mechanism=ks.Laplace.per_unit(epsilon=1), accept_pinned="all").marginal(
        ["sex"]
    )
    assert (margin.cells.tolist(), margin.table.counts.tolist()) == ([2, 1], [7, 5])


def test_the_frame_is_of_the_callers_kind():
    frame = pl.DataFrame({"county": ["x", "x", "y", "y"], "age": [1, 2, 1, 2], "n": [3, 4, 5, 6]})
    table = ks.Table.from_frame(frame, axes=["county", "age"], count="n", domain={"county": ["x", "y"], "age": [1, 2]})
    released = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert released.marginal(["county"]).to_frame().to_dict(as_series=False) == {"county": ["x", "y"], "n": [7, 11]}
    assert isinstance(released.marginal([]).to_frame("pandas"), pd.DataFrame)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_with_intervals_have_the_labels_of_frames_without(release, backend):
    """A nested label is the label alone, with its parent in a column of its own."""
    for made in (release, release.marginal(["county"])):
        plain, found = made.to_frame(backend), made.to_frame(backend, level=0.9)
        for name in ("state", "county"):
            assert list(map(str, found[name])) == list(map(str, plain[name]))
    assert release.accuracy().to_frame("pandas")["county"].tolist() == release.to_frame("pandas")["county"].tolist()


def test_totals_beyond_64_bits_are_refused():
    table = ks.Table(DOMAIN, np.full(10, 2**61), "n")
    released = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    with pytest.raises(ks.DataError, match="must fit in 64 bits"):
        released.marginal([])


def test_unknown_axes_are_named(release):
    with pytest.raises(ks.DomainError, match="An axis must be one of 'state', 'county', 'sex', got 'age'"):
        release.marginal(["age"])


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out/"])
def test_a_saved_release_reads_back(release, tmp_path, name):
    release.save(f"{tmp_path}/{name}")
    again = ks.read_release(f"{tmp_path}/{name}", allow_seeded=True)
    assert again.table.counts.tolist() == release.table.counts.tolist()
    assert again.certificate == release.certificate
    assert again.plan.explain(details=True) == release.plan.explain(details=True)
    assert again.marginal(["county"]).table.to_dict() == release.marginal(["county"]).table.to_dict()


def test_a_saved_release_with_a_file_of_invariants(tmp_path):
    keep = ks.Invariants.subsets(10, [[0, 1, 5]], names=["some"]).over(DOMAIN)
    path = ks.release(TABLE, keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1)).save(tmp_path / "out.csv")
    assert ks.read_release(path).plan.invariants.names == ("some",)
    (tmp_path / "out.invariants.json").unlink()
    with pytest.raises(ks.InputError, match="needs its file of invariants"):
        ks.read_release(path)


def test_a_table_that_was_changed_is_refused(release, tmp_path):
    path = release.save(tmp_path / "out.csv")
    lines = path.read_text().splitlines()
    counts = [int(line.split(",")[-1]) for line in lines[1:]]
    changed = [lines[1].rsplit(",", 1)[0] + f",{counts[0] + 1}", *lines[2:]]
    path.write_text("\n".join([lines[0], *changed]) + "\n")
    with pytest.raises(ks.InputError, match=r"fails: hash \(does not match the certificate\), kept totals"):
        ks.read_release(path, allow_seeded=True)
    swapped = [f"{line.rsplit(',', 1)[0]},{n}" for line, n in zip(lines[1:], [counts[0] + 1, *counts[1:]], strict=True)]
    swapped[2] = f"{lines[3].rsplit(',', 1)[0]},{counts[2] - 1}"  # the same sex and state: totals are as they were
    path.write_text("\n".join([lines[0], *swapped]) + "\n")
    with pytest.raises(ks.InputError, match=r"fails: hash \(does not match the certificate\)\."):
        ks.read_release(path, allow_seeded=True)


def test_a_certificate_of_another_release_is_refused(release, tmp_path):
    path = release.save(tmp_path / "a.csv")
    other = ks.release(TABLE, keep=["state"], mechanism=ks.Laplace.per_unit(epsilon=1)).save(tmp_path / "b.csv")
    assert (
        ks.read_release(path, tmp_path / "a.certificate.json", allow_seeded=True).table.counts.tolist()
        == release.table.counts.tolist()
    )
    with pytest.raises(ks.InputError, match="hash"):
        ks.read_release(path, other.with_suffix(".certificate.json"), allow_seeded=True)


def test_a_margin_of_a_table_without_negative_counts_is_of_the_unbiased_one(tmp_path):
    table = ks.Table.from_array([[0, 0, 1], [0, 30, 0]], axes={"county": ["A", "B"], "age": ["x", "y", "z"]})
    release = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=0.5), rng=ks.rng(seed=3))
    without = ks.postprocess.nonnegative(release)
    assert without.table.counts.tolist() != release.table.counts.tolist()
    without.save(tmp_path / "out.csv")
    for published in (without, ks.read_release(tmp_path / "out.csv", allow_seeded=True)):
        margin = published.marginal(["age"])
        assert margin.table.counts.tolist() == release.marginal(["age"]).table.counts.tolist()
        assert "a sum of 2 counts of the unbiased table, so its noise" in margin.note
        assert margin.note.endswith(
            "It may be negative. Sums of the published table, which has no negative counts, may differ, and are biased."
        )
        assert published.marginal(["county"]).note == release.marginal(["county"]).note
    assert "unbiased" not in release.marginal(["age"]).note


def test_a_margin_is_saved_as_the_shell_does(release, tmp_path):
    margin = release.marginal(["county"])
    path = margin.save(tmp_path / "county.csv")
    assert pd.read_csv(path)["n"].tolist() == margin.table.counts.tolist()
    with pytest.raises(ks.InputError, match=r"already exists\. Choose another name, or replace it with force=True\."):
        margin.save(path)
    assert margin.save(path, force=True) == path
    release.save(tmp_path / "r.csv")
    with pytest.raises(ks.InputError, match="must not be beside a certificate of that name"):
        margin.save(tmp_path / "r.csv", force=True)
