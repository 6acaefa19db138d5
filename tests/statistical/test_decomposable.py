"""Noise under decomposable sets of kept margins against its exact probabilities: from the sampler, and from plans.

The tests have an error rate of 1e-6 together; each is a chi-square of the joint probabilities of two or three sums.
"""

import json
from fractions import Fraction

import numpy as np
import pytest
from decomposable_laws import assert_no_total, least_p, p_value, sums_of_entries
from decomposable_systems import SYSTEMS, System, at
from laws import ALPHA, power
from scipy import sparse
from test_elimination_wrong import SHARP, STAR, WIDE, Case

import keepsum as ks
from keepsum.lattice.families import collapses_of
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting import laws
from keepsum.sampling.l1.splitting.bundles import SplitTable
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_ROW, DRAW_SOLVED
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import Splitting
from support import mostly_audit

TESTS = 500  # at most so many share the error rate
COUNT = 30_000
SOME, TAGGED = Labelling(3, 2), Labelling(4, 2, 3)


class Counting(Splitting):
    """The sampler, and how often its referee was asked in each phase."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.asked = {}

    def _answer(self, state, room, uniform):
        phase = int(state.phase)
        self.asked[phase] = self.asked.get(phase, 0) + 1
        return super()._answer(state, room, uniform)


def regions(system):
    """The region of each entry (-1 for a structural zero), the number of cells of each, and the totals over them."""
    present = np.flatnonzero(system.cells)
    distinct, numbers = np.unique(system.totals[:, present], axis=1, return_inverse=True)
    region = np.full(system.entries, -1)
    region[present] = numbers.reshape(-1)
    sizes = np.bincount(region[present], system.cells[present]).astype(np.int64)
    return region, sizes, sparse.csr_array(distinct.astype(np.int64))


def made(system, kind=Splitting, **options):
    """The sampler of a system."""
    _, sizes, totals = regions(system)
    collapses = collapses_of(totals)
    assert collapses is not None, "not recognised"
    return kind(Fraction(system.epsilon), SplitTable(sizes[:, None], collapses), **options)


def drawn(system, sampler, count, seed=1):
    """The sums of all entries; cells of a region go to its entries in turn, which no probability depends on."""
    out = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(out, rng(seed=seed))
    return by_entry(system, out)


def by_entry(system, noise):
    """The sums of entries from the cells of regions."""
    region, sizes, _ = regions(system)
    order = np.argsort(region[region >= 0], kind="stable")
    present = np.flatnonzero(region >= 0)[order]
    assert noise.shape[1] == sizes.sum()
    sums = np.zeros((len(noise), system.entries), dtype=np.int64)
    sums[:, present] = sums_of_entries(noise, system.cells[present])
    return sums


def check(system, entries, tests=TESTS):
    """All totals are 0, and the statistics of the system have their probabilities."""
    assert_no_total(entries, system.totals)
    for forms in system.statistics:
        assert p_value(entries @ np.array(forms).T, system.law.joint(*forms)) > least_p(tests)


@mostly_audit("name", SYSTEMS)
def test_the_sampler(name):
    system = SYSTEMS[name]
    check(system, drawn(system, made(system), COUNT))


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["3/10", "3/4", "2"])
@pytest.mark.parametrize("name", ["one-way 2 x 2 x 2", "chain of 2", "county x sex, state x age", "one-way, regions"])
def test_the_sampler_at_other_epsilons(name, epsilon):
    system = at(name, epsilon)
    check(system, drawn(system, made(system), 100_000))


@mostly_audit("labelling", [Labelling(4, 1), Labelling(3, 3), TAGGED], ids=str)
@pytest.mark.parametrize("name", ["one-way 4 x 3 x 2", "star, unequal", "chain of 3, regions", "nested with zeros"])
def test_labels(name, labelling):
    system = SYSTEMS[name]
    check(system, drawn(system, made(system, labelling=labelling), COUNT))


SHORT = ["one-way 3 x 2 x 2", "nested with zeros", "chain of 3", "star of 2 and an axis alone", "chain with zeros"]


TAGGED_WORDS = {"word_bits": 8, "labelling": TAGGED}


@mostly_audit(
    "options", [{"word_bits": 8}, {"word_bits": 4}, {"word_bits": 8, "labelling": SOME}, TAGGED_WORDS], ids=str
)
@pytest.mark.parametrize("name", SHORT)
def test_short_words(name, options):
    """Most is left to the referee."""
    system = SYSTEMS[name]
    sampler = made(system, Counting, **options)
    entries = drawn(system, sampler, 2_000)
    assert {DRAW_SOLVED, ACCEPT_ROW} <= set(sampler.asked)
    assert sum(sampler.asked.values()) > 100
    check(system, entries)


@mostly_audit("tail_bits", [5])
@pytest.mark.parametrize("name", [name for name in SHORT if name != "chain with zeros"])
def test_short_tables(name, tail_bits):
    """Sums beyond the tables are left to the referee."""
    system = at(name, "3/2")
    sampler = made(system, Counting, tail_bits=tail_bits)
    entries = drawn(system, sampler, 3_000)
    assert sum(sampler.asked.values()) > 20
    check(system, entries)


def test_long_words_and_tables_leave_nothing_to_the_referee():
    system = SYSTEMS["chain of 3"]
    sampler = made(system, Counting)
    drawn(system, sampler, COUNT)
    assert not sampler.asked


def accepting(sampler):
    """Every bundle is accepted."""
    splits = sampler._tables.splits
    sampler._tables = sampler._tables._replace(splits=splits._replace(log_numbers=splits.log_numbers - 5))
    return sampler


def keeping(sampler):
    """What a rejected bundle is a part of is not drawn again."""
    sampler._tables = sampler._tables._replace(restart=np.arange(len(sampler._tables.restart)))
    return sampler


def unconditioned(sampler):
    """The row that is solved for is always accepted."""
    splits = sampler._tables.splits
    sampler._tables = sampler._tables._replace(splits=splits._replace(peak=splits.peak * 1e-9))
    return sampler


CASES = {"one-way": SHARP, "one-way, wide": WIDE, "star": STAR}
SUMS = 60_000


def drawn_sums(case, sampler, seed=1):
    """The sums of a case, and their probabilities."""
    entries = drawn(case.system, sampler, SUMS, seed)
    assert_no_total(entries, case.system.totals)
    return entries @ np.array(case.forms).T, case.system.law.joint(*case.forms, reach=3)


@pytest.mark.parametrize("name", CASES)
def test_sums_that_tell_right_from_wrong(name):
    assert p_value(*drawn_sums(CASES[name], made(CASES[name].system))) > least_p(TESTS)


@pytest.mark.parametrize("name", ["one-way", "star"])
@pytest.mark.parametrize("wrong", [accepting, keeping, unconditioned])
def test_a_wrong_sampler_fails(name, wrong):
    values, law = drawn_sums(CASES[name], wrong(made(CASES[name].system)), seed=7)
    assert p_value(values, law) < ALPHA
    assert power(values, law, SUMS) > 1 - 1e-6


def handing_another_tag(sampler):
    """The labels of the table below are those of the first tag, whatever tag its rows were drawn with."""
    sampler._tables = sampler._tables._replace(tags=np.zeros_like(sampler._tables.tags))
    return sampler


def not_sharing(patch):
    """Rows of one kind are drawn with the tag, and those of the other with the first one."""
    group_of, kinds = laws.group_of, {}

    def wrong(groups, number):
        tagged = len(groups) == TAGS.tags  # and not TAGS.groups for each, as further nodes have
        kind = kinds.setdefault(id(groups), len(kinds)) if tagged else 1
        return group_of(groups, number if kind % 2 else 0)

    patch.setattr(laws, "group_of", wrong)


def mixing_tags(patch):
    """Labels are sorted into groups whatever their tags, and take that of the first."""
    right = laws._grouped
    patch.setattr(laws, "_grouped", lambda *arguments: right(*arguments[:-1], ()))


TAGS = Labelling(8, 2, 6)
TWO_KINDS = np.where(np.indices((4, 3, 2))[:2].sum(axis=0) % 2, 2, 1).reshape(-1).tolist()  # cells of each entry
TWO_KINDS = Case(System({"A": 4, "B": 3, "C": 2}, "A B C", "2", sizes=TWO_KINDS), SHARP.sums)


@pytest.mark.parametrize("case", [SHARP, WIDE, TWO_KINDS], ids=["sharp", "wide", "two kinds"])
def test_tags_pass(case):
    sampler = made(case.system, labelling=TAGS)
    assert max(len(set(own)) for own in [[base.tag for base in form.bases] for form in sampler._laws.forms]) > 1
    assert p_value(*drawn_sums(case, sampler)) > least_p(TESTS)


@pytest.mark.parametrize("wrong", [handing_another_tag, not_sharing, mixing_tags])
def test_wrong_tags_fail(monkeypatch, wrong):
    case = TWO_KINDS if wrong is not_sharing else SHARP
    if wrong is handing_another_tag:
        sampler = wrong(made(case.system, labelling=TAGS))
    else:
        wrong(monkeypatch)
        sampler = made(case.system, labelling=TAGS)
    values, law = drawn_sums(case, sampler, seed=7)
    assert p_value(values, law) < ALPHA
    assert power(values, law, SUMS) > 1 - 1e-6


def planned(system):
    """A plan for the matrix of the system's totals over its cells."""
    return ks.plan(keep=system.matrix, mechanism=ks.Laplace.per_unit(epsilon=Fraction(system.epsilon)))


