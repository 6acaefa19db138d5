"""How near chains come to their target: what is observed, kept, released, recorded and checked again."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import block_diag

import keepsum as ks
from keepsum.convergence import observe as observing
from keepsum.convergence.observe import BlockConvergence, Convergence, MeetingTimeStore
from keepsum.planning.describe import describe_choice
from keepsum.planning.selection import general as choosing_general
from keepsum.planning.selection import l1 as choosing
from keepsum.privacy.guarantee import SamplingError
from keepsum.privacy.numbers import three_digits_up
from support import BY_HEAT_BATH, CYCLE, cycle, margins, table_over


@pytest.fixture(scope="module", autouse=True)
def chains_everywhere():
    """Small tables have exact samplers; without these, and without rejection, chains draw them at little cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "BUDGET", 1)
        patch.setattr(choosing, "REJECTION_PILOT", 1)
        patch.setattr(choosing_general, "BOUNDED", 0)
        patch.setattr(choosing_general, "MIXTURE_PILOT", 2 * 10**7)
        patch.setattr(observing, "WEIGHTS", 2_000)  # as many as the pairs see are examined in any case
        yield


@pytest.fixture(scope="module")
def table():
    return table_over(cycle(2, 3, 2, 3))


@pytest.fixture(scope="module")
def plan(table):
    return ks.plan(keep=table.keep(*CYCLE), mechanism=ks.Laplace.per_unit(epsilon=1))


@pytest.fixture(scope="module")
def certified(plan):
    """The plan with what 500 pairs of its chains showed."""
    return plan.certify(pairs=500)


@pytest.fixture
def fresh(plan):
    """The same plan, of whose chains nothing has been shown."""
    assert plan.convergence is None
    return plan


@pytest.mark.audit
def test_before_and_after(fresh):
    assert fresh.guarantee.sampling == "estimated"
    assert fresh.convergence is None
    assert "not yet measured" in fresh.explain(details=True)
    calls = []
    shown = fresh.certify(pairs=1_000, progress=lambda done, total: calls.append((done, total)))
    found = shown.convergence
    assert calls[-1] == (1_000, 1_000)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    (group,) = found.chains
    assert group.pairs == 1_000
    assert group.unmet == 0
    assert group.bound.estimate == 0
    # Zero observed is not zero: 1,000 pairs cannot show less than about 3 in 1,000.
    assert 3 / 1_000 < group.upper < 6 / 1_000
    assert 1e-9 <= group.extrapolated < 1e-6
    assert fresh.convergence is None
    assert type(shown) is ks.Plan
    assert shown.samplers is fresh.samplers
    assert found.error == SamplingError(group.upper, group.extrapolated, 0.95, 1_000)
    assert "from 1,000 pairs of coupled chains" in " ".join(shown.explain(details=True).split())
    assert "BlockConvergence(" in repr(found)
    assert "1,000 pairs; total variation at most" in repr(found)


@pytest.mark.audit
def test_what_is_found_is_kept_and_a_run_goes_on(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path))
    first = fresh.certify(pairs=200).convergence
    (file,) = (tmp_path / "convergence").iterdir()
    assert len(json.loads(file.read_text().split("\n")[1])) == 1  # chunk of 250
    drawn = []
    chain = fresh.samplers[0].chain
    original = type(chain).meeting_times

    def counted(self, pairs, *arguments):
        drawn.append(pairs)
        return original(self, pairs, *arguments)

    monkeypatch.setattr(type(chain), "meeting_times", counted)
    assert fresh.certify(pairs=200).convergence == first
    assert not drawn
    more = fresh.certify(pairs=400).convergence
    assert drawn == [250]
    assert more.chains[0].pairs == 400
    # Another cache, and no threads to speak of: the same pairs.
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path / "other"))
    assert fresh.certify(pairs=400, threads=1).convergence == more


