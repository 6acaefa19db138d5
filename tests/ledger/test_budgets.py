"""Budgets in every currency, to the limit and not beyond, and refusals that say what is left and what would fit."""

import re
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.accounting.total import Cost, Total
from keepsum.ledger.assessment import Charge, charge_of
from keepsum.ledger.assessment import assess as assess_charge
from keepsum.ledger.entries import UNIT, BudgetRecord, CostRecord
from keepsum.ledger.showing import dataset_topics
from keepsum.privacy.calibration import epsilon_of, rounded_up
from keepsum.sampling.core.balls import ball
from ledger.making import COLUMNS, ROWS, TABLE, charge, laplace
from support import mostly_audit
from test_arguments import check_message

DELTA = Fraction(1, 10**6)
TINY = Fraction(1, 10**12)


@pytest.fixture
def open_ledger(tmp_path):
    """A new ledger with this budget."""
    made = []

    def make(*arguments, per_person=False, **options) -> ks.Ledger:
        budget = (ks.Budget if per_person else ks.Budget.per_unit)(*arguments, **options)
        made.append(ks.Ledger.create(tmp_path / f"{len(made)}.db", budget=budget))
        return made[-1]

    return make


def gaussian(rho) -> ks.Plan:
    return ks.plan(keep=ROWS, mechanism=ks.Gaussian.per_unit(rho=rho))


def inexact(ledger: ks.Ledger, error: Fraction, epsilon: Fraction | None = None, rho: Fraction | None = None):
    """The assessment of a release whose sampling has this error."""
    known = charge_of(laplace(1)._record, "data")
    cost = CostRecord.of(Cost("l1" if rho is None else "l2", epsilon, rho, error=error, sampling="rounded"))
    return assess_charge(ledger.dataset(), Charge(known.table, known.mechanism, cost))


def refuse_any(ledger: ks.Ledger, problem: str = "Nothing would fit") -> None:
    """Not even a trillionth is left."""
    with pytest.raises(ks.BudgetError, match=problem):
        inexact(ledger, Fraction(0), TINY)


# -- to the limit ----------------------------------------------------------------------------------------------------


def test_three_thirds_are_one(open_ledger):
    ledger = open_ledger(1)
    for _ in range(3):
        charge(ledger, laplace("1/3"))
    assert ledger.standing().left == 0
    assert str(ledger.standing()) == "epsilon 1 of 1 per unit of l1 distance spent by 3 releases, 0 left."
    refuse_any(ledger, r"0 of 1 left; this release needs 1e-12 .* Nothing would fit\.")
    assert len(ledger.spends()) == 3


@mostly_audit("currency", ["epsilon", "delta", "rho", "person"])
def test_the_limit_itself_fits_and_a_trillionth_more_does_not(open_ledger, currency):
    options = {
        "epsilon": ({"epsilon": 1}, laplace(1), laplace(1 + TINY)),
        "delta": ({"epsilon": 1, "delta": DELTA}, laplace(1), laplace(1 + TINY)),
        "rho": ({"rho": "1/2"}, gaussian("1/2"), gaussian("0.501")),
        "person": ({"epsilon": 4, "per_person": True}, laplace(1), laplace(1 + TINY)),
    }
    budget, fits, beyond = options[currency]
    ledger = open_ledger(**budget)
    with pytest.raises(ks.BudgetError):
        charge(ledger, beyond)
    charge(ledger, fits)
    assert ledger.standing().left == 0
    refuse_any(ledger)


def test_many_small_ones_add_up_exactly(open_ledger):
    ledger = open_ledger(1)
    for _ in range(30):
        charge(ledger, laplace("1/31"))
    charge(ledger, laplace(Fraction(1, 31) - TINY))
    assert ledger.standing().left == TINY
    with pytest.raises(ks.BudgetError, match=r"1e-12 of 1 left; this release needs 1/31 .* Epsilon 1e-12 per unit"):
        charge(ledger, laplace("1/31"))
    assert inexact(ledger, Fraction(0), TINY).after.left == 0


# -- the currencies --------------------------------------------------------------------------------------------------


def test_gaussian_noise_needs_a_delta_or_rho(open_ledger):
    ledger = open_ledger(100)
    with pytest.raises(ks.BudgetError, match="must be charged to a budget with a delta or in rho") as caught:
        charge(ledger, gaussian("1/8"))
    check_message(caught.value)
    assert ledger.spends() == ()
    assert charge(open_ledger(100, delta=DELTA), gaussian("1/8")) == 4
    assert charge(open_ledger(rho=100), gaussian("1/8")) == 4


