"""Noise of a user's own: what is checked of it, and that every face says whose claim its loss is."""

import importlib.util
import json
import math
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.accounting.total import Cost
from keepsum.planning.plan import compile_plan
from keepsum.privacy import mechanism_of
from keepsum.privacy.calibration import epsilon_of
from keepsum.privacy.guarantee import USUAL_DELTA
from keepsum.privacy.profile import smallest_epsilon
from keepsum.releasing.certificate import certificate_topics
from keepsum.releasing.wording import as_text, warnings_of
from keepsum.report.claims import claim_of
from keepsum.report.writing import report_html
from releasing.verifying import edit, failures

EXAMPLES = Path(__file__).parents[2] / "examples"
LAPLACE = ks.Laplace.per_unit(epsilon=1)
CLAIM = "as its publisher claims"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAMPLER, MECHANISM = example("own_sampler"), example("own_mechanism")


def small_table():
    return ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})


def own(draw, mechanism=LAPLACE, **named):
    return ks.OwnNoise(mechanism, draw, **({"name": "mine", "version": "1.0"} | named))


@pytest.fixture(scope="module")
def release():
    return MECHANISM.main()


@pytest.fixture
def saved(release, tmp_path):
    release.save(tmp_path / "out.csv")
    return tmp_path / "out.csv"


# -- what the package checks of a sampler -----------------------------------------------------------


def steps(draws, rng):
    return np.array([rng.below(7) - 3 for _ in range(draws)], dtype=np.int64)


def walk(lattice, mechanism, draws, rng):
    """Quick, and without any proof of its loss."""
    return np.outer(steps(draws, rng), lattice.basis.sum(axis=1))


def breaks_a_total(lattice, mechanism, draws, rng):
    rows = np.outer(steps(draws, rng), lattice.basis[:, 0])
    rows[:, 0] += 1
    return rows


def of_floats(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, rng), lattice.basis[:, 0]).astype(float)


def of_small_integers(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, rng), lattice.basis[:, 0]).astype(np.int32)


def a_list(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, rng), lattice.basis[:, 0]).tolist()


def one_row_less(lattice, mechanism, draws, rng):
    return np.outer(steps(draws - 1, rng), lattice.basis[:, 0])


def too_wide(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, rng) * 2**61, lattice.basis[:, 0])


def of_other_randomness(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, ks.rng()), lattice.basis[:, 0])


def of_a_fixed_seed(lattice, mechanism, draws, rng):
    return np.outer(steps(draws, ks.rng(seed=1)), lattice.basis[:, 0])


REFUSED = {
    breaks_a_total: "must keep every total exactly",
    of_floats: "must return an array of int64",
    of_small_integers: "must return an array of int64",
    a_list: "must return an array of int64",
    one_row_less: "must return noise of shape",
    too_wide: "from -2\\^62 to 2\\^62",
    of_other_randomness: "equal sources gave other noise",
    of_a_fixed_seed: "gave the same noise",
}


@pytest.mark.parametrize(("draw", "words"), REFUSED.items(), ids=[draw.__name__ for draw in REFUSED])
def test_a_wrong_sampler_is_refused_by_a_trial(draw, words):
    """Before anything is charged or drawn: preparing a release chooses its samplers."""
    plan = ks.plan(keep=[[1, 1, 1]], mechanism=own(draw))
    with pytest.raises(ks.InputError, match=words):
        plan.sample(2)
    with pytest.raises(ks.InputError, match=words):
        ks.release(small_table(), keep=["county"], mechanism=own(draw))


def test_every_draw_is_checked_and_not_the_trial_alone():
    calls = []

    def later(lattice, mechanism, draws, rng):
        calls.append(draws)
        rows = np.outer(steps(draws, rng), lattice.basis[:, 0])
        return rows if len(calls) <= 3 else rows + 1

    plan = ks.plan(keep=[[1, 1, 1]], mechanism=own(later))
    with pytest.raises(ks.InputError, match="must keep every total exactly"):
        plan.sample(2)
    assert len(calls) == 4


def test_noise_that_is_none_has_no_margins():
    plan = ks.plan(
        keep=[[1, 1, 1]], mechanism=own(lambda lattice, _, draws, rng: np.zeros((draws, lattice.width), dtype=np.int64))
    )
    with pytest.raises(ks.InputError, match="draws of it had none"):
        plan.accuracy()


