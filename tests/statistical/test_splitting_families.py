"""Axis elimination: tables under decomposable totals against exact laws, and wrong ways that the tests reject."""

from fractions import Fraction

import numpy as np
import pytest
from families_laws import short_law, short_vectors, slice_law
from laws import assert_drawn_from, assert_not_drawn_from, boxed, power
from splitting_laws import drawn

from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.splitting import laws as splitting_laws
from keepsum.sampling.l1.splitting import splits
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_BUNDLE, ACCEPT_ROW, DRAW_ROWS, PICK_LABEL
from keepsum.sampling.l1.splitting.laws import Labelling
from sampling.l1.decomposable import splitting, totals_of

ONE_WAY, CHAIN = ("A", "B", "C"), ("AB", "BC", "CD")
SHORT = {  # shape, margins, cells that are structural zeros, sizes of the others, epsilon, longest
    "one-way": ((3, 2, 2), ONE_WAY, (), None, "2", 8),
    "one-way, wider": ((3, 3, 2), ONE_WAY, (), None, "5/2", 6),
    "four axes": ((2, 2, 2, 2), ("A", "B", "C", "D"), (), None, "5/2", 6),
    "a pair and an axis": ((2, 3, 2), ("AB", "C"), (), None, "1", 16),
    "a common axis": ((3, 2, 3), ("AB", "BC"), (), None, "3/2", 12),
    "chain": ((2, 2, 2, 2), CHAIN, (), None, "3/2", 12),
    "longer chain": ((2, 3, 2, 2), CHAIN, (), None, "2", 12),
    "star": ((2, 2, 2, 2), ("AB", "AC", "AD"), (), None, "3/2", 12),
    "one-way with zeros": ((3, 3, 2), ONE_WAY, (0, 3, 10, 17), None, "2", 8),
    "chain with zeros": ((2, 3, 2, 2), CHAIN, (0, 5, 14), None, "2", 12),
    "one-way of regions": ((3, 2, 2), ONE_WAY, (), (1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 1, 2), "5/2", 6),
}
SLICES = {  # shape, epsilon, reach, points of the grid
    "3 x 2 x 2": ((3, 2, 2), "1", 4, 64),
    "3 x 3 x 2": ((3, 3, 2), "1", 2, 48),
    "2 x 3 x 4": ((4, 3, 2), "1/2", 2, 64),
    "3 x 3 x 3": ((3, 3, 3), "1", 1, 32),
    "4 x 4 x 3": ((4, 4, 3), "2", 1, 16),
}
COUNT = 100_000
PLAIN, SOME = Labelling(), Labelling(4, 2)


def check_short(name, sampler, count=COUNT):
    """All totals are 0, and vectors that are short have their chances among these."""
    shape, margins, zeros, sizes, epsilon, longest = SHORT[name]
    matrix = totals_of(shape, margins, zeros)
    matrix = np.repeat(matrix, np.ones(matrix.shape[1], int) if sizes is None else sizes, axis=1)
    noise = drawn(sampler, count)
    assert not (noise @ matrix.T).any()
    short = noise[np.abs(noise).sum(axis=1) <= longest]
    assert len(short) > 0.1 * count
    assert_drawn_from(short, short_law(matrix, float(Fraction(epsilon)), longest))


def made(name, labelling=PLAIN, **options):
    shape, margins, zeros, sizes, epsilon, _ = SHORT[name]
    return splitting(epsilon, shape, margins, zeros, sizes, labelling, **options)


@pytest.mark.thinned
@pytest.mark.parametrize("labelling", [PLAIN, SOME], ids=["plain", "labels"])
@pytest.mark.parametrize("name", SHORT)
def test_short_vectors(name, labelling):
    check_short(name, made(name, labelling))


def sliced(name, labelling=PLAIN, **options):
    shape, epsilon, _, _ = SLICES[name]
    return splitting(epsilon, shape, ONE_WAY, labelling=labelling, **options)