def test_gaussian_noise_is_converted_at_the_delta_of_the_budget(open_ledger):
    for delta in (DELTA, Fraction(1, 10**9)):
        ledger = open_ledger(10, delta=delta)
        charge(ledger, gaussian("1/8"))
        spent = ledger.standing().spent
        assert (spent.epsilon, spent.delta) == (epsilon_of(Fraction(1, 8), delta), delta)
        charge(ledger, gaussian("1/8"))  # rho adds up and is converted then, which is less than twice
        assert ledger.standing().spent.epsilon == epsilon_of(Fraction(1, 4), delta)
        charge(ledger, laplace("1/2"))  # counts as zCDP too, although adding it as epsilon would be less
        assert ledger.standing().spent.epsilon == epsilon_of(Fraction(3, 8), delta)


def test_the_first_release_decides_what_a_budget_with_a_delta_counts(open_ledger):
    """The smallest epsilon of several rules is no limit for releases that are chosen after seeing others."""
    ledger = open_ledger(3, delta="1/100")
    charge(ledger, laplace(1))
    with pytest.raises(ks.BudgetError, match="Noise must be Laplace in this dataset, as its first release was") as seen:
        charge(ledger, gaussian("1/8"))
    check_message(seen.value)
    charge(ledger, laplace(2))
    assert ledger.standing().left == 0


def test_a_path_that_an_adaptive_attacker_takes_is_refused(open_ledger):
    """Gaussian noise while outputs look harmless, then the rest as Laplace: more than delta over all paths."""
    ledger = open_ledger(3, delta="1/100")
    for _ in range(4):
        charge(ledger, gaussian("1/40"))
    rest = 3 - epsilon_of(Fraction(1, 10), Fraction(1, 100))
    assert rest > 1
    with pytest.raises(ks.BudgetError):
        charge(ledger, laplace(rest))
    charge(ledger, laplace("1/2"))


def test_what_is_spent_beyond_a_lowered_budget_is_stated_in_full(open_ledger):
    ledger = open_ledger(10, delta="1/100")
    error = Fraction(1, 10**9)
    loss = ks.Budget.per_unit("1/10", delta="1e-8").spent(
        Total.of(Cost("l1", Fraction(5), error=error, sampling="rounded")), UNIT
    )
    assert loss.epsilon == 5
    assert loss.delta >= Fraction(148, 10**9)  # (1 + e^5) times the error
    assert not ks.Budget.per_unit("1/10", delta="1e-8").allows(loss)
    assert ledger.standing().left == 10


def test_laplace_noise_in_rho(open_ledger):
    ledger = open_ledger(rho=1)
    charge(ledger, laplace("1/2"))
    charge(ledger, gaussian("1/4"))
    assert ledger.standing().spent.rho == Fraction(1, 8) + Fraction(1, 4)
    assert str(ledger.standing()) == "rho 0.375 of 1 at l1 distance 1 spent by 2 releases, 0.625 left."


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_per_person_is_at_the_distance_of_all_totals(open_ledger, currency):
    budget = {"epsilon": 20} if currency == "epsilon" else {"rho": 20}
    ledger = open_ledger(**budget, per_person=True)
    charge(ledger, laplace("1/2", ks.Invariants.margins(ROWS.domain, [[]])))
    (one,) = [ledger.standing()]
    assert one.distance.length == 2
    charge(ledger, laplace("1/2"))  # rows: a change of county is at 4 now, for the release before as well
    two = ledger.standing()
    assert two.distance.length == 4
    if currency == "epsilon":
        assert (one.spent.epsilon, two.spent.epsilon) == (1, 4)
    else:
        assert (one.spent.rho, two.spent.rho) == (Fraction(1, 8) * 4, 2 * Fraction(1, 8) * 16)


def test_totals_may_break_a_budget_per_person_by_themselves(open_ledger):
    """Little noise is added, but one person is farther away, for all that was released before."""
    ledger = open_ledger(2, per_person=True)
    charge(ledger, laplace(1, ks.Invariants.margins(ROWS.domain, [[]])))
    with pytest.raises(ks.BudgetError, match=r"0 of 2 left; this release needs 2\.4 per person\.") as caught:
        charge(ledger, laplace("1/10"))
    assert str(caught.value).endswith(
        "For one person its certificate states epsilon 0.4, and the ledger charges 2.4, because under the kept totals "
        "of all releases together one person's change does more than under its own. Nothing would fit."
    )