def test_a_sampler_is_given_nothing_confidential():
    given = []

    def draw(*arguments, **named):
        given.append((arguments, named))
        return walk(*arguments)

    ks.release(small_table(), keep=["county"], mechanism=own(draw, ks.Laplace(epsilon=2)), rng=ks.rng(seed=1))
    assert len(given) == 5  # a trial of three, margins of error, and the noise
    for (lattice, mechanism, draws, rng), named in given:
        assert lattice.matrix.toarray().tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
        assert mechanism == ks.Laplace.per_unit(epsilon=Fraction(1, 2)).resolve()
        assert isinstance(draws, int)
        assert isinstance(rng, ks.Rng)
        assert not named


def test_pinned_cells_and_overlapping_totals():
    keep = [[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0]]
    noise = ks.plan(keep=keep, mechanism=own(SAMPLER.draw)).sample(20, rng=ks.rng(seed=1))
    assert not (noise @ np.transpose(keep)).any()
    assert not noise[:, 3].any()
    assert noise.any(axis=0).tolist() == [True, True, True, False, True]


# -- laws of the skeletons --------------------------------------------------------------------------

QUANTILE = 33.38  # 1 - 1e-6 of chi-square with 4 degrees of freedom


def chi_square(plan, weight, draws):
    """Pearson's statistic of the noise (k, -k) against weights of k: -1, 0, 1, and what is below and above."""
    law = np.array([weight(k) for k in range(-2000, 2001)])
    parts = np.array([law[:1999].sum(), *law[1999:2002], law[2002:].sum()])
    expected = draws * parts / law.sum()
    assert expected.min() >= 100
    found = np.clip(plan.sample(draws, rng=ks.rng(seed=11))[:, 0], -2, 2)
    return float(((np.bincount(found + 2, minlength=5) - expected) ** 2 / expected).sum())


def test_the_law_of_the_own_sampler_and_that_a_wrong_one_is_rejected():
    keep = [[1, 1]]
    right, wrong = (own(SAMPLER.draw, ks.Laplace.per_unit(epsilon=e)) for e in ("1/2", "1/4"))
    assert chi_square(ks.plan(keep=keep, mechanism=right), lambda k: math.exp(-abs(k)), 1300) < QUANTILE
    assert chi_square(ks.plan(keep=keep, mechanism=wrong), lambda k: math.exp(-abs(k)), 1300) > QUANTILE


def test_the_law_of_the_own_mechanism_and_that_a_wrong_one_is_rejected():
    """In a cell under no total, where tails are heavy enough to tell."""
    plan = ks.plan(keep=[[0, 1]], mechanism=MECHANISM.noise())
    wrong = own(SAMPLER.draw, ks.Laplace.per_unit(epsilon="11/6"))
    assert chi_square(plan, lambda k: (1.0 + k * k) ** -2, 3000) < QUANTILE
    assert chi_square(ks.plan(keep=[[0, 1]], mechanism=wrong), lambda k: (1.0 + k * k) ** -2, 3000) > QUANTILE


def test_the_example_of_an_own_sampler_runs():
    released = SAMPLER.main()
    assert released.table.counts.sum() == 46
    assert "the sampler 'rejection of independent cells 1'" in " ".join(released.certificate.warnings)


def test_the_claimed_loss_of_the_own_mechanism_holds():
    steps_of_one = [abs(math.log((1 + (k + 1) ** 2) / (1 + k * k))) * 2 for k in range(-1000, 1000)]
    assert max(steps_of_one) <= MECHANISM.LOSS
    with pytest.raises(ks.InputError, match="Claim that much"):
        ks.plan(keep=[[1, 1]], mechanism=own(MECHANISM.draw, ks.Laplace.per_unit(epsilon=1))).sample()


# -- margins of error -------------------------------------------------------------------------------


def test_margins_of_error_are_those_of_draws():
    exact = ks.plan(keep=[[1, 1, 1]], mechanism=LAPLACE).accuracy()
    found = ks.plan(keep=[[1, 1, 1]], mechanism=own(SAMPLER.draw)).accuracy()
    assert (found.basis, found.draws) == ("estimated", 1000)
    assert exact.basis == "exact"
    assert (np.abs(found.margins - exact.margins) <= 1).all()
    assert (found.margins >= exact.margins).all()


def test_margins_of_sums_and_of_all_cells_at_once(release):
    assert release.marginal([]).kept
    each, at_once = release.accuracy(), release.accuracy(simultaneous=True)
    assert (at_once.margins >= each.margins).all()
    assert release.marginal(["sex"]).accuracy().basis == "estimated"


def test_no_law_is_known(release):
    for ask in (lambda: release.noise, lambda: release.interval(0), lambda: release.plan.noise):
        with pytest.raises(ks.InputError, match="that of noise of your own is not"):
            ask()
    with pytest.raises(ks.InputError, match="Tail bounds need"):
        release.plan.tail_bound(20)


# -- what is said -----------------------------------------------------------------------------------