DAMAGED = ["[[1, 2]]", '{"a": 1}', "[[1.5]]", *(str([[time] * 250]) for time in (0, 10**30))]


@pytest.mark.parametrize("damage", ["", *(pytest.param(text, marks=pytest.mark.audit) for text in DAMAGED)])
def test_a_damaged_cache_is_drawn_again(fresh, tmp_path, monkeypatch, damage):
    """Also where the damage was done before it was stored."""
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path))
    found = fresh.certify(pairs=250).convergence
    (file,) = (tmp_path / "convergence").iterdir()
    for digest in ("", MeetingTimeStore(file.stem, 1, 10)._digest(damage) + "\n"):
        file.write_text(digest + damage)
        assert fresh.certify(pairs=250).convergence == found


def test_a_cache_that_cannot_be_written_to_keeps_nothing(fresh, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path / "file"))
    assert fresh.certify(pairs=250).convergence.chains[0].pairs == 250


def test_a_cut_run_leaves_whole_chunks(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path))

    def stop(done, _):
        if done >= 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fresh.certify(pairs=2_000, progress=stop)
    (file,) = (tmp_path / "convergence").iterdir()
    assert len(json.loads(file.read_text().split("\n")[1])) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pairs": 5}, "number of pairs must be a whole number from 20 to 1,000,000, got 5"),
        ({"pairs": True}, "number of pairs"),
        ({"confidence": 1}, r"confidence must lie between 0\.5 and 0\.9999, got 1"),
        ({"progress": 5}, "progress= must be a function"),
        ({"threads": 0}, "number of threads"),
    ],
)
def test_wrong_arguments(fresh, arguments, words):
    with pytest.raises(ks.InputError, match=words):
        fresh.certify(**arguments)


def test_exact_plans_have_nothing_to_show(children):
    plan = ks.plan(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    found = plan.certify().convergence
    assert found.chains == ()
    assert found.error.distance == 0
    assert plan.guarantee.error is None


@pytest.mark.audit
def test_limits_of_several_chains_hold_together():
    """Two tables of different forms: each limit at half the error, and their sum is the plan's."""
    first, second = cycle(2, 3, 2, 3).coefficients, cycle(2, 2, 3, 3).coefficients
    plan = ks.plan(
        keep=ks.Invariants.matrix(block_diag((first, second)).toarray()), mechanism=ks.Laplace.per_unit(epsilon=1)
    )
    found = plan.certify(pairs=300).convergence
    assert [group.confidence for group in found.chains] == [0.975, 0.975]
    assert found.confidence == 0.95
    assert found.error.distance == pytest.approx(sum(group.upper for group in found.chains))
    with pytest.raises(ks.InputError, match="of this plan's chains"):
        plan._record.with_convergence(Convergence((found.groups[0], None), 0.0, 0.95))


@pytest.mark.audit
def test_at_large_epsilon_the_cheaper_chain_is_taken():
    """A cube under all two-way margins: mixture proposals are seldom accepted, heat-bath moves meet sooner."""
    keep, _ = BY_HEAT_BATH
    for epsilon, words in (("0.25", "steps of a chain of mixture proposals"), ("1", "sweeps of heat-bath moves")):
        (choice,) = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon)).samplers
        assert words in describe_choice(choice)


# -- releases ----------------------------------------------------------------------------------------