# -- sampling that is not exact --------------------------------------------------------------------------------------


def test_sampling_that_is_not_exact_needs_a_delta(open_ledger):
    with pytest.raises(ks.BudgetError, match="sampling is not exact must be charged to a budget with a delta") as seen:
        inexact(open_ledger(10), Fraction(1, 10**9), Fraction(1))
    check_message(seen.value)
    assert "Give the budget a delta of 1e-4 (ledger.set_budget" in str(seen.value)  # (1 + e^10) 1e-9 is 2.2e-5
    assert inexact(open_ledger(10, delta="1e-4"), Fraction(1, 10**9), Fraction(1)).needs == 1
    with pytest.raises(ks.BudgetError, match="with a delta of more than 1e-10"):
        inexact(open_ledger(rho=10, delta="1e-10"), Fraction(1, 10**9), rho=Fraction(1))
    assert inexact(open_ledger(rho=10, delta="1e-9"), Fraction(1, 10**9), rho=Fraction(1)).needs == 1


def test_sampling_takes_its_part_of_delta(open_ledger):
    """(1 + e^epsilon) times its error, at the epsilon of the budget; the conversion has what is left."""
    error = Fraction(1, 10**9)
    reserved = rounded_up(lambda: ball(error) * (1 + ball(Fraction(2)).exp()))
    ledger = open_ledger(2, delta=DELTA)
    after = inexact(ledger, error, rho=Fraction(1, 50)).after
    assert after.spent.epsilon == epsilon_of(Fraction(1, 50), DELTA - reserved)
    assert after.spent.delta == DELTA
    assert after.spent.epsilon > epsilon_of(Fraction(1, 50), DELTA)
    assert inexact(ledger, error, Fraction(2)).after.left == 0  # a pure one
    with pytest.raises(ks.BudgetError, match="all sampling together adds more than the budget's delta 1e-6"):
        inexact(ledger, Fraction(1, 10**6), Fraction(1))
    with pytest.raises(ks.BudgetError, match="all sampling together adds more"):
        inexact(open_ledger(2000, delta=DELTA), Fraction(1, 10**300), Fraction(1500))


# -- what would fit --------------------------------------------------------------------------------------------------


def next_three_digits(number: Fraction) -> Fraction:
    """The next number of three digits."""
    digits = 0
    while number * Fraction(10) ** digits < 100:
        digits += 1
    while number * Fraction(10) ** digits >= 1000:
        digits -= 1
    scaled = number * Fraction(10) ** digits
    assert scaled.denominator == 1
    return (scaled + 1) / Fraction(10) ** digits


def test_a_refusal_says_what_is_left_and_what_would_fit(open_ledger):
    ledger = open_ledger(1)
    charge(ledger, laplace("0.65"))
    with pytest.raises(ks.BudgetError) as caught:
        charge(ledger, laplace("0.5"))
    assert str(caught.value) == (
        "The budget of 'data' must allow for the release: 0.35 of 1 left; this release needs 0.5 per unit of l1 "
        "distance. Epsilon 0.35 per unit of distance would fit."
    )
    check_message(caught.value)


@pytest.mark.parametrize("request_of", [ks.Laplace, lambda loss: ks.Gaussian(rho=loss)])
def test_a_loss_requested_per_person_is_told_what_would_fit_per_person(open_ledger, request_of):
    ledger = open_ledger(1) if request_of == ks.Laplace else open_ledger(rho=1)
    with pytest.raises(ks.BudgetError) as caught:
        charge(ledger, ks.plan(keep=ROWS, mechanism=request_of(20)))
    (fitting,) = re.findall(r"(?:Epsilon|Rho) (\S+) per person would fit\.$", str(caught.value))
    charge(ledger, ks.plan(keep=ROWS, mechanism=request_of(fitting)))
    assert Fraction(fitting) > 1  # one person changes more than one count