def test_a_plan_says_whose_claim_its_loss_is(release):
    plan = release.plan
    assert plan.guarantee.sampling == "claimed"
    for text in (str(plan.guarantee), plan.explain(), plan.explain(details=True), plan._repr_html_()):
        assert CLAIM in " ".join(text.split())
    text = " ".join(plan.explain(details=True).split())
    assert "Its distribution and its loss are claims, which Keepsum neither proves nor checks." in text
    assert "The publisher claims, and Keepsum neither proves nor checks, that whatever anybody concludes" in text
    assert "their distribution is claimed: 1 / (1 + z^2)^2 for each cell" in text
    assert "not compared, as the loss is a claim" in text


def test_a_certificate_says_so_and_verifies(release, saved):
    record = json.loads((saved.parent / "out.certificate.json").read_bytes())
    claim = record["mechanism"]["claim"]
    assert record["mechanism"]["name"] == "own"
    assert claim["source"] is not None
    del claim["source"]
    assert claim == {
        "loss": "laplace",
        "name": "heavy tails",
        "version": "1",
        "law": "1 / (1 + z^2)^2 for each cell, over all z that keep every total",
        "parameters": {"power": "2"},
    }
    assert record["guarantee"]["sampling"]["exactness"] == "claimed"
    verified = ks.verify(saved)
    assert verified
    assert "is the publisher's own claim, and was not checked" in repr(verified)
    read = ks.read_release(saved)
    for text in (repr(read), repr(read.certificate), as_text(certificate_topics(read.certificate._record))):
        assert CLAIM in " ".join(text.split())
    assert any("neither proves nor checks" in sentence for sentence in read.certificate.warnings)
    with pytest.raises(ks.NoSamplerError, match="its sampler is not in the certificate"):
        read.plan.sample()
    with pytest.raises(ks.NoSamplerError, match="are made where it was released"):
        read.accuracy()


def test_a_page_and_a_registry_say_so(release):
    page = report_html(release._published, release._compiled, 0.95)
    assert CLAIM in page
    assert "which Keepsum neither proves nor checks" in page
    claim = claim_of(release.certificate._record)
    assert (claim.epsilon, claim.delta, claim.rho) == (None, None, None)
    assert "a claim that nobody has proved or checked" in " ".join(claim.reasons)


def test_a_table_without_negative_counts_is_still_claimed(release, tmp_path):
    changed = ks.postprocess.nonnegative(release)
    changed.save(tmp_path / "out.csv")
    assert ks.verify(tmp_path / "out.csv")
    assert "neither proves nor checks" in " ".join(warnings_of(changed.certificate._record))


@pytest.mark.parametrize("mechanism", [ks.Laplace(epsilon=1, norm="l2"), ks.Gaussian(rho="1/8"), ks.Gaussian(sigma=3)])
def test_other_losses_can_be_claimed(mechanism, tmp_path):
    noise = own(walk, mechanism)
    released = ks.release(small_table(), keep=["county"], mechanism=noise)
    released.save(tmp_path / "out.csv")
    assert ks.verify(tmp_path / "out.csv")
    assert CLAIM in repr(released)


@pytest.mark.parametrize("mechanism", [ks.Gaussian(rho="1/2"), ks.Gaussian(sigma=2)])
def test_a_claimed_rho_is_converted_as_any_rho(mechanism):
    """The rule of the lines is about Gaussian noise; it does not hold for every noise of that rho."""
    rho = Fraction(1, 2)
    found = {}
    for law in (None, "anything"):
        plan = ks.plan(
            ks.Domain({"a": ["x", "y"], "b": ["f", "m"]}), keep=["a", "b"], mechanism=own(walk, mechanism, law=law)
        )
        assert plan.guarantee.stated_loss.rho == rho
        found[law] = plan.guarantee.usual_loss.epsilon
    assert found == {
        None: smallest_epsilon(rho, USUAL_DELTA),  # Gaussian noise by another sampler
        "anything": epsilon_of(rho, USUAL_DELTA),
    }
    assert found[None] < found["anything"]


@pytest.mark.parametrize(
    "mechanism", [ks.Gaussian(epsilon=1, delta="1e-6"), ks.Laplace(epsilon=1, focus={"county": 1}), "l1", None]
)
def test_other_losses_cannot(mechanism):
    with pytest.raises(ks.InputError):
        own(SAMPLER.draw, mechanism)