@mostly_audit("name", SYSTEMS)
def test_a_plan(name):
    """Any matrix of the totals, whatever sampler it leads to, is exact and has these probabilities."""
    system = SYSTEMS[name]
    plan = planned(system)
    assert {choice.exactness for choice in plan.samplers} == {"exact"}
    noise = plan.sample(15_000, rng=ks.rng(seed=2))
    check(system, sums_of_entries(system.in_order(noise), system.cells))


CROSSED = [["county", "age", "sex"], [["county", "age"], ["age", "sex"]], [["county", "age"], ["county", "sex"]]]


@pytest.mark.parametrize("keep", CROSSED, ids=str)
def test_a_release_is_verified(keep, tmp_path):
    """The certificate names the method, and a total that is changed in the table fails."""
    table = ks.Table.from_array(
        np.arange(36).reshape(3, 3, 2, 2),
        axes={"county": ["A", "B", "C"], "age": ["0", "1", "2"], "sex": ["f", "m"], "time": ["am", "pm"]},
    )
    release = ks.release(table, keep=[*keep, "time"], mechanism=ks.Laplace.per_unit(epsilon=1))
    path = release.save(tmp_path / "released.csv")
    certificate = json.loads((tmp_path / "released.certificate.json").read_bytes())
    (block,) = certificate["guarantee"]["blocks"]
    assert (block["sampler"]["method"], block["exactness"]) == ("axis_elimination", "exact")
    assert ks.verify(path)
    lines = path.read_text().splitlines()
    labels, count = lines[1].rsplit(",", 1)
    path.write_text("\n".join([lines[0], f"{labels},{int(count) + 1}", *lines[2:]]) + "\n")
    assert [check.name for check in ks.verify(path).checks if not check.passed] == ["hash", "kept totals"]