CASES = {
    "epsilon": ({"epsilon": 1}, [laplace("1/3")], lambda x: laplace(x), 5),
    "small": ({"epsilon": "1e-3"}, [laplace("1.2345e-4")], lambda x: laplace(x), 5),
    "large": ({"epsilon": 11}, [laplace("0.4321")], lambda x: laplace(x), 12),
    "delta": ({"epsilon": 2, "delta": DELTA}, [gaussian("1/100"), laplace("1/7")], lambda x: gaussian(x), 3),
    "laplace": ({"epsilon": 2, "delta": DELTA}, [gaussian("1/100"), laplace("1/7")], lambda x: laplace(x), 3),
    "rho": ({"rho": 2}, [gaussian("1/3"), laplace("1/7")], lambda x: gaussian(x), 3),
    "laplace in rho": ({"rho": 2}, [gaussian("1/3"), laplace("1/7")], lambda x: laplace(x), 3),
    "person": ({"epsilon": 20, "per_person": True}, [laplace("1/3")], lambda x: laplace(x, COLUMNS), 5),
    "rho person": ({"rho": 20, "per_person": True}, [gaussian("1/3")], lambda x: gaussian(x), 5),
    "almost": ({"epsilon": 1}, [laplace("1/2")], lambda x: laplace(x), Fraction(1, 2) + TINY),
}


LONG = ("small", "large", "delta", "laplace in rho", "rho person")  # of which the others are the like


@mostly_audit("case", [pytest.param(c, marks=[pytest.mark.audit] if c in LONG else []) for c in CASES])
def test_what_would_fit_fits_and_the_next_number_does_not(open_ledger, case):
    budget, before, make, wanted = CASES[case]
    ledger = open_ledger(**budget)
    for plan in before:
        charge(ledger, plan)
    with pytest.raises(ks.BudgetError, match="would fit") as caught:
        charge(ledger, make(wanted))
    check_message(caught.value)
    (kind, text) = re.search(r"(Epsilon|Rho) (\S+) per unit of distance would fit\.$", str(caught.value)).groups()
    assert kind == ("Epsilon" if isinstance(make(1).mechanism, type(laplace(1).mechanism)) else "Rho")
    fitting = Fraction(text)
    left = Fraction(re.search(r"release: (\S+) of", str(caught.value))[1])
    assert left <= ledger.standing().left
    with pytest.raises(ks.BudgetError):
        ledger.assess(make(min(next_three_digits(fitting), wanted)))
    charge(ledger, make(fitting))


# -- changed budgets -------------------------------------------------------------------------------------------------


def test_budgets_are_raised_and_lowered(open_ledger):
    ledger = open_ledger(1)
    charge(ledger, laplace(1))
    with pytest.raises(ks.BudgetError):
        charge(ledger, laplace("1/2"))
    ledger.set_budget("data", ks.Budget.per_unit(2))
    charge(ledger, laplace("1/2"))
    ledger.set_budget("data", ks.Budget.per_unit("1/2"))
    assert (ledger.standing().left, ledger.standing().spent.epsilon) == (0, Fraction(3, 2))
    refuse_any(ledger, r"0 of 0\.5 left; this release needs 1e-12")
    assert str(ledger.standing()).startswith("epsilon 1.5 of 0.5 per unit")
    reopened = ks.Ledger.open(ledger.path)
    assert reopened.standing() == ledger.standing()
    assert sum('"entry":"budget"' in entry["content"] for entry in ledger.export()) == 2


def test_a_currency_that_cannot_state_what_was_spent_leaves_nothing(open_ledger):
    ledger = open_ledger(1, delta=DELTA)
    charge(ledger, gaussian("1/100"))
    ledger.set_budget("data", ks.Budget.per_unit(1))
    assert ledger.standing().spent is None
    assert ledger.standing().left == 0
    assert "what was spent cannot be stated in it, so nothing is left. Gaussian noise must" in str(ledger.standing())
    refuse_any(ledger, "with a delta or in rho")
    ledger.set_budget("data", ks.Budget.per_unit(rho=1))
    assert ledger.standing().spent.rho == Fraction(1, 100)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"delta": DELTA},
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": "1e-301"},
        {"rho": "1e-13"},
    ],
)
def test_budgets_that_are_none(arguments):
    with pytest.raises(ks.InputError) as caught:
        ks.Budget(**arguments)
    check_message(caught.value)
    with pytest.raises(ks.InputError):
        ks.Budget.per_unit(**arguments)


def test_a_ledger_keeps_budgets_to_the_digit(open_ledger):
    for budget in (
        ks.Budget.per_unit("1/3", delta="1/7"),
        ks.Budget(rho="1/3"),
        ks.Budget.per_unit("1e-12", "1e-300"),
        ks.Budget.per_unit(Fraction(10**900 + 1, 10**900)),
        ks.Budget.per_unit(0.1),
    ):
        ledger = open_ledger(budget.epsilon, budget.delta, budget.rho, per_person=budget.per_person)
        assert ks.Ledger.open(ledger.path).standing().budget == budget
        assert hash(budget) == hash(ledger.standing().budget)
    assert TABLE.domain == ROWS.domain