WRONG = [
    {"name": ""}, {"name": "a\nb"}, {"version": 1}, {"law": ""}, {"law": "a\u202eb"}, {"parameters": {"A": 1}},
    {"parameters": {"a": "<b>"}}, {"parameters": {"a": 10**5000}}, {"parameters": {"a": None}},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_names_are_plain_texts(wrong):
    with pytest.raises(ks.InputError):
        own(SAMPLER.draw, **wrong)


# -- what is refused --------------------------------------------------------------------------------


def drop_the_claim(record):
    del record["mechanism"]["claim"]


def call_it_laplace(record):
    drop_the_claim(record)
    record["mechanism"]["name"] = "laplace"


def call_it_laplace_but_keep_the_claim(record):
    record["mechanism"]["name"] = "laplace"


def call_it_exact(record):
    for part in (record["guarantee"]["sampling"], *record["guarantee"]["blocks"]):
        part["exactness"] = "exact"


def name_a_method_of_ours(record):
    for block in record["guarantee"]["blocks"]:
        block["sampler"]["method"], block["exactness"] = "part_by_part", "exact"
    record["guarantee"]["sampling"]["exactness"] = "exact"


def claim_less(record):
    record["mechanism"]["parameters"]["epsilon"] = "1"


def claim_another_loss(record):
    record["mechanism"]["claim"]["loss"] = "gaussian"


def call_it_laplace_by_a_method_of_ours(record):
    """Consistent but for margins of error, which are not those of l1 Laplace noise."""
    call_it_laplace(record)
    name_a_method_of_ours(record)


def charge_it(record):
    record["ledger"] = {"dataset": "data", "entry": 1, "head": "0" * 64}


def name_with_a_mark(record):
    record["mechanism"]["claim"]["law"] = "a\u202eb"


def fewer_draws(record):
    record["accuracy"]["simulated_draws"] = 100


def another_error(record):
    record["accuracy"]["simulated_error"] /= 2


FORGERIES = [
    drop_the_claim, call_it_laplace, call_it_laplace_but_keep_the_claim, call_it_exact, name_a_method_of_ours,
    claim_less, claim_another_loss, call_it_laplace_by_a_method_of_ours, charge_it, name_with_a_mark, fewer_draws,
    another_error,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_claim_cannot_be_dropped_or_changed_alone(saved, forge):
    assert not failures(saved)
    edit(saved.parent / "out.certificate.json", forge)
    assert failures(saved)


def test_noise_of_ours_has_no_claim(release, tmp_path):
    ours = ks.release(small_table(), keep=["county"], mechanism=LAPLACE)
    ours.save(tmp_path / "out.csv")
    claim = json.loads(release.certificate.to_json())["mechanism"]["claim"]
    edit(tmp_path / "out.certificate.json", lambda record: record["mechanism"].update(claim=claim))
    assert failures(tmp_path / "out.csv")
    edit(tmp_path / "out.certificate.json", lambda record: record["mechanism"].update(name="own"))
    assert failures(tmp_path / "out.csv")


def test_a_ledger_does_not_take_it(release, tmp_path):
    """Nor anything else that adds it to losses that are proved; the ledger is as it was."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10))
    before = (tmp_path / "ledger.db").read_bytes()
    with pytest.raises(ks.InputError, match="no ledger takes it"):
        ks.release(small_table(), keep=["county"], mechanism=own(walk, ks.Laplace(epsilon=2)), ledger=ledger)
    with pytest.raises(ks.InputError, match="no ledger takes it"):
        ledger.import_release(release.certificate)
    assert (tmp_path / "ledger.db").read_bytes() == before
    with pytest.raises(ks.InputError, match="it has no cost"):
        Cost.of(release.plan.guarantee)


def test_what_cannot_have_it_refuses_it():
    keep = ks.Invariants.subsets(4, [range(4)])
    with pytest.raises(ks.InputError, match="none can be looked for"):
        ks.mechanism_for(keep=keep, mechanism=own(SAMPLER.draw), margin=9)
    with pytest.raises(ks.PlanError, match="on one machine"):
        compile_plan(keep, own(SAMPLER.draw), in_groups=True)
    with pytest.raises(ks.InputError):
        ks.mcmc.LatticeMetropolis(ks.Lattice([[1, 1]]), own(SAMPLER.draw), 0.4)


def test_facts_go_there_and_back():
    mechanism = own(SAMPLER.draw, law="z", parameters={"a": 1, "b": "x y"}).resolve()
    again = mechanism_of(mechanism.facts())
    assert again == mechanism
    assert again.draw is None
    assert ks.plan(keep=[[1, 1]], mechanism=mechanism).sample(5).shape == (5, 2)  # of another plan


def test_the_certificate_of_a_seed_is_that_of_the_plan():
    made = [ks.release(small_table(), keep=["sex"], mechanism=own(walk), rng=ks.rng(seed=3)) for _ in range(2)]
    one, other = (release.certificate._record for release in made)
    assert one.table == other.table
    assert msgspec.to_builtins(one.mechanism)["claim"]["law"] is None
