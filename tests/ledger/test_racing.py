"""Several processes or threads at once: together they never spend more than there is, and none is refused wrongly."""

import os
import threading
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import keepsum as ks
from faults import Fork
from ledger.making import DOMAIN, TABLE, TENTH, charge, laplace
from support import HANG


def raced(works, folder):
    """What each of these returned, or its error; all of them are let go at once."""
    gate, opened = os.pipe()

    def waiting(work):
        def wait():
            os.read(gate, 1)
            return work()

        return wait

    forks = [Fork(waiting(work), folder) for work in works]
    os.write(opened, b"x" * len(forks))
    outcomes = [fork.wait() for fork in forks]
    os.close(gate)
    os.close(opened)
    assert all(outcome.result is not None or outcome.error is not None for outcome in outcomes)
    return outcomes


def spent_up(ledger, plan=TENTH) -> list[int]:
    """Release until there is nothing left: the entries that it got."""
    entries = []
    while True:
        try:
            entries.append(plan.release(TABLE, ledger=ledger).certificate.ledger.entry)
        except ks.BudgetError:
            return entries


def test_processes_that_spend_at_once(tmp_path):
    """Each would spend all of it alone, a tenth at a time."""
    path = tmp_path / "ledger.db"
    ks.Ledger.create(path, budget=ks.Budget.per_unit(1))
    outcomes = raced([lambda: spent_up(path)] * 6, tmp_path)
    assert [outcome.error for outcome in outcomes] == [None] * 6
    entries = [entry for outcome in outcomes for entry in outcome.result]
    ledger = ks.Ledger.open(path)
    assert len(entries) == len(set(entries)) == 10
    assert sorted(entries) == [spend.number for spend in ledger.spends()]
    assert Counter(spend.outcome for spend in ledger.spends()) == {"released": 10}
    assert (ledger.standing().left, ledger.standing().spent.epsilon) == (0, 1)
    assert ledger.check().passed


def test_processes_that_spend_once(tmp_path):
    """Of twenty with a tenth each, ten are told that nothing is left, and nothing else goes wrong."""
    path = tmp_path / "ledger.db"
    ledger = ks.Ledger.create(path, budget=ks.Budget.per_unit(1))  # known before the others start, and forked with them
    outcomes = raced([lambda: charge(ledger)] * 20, tmp_path)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert len(errors) == 10
    assert all(error.startswith("BudgetError: The budget of 'data'") for error in errors)
    assert ledger.standing().left == 0
    assert ledger.check().passed


def test_totals_that_fix_cells_together_are_not_both_released(tmp_path):
    """Which of them comes first is up to them; the other is told what it would determine."""
    pairs = [ks.Invariants.subsets(4, [pair]).over(DOMAIN) for pair in ([0, 1], [1, 2], [0, 2])]
    plans = [laplace("1/10", pair) for pair in pairs]
    ks.Ledger.create(tmp_path / "first.db", budget=10).assess(plans[:2])  # everything is imported before the race
    for turn in range(3):
        path = tmp_path / f"ledger{turn}.db"
        ledger = ks.Ledger.create(path, budget=ks.Budget.per_unit(1))
        outcomes = raced([lambda plan=plan: charge(ledger, plan) for plan in plans], tmp_path)  # noqa: B023
        (error,) = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert error.startswith("PlanError: ")
        assert "together determine" in error
        assert len(ledger.spends()) == 2


def test_a_ledger_created_by_several_at_once(tmp_path):
    for turn in range(4):
        path = tmp_path / f"ledger{turn}.db"

        def work() -> int:
            with suppress(ks.LedgerError):  # another was first
                ks.Ledger.create(path, budget=ks.Budget.per_unit(1))  # noqa: B023
            return charge(ks.Ledger.open(path))  # noqa: B023

        outcomes = raced([work] * 6, tmp_path)
        assert [outcome.error for outcome in outcomes] == [None] * 6
        assert len({outcome.result for outcome in outcomes}) == 6
        assert ks.Ledger.open(path).check().entries == 3 + 12
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"ledger{turn}.db" for turn in range(4)]


def test_a_dataset_declared_by_several_at_once(tmp_path):
    path = tmp_path / "ledger.db"
    ks.Ledger.create(path, budget=ks.Budget.per_unit(1))
    outcomes = raced(
        [lambda: ks.Ledger.open(path).add_dataset("third", ks.Budget.per_unit(2)) or "added"] * 6, tmp_path
    )
    assert sorted(outcome.error or "" for outcome in outcomes)[:1] == [""]
    assert sum("is in the ledger already" in (outcome.error or "") for outcome in outcomes) == 5
    assert ks.Ledger.open(path).datasets == ("data", "third")


def in_threads(works) -> list:
    results: list = [None] * len(works)
    gate = threading.Barrier(len(works))

    def run(place: int) -> None:
        gate.wait()
        try:
            results[place] = works[place]()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=HANG)
    assert None not in results
    return results


def test_threads_that_share_a_ledger(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1))
    results = in_threads([lambda: spent_up(ledger)] * 5)
    entries = [entry for result in results for entry in result]
    assert len(entries) == len(set(entries)) == 10
    assert ledger.standing().left == 0
    assert ledger.check().passed


def test_threads_with_tables_of_their_own_and_others_that_look(tmp_path):
    """What a ledger knows is not looked at while another thread adds to it."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(100), domain=DOMAIN)
    tables = [DOMAIN, ks.Domain({"county": ["Alpha", "Beta"]}), ks.Domain({"sex": ["f", "m"]})]
    plans = [laplace(Fraction(1, 7 + k), ks.Invariants.margins(each, [[]])) for k, each in enumerate(tables)]

    def charged(plan):
        return lambda: [charge(ledger, plan) for _ in range(8)]

    def looked():
        return [(ledger.standing().releases, len(ledger.spends()), len(ledger.assess(plans))) for _ in range(25)]

    results = in_threads([charged(plan) for plan in plans] + [looked] * 2)
    assert [result for result in results if isinstance(result, BaseException)] == []
    assert len(ledger.spends()) == 8 * len(plans)
    assert ledger.standing().spent.epsilon == sum(8 * plan.mechanism.epsilon for plan in plans)
    assert ks.Ledger.open(ledger.path).standing() == ledger.standing()


def test_two_ledgers_of_one_file_in_one_process(tmp_path):
    path = tmp_path / "ledger.db"
    first, second = ks.Ledger.create(path, budget=ks.Budget.per_unit(1)), ks.Ledger.open(path)
    results = in_threads([lambda: spent_up(first), lambda: spent_up(second), lambda: spent_up(path)])
    assert sum(map(len, results)) == 10
    assert first.standing() == second.standing()