@pytest.mark.audit
def test_a_release_by_chains_is_certified_recorded_and_verified(certified, table, tmp_path):
    out = certified.release(table, accept_delta="0.99")
    record = out.certificate.guarantee
    assert record.sampling.exactness == "estimated"
    (block,) = record.blocks
    assert block.exactness == "estimated"
    assert block.convergence.pairs == 500
    assert sum(count for _, count in block.convergence.meetings) == 500
    assert (record.sampling.total_variation, record.sampling.confidence) == (block.total_variation, 0.95)
    assert Fraction(record.sampling.delta) >= Fraction(block.total_variation) * Fraction("3.7")
    (warning,) = (sentence for sentence in out.certificate.warnings if "drawn by chains" in sentence)
    assert warning.endswith(". l2 Laplace and Gaussian noise are exact under nearly all totals.")
    shown = out.certificate._repr_html_()
    assert " from sampling (95% confidence limit; " in shown
    assert " extrapolated) per unit of distance." in shown
    path = out.save(tmp_path / "out.csv")
    assert ks.verify(path), ks.verify(path)
    again = ks.Certificate.from_json((tmp_path / "out.certificate.json").read_bytes()).plan()
    assert str(again.guarantee) == str(certified.guarantee)


def test_a_delta_from_sampling_must_be_accepted(certified, table):
    """A limit of 0.02 is nothing to publish unasked; the sentence names it, says what it is, and what is exact."""
    plan = certified
    delta = plan.guarantee.sampling_delta(plan.person)
    assert plan.person is None  # four margins in a cycle: what one person needs is not known
    assert delta > Fraction(1, 10**6)
    with pytest.raises(ks.PlanError) as refused:
        plan.release(table)
    words = str(refused.value)
    assert f"Sampling adds delta {three_digits_up(float(delta))} per unit of distance" in words
    assert "a confidence limit from coupled chains, not a proved bound" in words
    assert "l2 Laplace and Gaussian noise are exact under nearly all totals." in words
    with pytest.raises(ks.PlanError, match="accept_delta="):
        plan.release(table, accept_delta=delta / 2)
    assert plan.release(table, accept_delta=delta).certificate.guarantee.sampling.exactness == "estimated"
    with pytest.raises(ks.PlanError, match="accept_delta="):  # what is accepted is the most, also where it is little
        plan.release(table, accept_delta="1e-12")
    for wrong in (0, "much", -1, 1, 2, [0.1]):
        with pytest.raises(ks.InputError, match="The accepted delta must be"):
            plan.release(table, accept_delta=wrong)


def test_what_cannot_be_accepted_is_refused_before_it_is_measured(fresh, table, monkeypatch):
    """The limit from pairs that all meet in time is known beforehand; no measured one is below it."""
    monkeypatch.setattr(observing, "DEFAULT_PAIRS", 500)
    assert 0 < fresh._record.smallest_error.distance <= fresh.certify().convergence.error.distance
    monkeypatch.setattr(observing, "observe", lambda *arguments: pytest.fail("it was measured"))
    least = replace(fresh.guarantee, error=fresh._record.smallest_error).sampling_delta(fresh.person)
    for accepted in (None, "1e-6", least / 2):
        with pytest.raises(ks.PlanError) as refused:
            fresh.release(table, accept_delta=accepted)
        words = str(refused.value)
        assert f"will not be below {three_digits_up(float(least))}; it was not measured." in words
        assert "l2 Laplace and Gaussian noise are exact under nearly all totals." in words
        assert words.endswith("measure it by plan.certify() and accept it with accept_delta=DELTA.")
    with pytest.raises(pytest.fail.Exception, match="it was measured"):
        fresh.release(table, accept_delta="0.99")


def test_the_plan_names_what_is_exact_and_says_what_is_proved(certified):
    text = " ".join(certified.explain(details=True).split())
    assert "The loss is proved for the target; the confidence limit and the extrapolation are not." in text
    assert "no per-person loss is stated: how far a change of a or b or c or d reaches is not known" in text


def test_a_release_certifies_what_is_not_certified(fresh, table, monkeypatch):
    monkeypatch.setattr(observing, "DEFAULT_PAIRS", 500)
    out = fresh.release(table, accept_delta="0.99")
    assert out.certificate.guarantee.blocks[0].convergence.pairs == 500


def test_a_plan_recalls_only_what_is_about_its_chains(fresh):
    """A chain of which nothing was shown would count as exact."""
    for groups in ((), (None,)):
        with pytest.raises(ks.InputError, match="of this plan's chains"):
            fresh._record.with_convergence(Convergence(groups, 0.0, 0.95))