def law_of_slice(name, axis=0):
    """The law of a slice across an axis: with the axes of the table in another order."""
    shape, epsilon, reach, points = SLICES[name]
    order = [axis, *(k for k in range(3) if k != axis)]
    return slice_law(tuple(shape[k] for k in order), float(Fraction(epsilon)), reach, points)


def slice_of(name, noise, axis=0, place=0):
    tables = noise.reshape(-1, *SLICES[name][0])
    return np.take(tables, place, axis=axis + 1).reshape(len(tables), -1)


@pytest.mark.thinned
@pytest.mark.parametrize("labelling", [PLAIN, SOME], ids=["plain", "labels"])
@pytest.mark.parametrize("name", SLICES)
def test_slices_of_one_way_tables(name, labelling):
    """The first and the last slice across the first axis, and the first one across the last axis where it is small."""
    noise = drawn(sliced(name, labelling), COUNT)
    for place in (0, -1):
        assert_drawn_from(slice_of(name, noise, 0, place), law_of_slice(name))
    if name == "3 x 2 x 2":
        assert_drawn_from(slice_of(name, noise, 2), law_of_slice(name, 2))


class Counting:
    """How often the referee was asked in each phase."""

    def __init__(self, sampler):
        self.asked, answer = {}, sampler._answer

        def counted(state, room, uniform):
            self.asked[int(state.phase)] = self.asked.get(int(state.phase), 0) + 1
            return answer(state, room, uniform)

        sampler._answer = counted


@pytest.mark.thinned
@pytest.mark.parametrize(
    ("labelling", "options"),
    [
        (PLAIN, {"word_bits": 8}),
        (SOME, {"word_bits": 10}),
        (PLAIN, {"word_bits": 8, "tail_bits": 6}),
        (SOME, {"word_bits": 10, "tail_bits": 8}),
        (PLAIN, {"tail_bits": 5}),
    ],
    ids=str,
)
def test_where_floats_decide_little(labelling, options):
    """Short words and short tables: the referee draws and accepts."""
    sampler = made("one-way, wider", labelling, **options)
    asked = Counting(sampler).asked
    check_short("one-way, wider", sampler, 5_000)
    phases = {DRAW_ROWS, ACCEPT_ROW, ACCEPT_BUNDLE} | ({PICK_LABEL} if labelling == SOME else set())
    assert phases <= set(asked)
    assert sum(asked.values()) > 200


def test_words_of_64_bits_leave_nothing_to_the_referee():
    sampler = sliced("3 x 3 x 2")
    asked = Counting(sampler).asked
    drawn(sampler, 5_000)
    assert not asked


@pytest.mark.parametrize("options", [{}, {"word_bits": 8}])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, options):
    sampler = made("one-way, wider", SOME, **options)
    expected = drawn(sampler, 30)
    plain = Rng.stream
    for length in (1, 2, 7, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, length=length: plain(self, length))
        assert np.array_equal(drawn(sampler, 30), expected)


def test_several_tables_per_draw():
    """Each has its law, and the first cells of two are independent."""
    noise = drawn(sliced("3 x 2 x 2", count=2), COUNT)
    points, chances = law_of_slice("3 x 2 x 2")
    for table in (noise[:, :12], noise[:, 12:]):
        assert_drawn_from(slice_of("3 x 2 x 2", table), (points, chances))
    pairs = [tuple(noise[:, k]) for k in (0, 12)]
    assert abs(np.corrcoef(pairs)[0, 1]) < 5 / np.sqrt(COUNT)


# -- wrong ways ---------------------------------------------------------------------------------------


def with_tables(sampler, **changes):
    sampler._tables = sampler._tables._replace(**changes)
    return sampler


def sums_that_are_kept(patch, name):
    """A rejected bundle alone is drawn again, not what it is connected to: the sums above it stay."""
    sampler = sliced(name)
    return with_tables(sampler, restart=np.arange(sampler._bundles.count))


def too_little_again(patch, name):
    """A rejected bundle begins again from the one before it."""
    sampler = sliced(name)
    return with_tables(sampler, restart=np.maximum(np.arange(sampler._bundles.count) - 1, 0))