def test_a_budget_is_per_person_unless_it_says_otherwise(open_ledger, tmp_path):
    assert (repr(ks.Budget(1)), str(ks.Budget(1))) == ("Budget(epsilon=1)", "epsilon 1 per person")
    assert repr(ks.Budget.per_unit(rho=1)) == "Budget.per_unit(rho=1)"
    number = ks.Ledger.create(tmp_path / "number.db", budget=1)
    assert number.standing().budget == ks.Budget(1)
    charge(number, ks.plan(keep=ROWS, mechanism=ks.Laplace("3/4")))  # what is typed is what is spent
    assert str(number.standing()) == "epsilon 0.75 of 1 per person spent by 1 release, 0.25 left."


def test_budgets_of_existing_ledgers_keep_their_unit(open_ledger):
    """Ledgers of earlier versions say per_person or nothing; a number never changes what a budget is per."""
    old = msgspec.json.decode(b'{"epsilon":"1"}', type=BudgetRecord)
    assert old.budget() == ks.Budget.per_unit(1)
    assert msgspec.json.decode(b'{"epsilon":"1","per_person":true}', type=BudgetRecord).budget() == ks.Budget(1)
    ledger = open_ledger(1)
    with pytest.raises(ks.InputError, match=r"must say what it is per, .* Pass ks\.Budget\.per_unit\(") as caught:
        ledger.set_budget("data", 2)
    check_message(caught.value)
    ledger.set_budget("data", ks.Budget(2))
    ledger.set_budget("data", 3)  # per person now
    assert [decided.budget for decided in ledger.dataset().budgets] == [
        ks.Budget.per_unit(1),
        ks.Budget(2),
        ks.Budget(3),
    ]


def test_a_ledger_says_against_whom_a_loss_per_person_does_not_hold(tmp_path):
    axes = {name: [f"{name}0", f"{name}1"] for name in "abcd"}
    keep = ks.Invariants.margins(ks.Domain(axes), [["a", "b"], ["b", "c"], ["c", "d"]])
    budget = ks.Budget(epsilon=20)
    ledger = ks.Ledger.create(tmp_path / "chain.db", budget, dataset="chain", domain=keep.domain)
    plan, weak = (
        ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon="1/2")),
        "; not against somebody who knows the attributes of others",
    )
    plan.release(ks.Table.from_array(np.full(16, 20), keep.domain), ledger=ledger)
    said = {line[len("a change of ")]: weak in line for line in dict(dataset_topics(ledger.dataset()))["One person"]}
    assert said == {"a": False, "b": True, "c": True, "d": False}  # two exchange a, or d, and others keep all else
    assert str(ledger.standing()).endswith(f"left{weak}.")
    assert ledger.assess(plan)[0].lines[0].endswith(f"of 20{weak}.")


def test_a_ledger_says_of_each_attribute_whether_no_change_is_protected_or_how_far_one_reaches_is_not_known(tmp_path):
    """All two-way margins of 4 x 4 x 4, kept by three releases. All cells of one e are structural zeros."""
    domain = ks.Domain({name: list(range(4)) for name in "abc"} | {"d": ["x", "y"]})
    ledger = ks.Ledger.create(tmp_path / "cube.db", ks.Budget.per_unit(1), dataset="cube", domain=domain)
    for kept in (["a", "b"], ["b", "c"], ["a", "c"]):
        keep = ks.Invariants.margins(domain, [kept])
        charge(ledger, ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon="1/10")))
    said = dict(dataset_topics(ledger.dataset()))["One person"]
    assert said[:3] == [f"{axis}: not known for these totals" for axis in "abc"]
    assert said[3].startswith("a change of d: epsilon 0.6, ")

    zeros = ks.Domain({"a": ["x", "y"], "e": ["u", "v"]}).without({"a": "x", "e": "v"}, {"a": "y", "e": "v"})
    other = ks.Ledger.create(tmp_path / "zeros.db", ks.Budget.per_unit(1), dataset="zeros", domain=zeros)
    charge(other, ks.plan(zeros, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon="1/10")))
    said = dict(dataset_topics(other.dataset()))["One person"]
    assert said[1] == "e: not protected; no change of it keeps the totals"