def test_rounding_is_in_every_figure(certified, table, tmp_path):
    """Pairs are made of the same floats and cannot see them: they come on top of the limit and of the extrapolation."""
    plain, rounded = (BlockConvergence(1, 50, 10, 1_000, ((1, 4_000),), 0, 0.95, 0.0, f) for f in (0.0, 1e-7))
    assert rounded.upper == pytest.approx(plain.upper + 1e-7, rel=1e-12)
    assert rounded.extrapolated == pytest.approx(plain.extrapolated + 1e-7, rel=1e-12)
    found = certified.convergence
    (group,) = found.chains
    assert 0 < group.rounding == certified.samplers[0].chain.rounding
    assert group.extrapolated >= 1e-9 + group.rounding
    assert group.upper > group.bound.upper
    assert found.error.extrapolated == group.extrapolated
    out = certified.release(table, accept_delta="0.99")
    record = out.certificate.guarantee.blocks[0].convergence
    assert (record.rounding, record.extrapolated) == (group.rounding, group.extrapolated)
    assert ks.verify(out.save(tmp_path / "out.csv"))


def test_a_large_table_rounds_more_than_its_steps_are_meant_for():
    """20 x 20: what was called an extrapolation to 1e-9 is forty times that in floats."""
    from keepsum.sampling.general.chains import MixtureChain
    from keepsum.sampling.general.mixture import Mixture
    from keepsum.sampling.general.scales import table_slabs

    keep = margins(20, 20)
    mixture = Mixture.of(0.25, table_slabs(np.arange(400).reshape(20, 20)), keep.coefficients, np.ones(400, int), 0.1)
    chain = MixtureChain(Fraction(1, 4), mixture, np.ones(400, int), 1, steps=130, tries=2.25)
    assert 1e-8 < chain.rounding < 1e-7
    chain.steps = 1300
    assert chain.rounding > 1.5 * mixture.rounding.by_chain(600)


def test_the_cap_is_part_of_what_is_kept_pairs_for(plan):
    (choice,) = plan.samplers
    before, cap = choice.chain.fingerprint(), choice.chain.log_cap
    choice.chain.log_cap = cap + 0.1
    try:
        assert choice.chain.fingerprint() != before
    finally:
        choice.chain.log_cap = cap


@pytest.mark.audit
def test_too_few_steps_are_predicted(table):
    plan = ks.plan(keep=table.keep(*CYCLE), mechanism=ks.Laplace.per_unit(epsilon=1))
    (choice,) = plan.samplers
    assert choice.chain.predicted_distance(20_000) < 1e-6
    choice.chain.steps = 0  # the first candidate alone, which is meant to be within 0.05
    assert 0.03 < choice.chain.predicted_distance(20_000) < 0.07
    assert plan.certify(pairs=250).convergence.error.distance > 0.03


def test_the_plan_of_anonymous_cells_keeps_what_it_knows(table):
    """A plan without names takes those of the table; nothing is worked out again."""
    keep = ks.Invariants.matrix(table.keep(*CYCLE).coefficients)
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
    plan = plan.certify(pairs=250)
    named = plan._record.over(table.domain)
    assert named.samplers is plan.samplers
    assert named.convergence is plan.convergence


def test_rounded_plans_state_their_rounding(table, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing_general, "BOUNDED", 600)
    out = ks.release(table, keep=CYCLE, mechanism=ks.Laplace.per_unit(epsilon=0.25))
    record = out.certificate.guarantee
    assert record.sampling.exactness == "rounded"
    assert 0 < record.blocks[0].total_variation < 1e-6
    assert 0 < Fraction(record.sampling.delta) < Fraction(1, 10**6)
    assert ks.verify(out.save(tmp_path / "out.csv"))