def a_factor_forgotten(patch, name):
    """The sums of every bundle are accepted."""
    sampler = sliced(name)
    tables = sampler._tables.splits
    return with_tables(sampler, splits=tables._replace(log_numbers=tables.log_numbers - 5))


def numbers_not_in_the_weights(patch, name):
    """W = F, taken for F t, while factors are still divided by the numbers t."""
    logs = splitting_laws._log_weights
    without = splits.Split.__dataclass_fields__

    def plain(branch, split, block):
        ones = {key: getattr(split, key) for key in without} | {"numbers": np.ones_like(split.numbers)}
        return logs(branch, splits.Split(**ones), block)

    patch.setattr(splitting_laws, "_log_weights", plain)
    sampler = sliced(name)
    groups = sampler._tables.groups
    return with_tables(sampler, groups=groups._replace(ratios=np.zeros_like(groups.ratios)))


def a_bridge_that_is_not_conditioned(patch, name):
    """The row that is solved for is always accepted."""
    sampler = sliced(name)
    tables = sampler._tables.splits
    return with_tables(sampler, splits=tables._replace(peak=tables.peak * 1e-9))


def another_norm(patch, name):
    """The mean of |phi| instead of the norm of as many places: factors exceed 1 and are taken for 1."""
    norms = splits._norms
    patch.setattr(splits, "_norms", lambda laws, error, share, kept: norms(laws, error, 1.0, kept))
    return sliced(name)


WRONG = [
    sums_that_are_kept,
    too_little_again,
    a_factor_forgotten,
    numbers_not_in_the_weights,
    a_bridge_that_is_not_conditioned,
    another_norm,
]
CASE, MANY = "3 x 3 x 3", 300_000


@pytest.mark.thinned
@pytest.mark.parametrize("way", WRONG, ids=lambda way: way.__name__)
def test_a_wrong_sampler_fails(monkeypatch, way):
    noise, law = slice_of(CASE, drawn(way(monkeypatch, CASE), MANY, seed=7)), law_of_slice(CASE)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, MANY) > 1 - 1e-6


def test_another_epsilon_fails():
    noise, law = slice_of(CASE, drawn(splitting("21/20", SLICES[CASE][0], ONE_WAY), COUNT)), law_of_slice(CASE)
    assert_not_drawn_from(noise, law)


# -- these laws ---------------------------------------------------------------------------------------


def test_short_vectors_against_a_box():
    """Of a small table, all of them."""
    matrix = totals_of((2, 2, 2), ONE_WAY)
    box = boxed(2, 8)
    inside = box[(np.abs(box).sum(axis=1) <= 5) & ~(box @ matrix.T).any(axis=1)]
    assert {tuple(row) for row in inside.tolist()} == {tuple(row) for row in short_vectors(matrix, 5).tolist()}


def test_slices_against_enumeration():
    """A slice of a small table, from all tables in a box."""
    cells, chances = slice_law((2, 2, 2), 2.0, 1, 64)
    matrix = totals_of((2, 2, 2), ONE_WAY)
    box = boxed(4, 4)
    total = dict.fromkeys(cells, 0.0)
    slices = box[box.sum(axis=1) == 0]
    margins = slices @ matrix[2:, :4].T
    weights = np.exp(-2.0 * np.abs(slices).sum(axis=1))
    whole = 0.0
    for cell, margin, weight in zip(slices.tolist(), margins, weights, strict=True):
        both = weight * weights[(margins == -margin).all(axis=1)].sum()
        whole += both
        if tuple(cell) in total:
            total[tuple(cell)] += both
    assert [total[cell] / whole for cell in cells] == pytest.approx(chances.tolist(), rel=1e-5)


def test_these_tables_have_several_collapses():
    """And bundles of every sort: roots, grafted ones, and others."""
    sampler = sliced("4 x 4 x 3")
    sorts = {(form.is_root, form.is_grafted) for form in sampler._bundles.forms}
    assert sorts == {(True, False), (False, True), (False, False)}
