"""Releases of several tables of one dataset: what their totals fix together stops a release, in a sentence."""

import contextlib
from fractions import Fraction

import msgspec
import pytest

import keepsum as ks
from keepsum.ledger import person
from keepsum.ledger.assessment import UNCHECKED
from keepsum.ledger.importing import told_of
from keepsum.ledger.person import NO_CELLS
from keepsum.ledger.showing import dataset_topics
from keepsum.ledger.store import Store
from ledger.making import COLUMNS, DOMAIN, ROWS, TABLE, Undrawn, charge, laplace
from test_arguments import check_message

CELLS = ks.Domain({"cell": ["a", "b", "c", "d"]})
COUNTY, SEX = ks.Domain({"county": ["Alpha", "Beta"]}), ks.Domain({"sex": ["f", "m"]})
TENTH = Fraction(1, 10)


def pair(*cells: int) -> ks.Plan:
    return laplace(TENTH, ks.Invariants.subsets(4, [cells]).over(CELLS))


def grand(domain: ks.Domain, **options) -> ks.Plan:
    return laplace(TENTH, ks.Invariants.margins(domain, [[]]), **options)


@pytest.fixture
def ledger(tmp_path):
    return ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10))


@pytest.fixture
def declared(tmp_path):
    return ks.Ledger.create(tmp_path / "declared.db", budget=ks.Budget.per_unit(10), domain=DOMAIN)


def refused(ledger, plan, problem, kind=ks.PlanError) -> str:
    before = ledger.head
    with pytest.raises(kind, match=problem) as caught:
        charge(ledger, plan)
    check_message(caught.value)
    assert ledger.head == before
    return str(caught.value)


def test_totals_that_pin_cells_together(ledger):
    charge(ledger, pair(0, 1))
    charge(ledger, pair(1, 2))
    assert refused(ledger, pair(0, 2), "together determine 3 cells") == (
        "The totals kept by this release and by the tables of entries 3 and 6 together determine 3 cells of the table "
        "of entry 3, which was released with noise: 'cell=a', 'cell=b', 'cell=c'. Keep fewer totals."
    )
    table = ks.Table.from_array([5, 6, 7, 8], axes=CELLS)
    with pytest.raises(ks.PlanError, match="together determine"):
        pair(0, 2).release(table, ledger=ledger, rng=Undrawn())
    charge(ledger, pair(0, 1))  # once more, which tells nothing new
    charge(ledger, pair(0, 1, 2, 3))
    refused(ledger, pair(0, 1, 2), "together determine every cell")


def test_plans_that_are_only_looked_at_leave_nothing_behind(ledger):
    """What was found out about a release that was never made must not count for another one."""
    charge(ledger, pair(0, 1))
    assert len(ledger.assess([pair(0, 1, 2, 3), pair(0, 2)])) == 2
    charge(ledger, pair(1, 2))
    refused(ledger, pair(0, 2), "together determine 3 cells")
    with pytest.raises(ks.PlanError, match="together determine"):
        ledger.assess([pair(0, 1, 2, 3), pair(0, 2)])
    assert len(ledger.spends()) == 2


def test_distances_of_plans_that_are_only_looked_at(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(10))
    empty = laplace(TENTH, ks.Invariants.margins(DOMAIN, [[]]))
    for first, second, length in ((empty, laplace(TENTH), 4), (laplace(TENTH, COLUMNS), laplace(TENTH), 4)):
        assert [each.after.distance.length for each in ledger.assess([first, second])][-1] == length
    sex = laplace(TENTH, ks.Invariants.margins(DOMAIN, [["sex"]]))
    assert [each.after.distance.length for each in ledger.assess([empty, empty])] == [2, 2]
    assert [each.after.distance.length for each in ledger.assess([sex, empty])] == [4, 4]
    assert [each.after.distance.length for each in ledger.assess([empty, empty])] == [2, 2]


def test_assessments_one_after_the_other_are_those_of_the_charges(ledger):
    plans = [laplace(TENTH), laplace("1/3", COLUMNS), laplace(TENTH), laplace(2)]
    foreseen = ledger.assess(plans)
    for plan, each in zip(plans, foreseen, strict=True):
        with ledger.charged(plan) as receipt:
            assert (receipt.assessment.before.spent, receipt.assessment.after) == (each.before.spent, each.after)
            assert receipt.assessment.needs == each.needs
    assert ledger.standing() == foreseen[-1].after
    with pytest.raises(ks.BudgetError):
        ledger.assess([laplace(4), laplace(4)])
    assert len(ledger.spends()) == 4
    assert ledger.assess([]) == []


def test_a_table_whose_cells_were_published(declared):
    """County totals are kept: the table by county would have noise for nothing, and its cells are known."""
    charge(declared, laplace(TENTH))
    refused(declared, grand(COUNTY), "determine 2 cells of this table exactly, whatever noise is drawn: 'county=Alpha'")
    charge(declared, grand(SEX))


def test_totals_that_show_the_cells_of_an_earlier_table(declared):
    charge(declared, grand(COUNTY))
    refused(declared, laplace(TENTH), "determine 2 cells of the table of entry 3, which was released with noise")


def test_a_cell_of_the_dataset_that_no_table_has(tmp_path):
    """A total of everybody and a total of all but one cell: that cell is in neither table, and known exactly."""
    dataset = ks.Domain({"state": ["s", "t"], "county": {"s": ["1", "2"], "t": ["3", "4"]}}, {"county": "state"})
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10), domain=dataset)
    some = ks.Domain({"state": ["s", "t"], "county": {"s": ["2"], "t": ["3", "4"]}}, {"county": "state"})
    charge(ledger, grand(ks.Domain({"state": ["s", "t"]})))
    said = refused(ledger, grand(some), "determine 1 cell of the dataset exactly")
    assert said == (
        "The totals kept by the table of entry 3 and by this release together determine 1 cell of the dataset exactly: "
        "'state=s, county=1'. Keep fewer totals."
    )


def test_an_attribute_that_nothing_protects_any_more(ledger):
    """A kept difference fixes no cell, but nobody can go from one to the other."""
    domain = ks.Domain({"x": ["1", "2"]})
    charge(ledger, laplace(TENTH, ks.Invariants(2, (), domain)))
    difference = laplace(TENTH, ks.Invariants.matrix([[1, -1]]).over(domain))
    refused(ledger, difference, "allow no change of 'x' any more, so that nothing would protect it")


@pytest.mark.parametrize(
    ("domain", "problem"),
    [
        (ks.Domain({"age": ["0", "1"]}), "Axes of the table must be among those declared for the dataset, and 'age'"),
        (ks.Domain({"county": ["Alpha", "Gamma"]}), "Categories of 'county' must be among those declared"),
        (
            ks.Domain({"county": ["Alpha", "Beta"], "sex": {"Alpha": ["f"], "Beta": ["m"]}}, {"sex": "county"}),
            "Categories of 'sex' must be among those declared for the dataset, nested alike",
        ),
    ],
)
def test_a_table_that_does_not_fit_the_dataset(declared, domain, problem):
    refused(declared, grand(domain), problem, ks.InputError)
    other = ks.Table.from_array([5] * domain.size, axes=domain)
    certificate = grand(domain).release(other).certificate
    before = declared.head
    with pytest.raises(ks.InputError, match=problem):
        declared.import_release(certificate)
    assert declared.head == before
    charge(declared)


AGE = ks.Domain({"county": ["Alpha", "Beta"], "age": ["young", "old"]})
THIRD = ks.Domain({"county": ["Alpha", "Beta", "Gamma"]})


def test_tables_of_the_same_people_are_put_together_by_their_axes(ledger):
    """As if all their axes had been declared."""
    charge(ledger, laplace(TENTH))
    (after,) = ledger.assess(grand(AGE))
    assert after.after.unchecked  # until somebody says so
    ledger.set_domain("data", same_people=True)
    charge(ledger, grand(AGE))
    refused(ledger, grand(COUNTY), "together determine 2 cells of this table")  # which the first one keeps
    charge(ledger, laplace(TENTH, COLUMNS))
    assert not ledger.standing().unchecked
    both = ks.Invariants.subsets(4, [[0, 3]]).over(DOMAIN)  # with both margins this fixes every cell
    refused(ledger, laplace(TENTH, both), "together determine 4 cells of the table of entry 3")


def test_totals_of_tables_of_other_axes_fix_cells_together(tmp_path):
    """Counties by sex keep the women of Alpha, and counties by age all of Alpha: so the men of Alpha are known."""
    women = ks.Invariants.subsets(4, [[0]]).over(DOMAIN)
    alpha = ks.Invariants.subsets(4, [[0, 1]]).over(AGE)
    whole = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"], "age": ["young", "old"]})
    for options in ({"same_people": True}, {"domain": whole}):
        ledger = ks.Ledger.create(tmp_path / f"{[*options]}.db", budget=ks.Budget.per_unit(10))
        ledger.set_domain(None, **options)
        charge(ledger, laplace(TENTH, women))
        refused(ledger, laplace(TENTH, alpha), "together determine 1 cell of the table of entry [34]")


def test_other_categories_of_an_axis_must_be_declared(ledger):
    charge(ledger, laplace(TENTH))
    (after,) = ledger.assess(grand(THIRD))
    assert after.after.unchecked
    assert UNCHECKED in after.lines
    charge(ledger, grand(THIRD))
    assert ledger.standing().unchecked
    whole = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "sex": ["f", "m"]})
    with pytest.raises(ks.InputError, match="Categories of 'county' must be among those declared"):
        ledger.set_domain(None, DOMAIN)
    with pytest.warns(ks.LedgerWarning, match="together determine 3 cells of the table of entry 6"):
        ledger.set_domain("data", whole, note="all of 2010")
    assert not ledger.standing().unchecked
    assert ledger.dataset().domain == whole
    again = ks.Ledger.open(ledger.path)
    assert again.dataset().domain == whole
    assert again.check().passed


def test_with_a_domain_everything_is_checked(declared):
    charge(declared, grand(COUNTY))
    charge(declared, grand(SEX))
    assert not declared.standing().unchecked
    assert declared.assess(grand(COUNTY))[0].lines == [
        "data: this release costs epsilon 0.1 per unit of l1 distance, and leaves 9.7 of 10."
    ]


def test_a_budget_per_person_needs_cells_that_can_be_put_together(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(10))
    charge(ledger, laplace(TENTH))
    problem = "nobody has said that they count the same people"
    assert refused(ledger, grand(AGE), "cannot: ", ks.BudgetError) == str(ks.BudgetError(NO_CELLS.format(problem)))
    ledger.set_domain(None, same_people=True)
    problem = "the categories of 'county' are not the same in all of them"
    assert refused(ledger, grand(THIRD), "cannot: ", ks.BudgetError) == str(ks.BudgetError(NO_CELLS.format(problem)))
    few = AGE.without({"age": "old", "county": "Beta"})
    refused(ledger, grand(few), "some of them leave out cells that cannot occur", ks.BudgetError)
    many = ks.Domain({"a": range(1000), "b": range(1000)})
    refused(ledger, grand(many), "more than 1,048,576 cells", ks.BudgetError)
    nested = ks.Domain({"state": ["X"], "county": {"X": ["Alpha", "Beta"]}}, within={"county": "state"})
    refused(ledger, grand(nested), problem, ks.BudgetError)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("kept", [[[]], [["county"]], [["county"], ["age"]]])
def test_a_second_table_of_other_axes_costs_what_it_does_with_declared_cells(tmp_path, kept, declared):
    """The whole is county by sex by age, whether that is declared or not."""
    whole = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"], "age": ["young", "old"]})
    ledger = ks.Ledger.create(tmp_path / "a.db", budget=ks.Budget(10))
    known = ks.Ledger.create(tmp_path / "b.db", budget=ks.Budget(10), domain=whole)
    second = laplace(TENTH, ks.Invariants.margins(AGE, kept))
    for each in (ledger, known):
        charge(each, laplace(TENTH))
        if each is ledger:
            each.set_domain(None, **({"domain": whole} if declared else {"same_people": True}))
        charge(each, second)
    assert ledger.standing().spent == known.standing().spent
    assert ledger.standing().distance == known.standing().distance
    assert not ledger.standing().unchecked
    assert ks.Ledger.open(ledger.path).standing().spent == known.standing().spent


def test_gaussian_tables_of_other_axes_count_in_l1(tmp_path):
    """In l2 a change of the whole may be longer in a margin, so that rho counts at the l1 distance."""
    ledger = ks.Ledger.create(tmp_path / "a.db", budget=ks.Budget(rho=10))
    ledger.set_domain(None, same_people=True)
    for keep in (ROWS, ks.Invariants.margins(AGE, [[]])):
        charge(ledger, ks.plan(keep=keep, mechanism=ks.Gaussian(sigma=10)))
    assert ledger.standing().distance.norm == "l1"
    alone = ks.Ledger.create(tmp_path / "b.db", budget=ks.Budget(rho=10))
    charge(alone, ks.plan(keep=ROWS, mechanism=ks.Gaussian(sigma=10)))
    assert alone.standing().distance.norm == "l2"


def test_cells_are_not_declared_so_that_less_is_spent(tmp_path):
    """Nor so that a cell of a table is none of the dataset."""
    ledger = ks.Ledger.create(tmp_path / "a.db", budget=ks.Budget(4))
    charge(ledger, laplace(1))
    before = ledger.head
    with pytest.raises(ks.InputError, match="Every cell of the table of entry 3 must be one of the dataset"):
        ledger.set_domain(None, DOMAIN.without({"county": "Beta", "sex": "m"}))
    assert ledger.head == before
    work = {"job": ["none", "yes", "no"]}
    ledger = ks.Ledger.create(tmp_path / "b.db", budget=ks.Budget(10), domain=DOMAIN * ks.Domain(work))
    charge(ledger, grand(DOMAIN))
    charge(ledger, grand(ks.Domain({"job": ["yes", "no"]})))
    before = ledger.standing().spent
    with pytest.raises(ks.InputError, match="What counts as spent must not become less"):
        ledger.set_domain(None, DOMAIN * ks.Domain({"job": ["yes", "no"]}))
    with pytest.raises(ks.InputError, match="What counts as spent must not become less"):
        ledger.set_domain(None, same_people=True)
    assert ledger.standing().spent == before
    for wrong in ({}, {"domain": DOMAIN, "same_people": True}):
        with pytest.raises(ks.InputError, match="and not both"):
            ledger.set_domain(None, **wrong)


def test_declared_cells_that_show_everything_are_told(tmp_path, monkeypatch):
    """What has happened cannot be refused, and the ledger can be shown afterwards."""
    ledger = ks.Ledger.create(tmp_path / "a.db", budget=ks.Budget.per_unit(10))
    charge(ledger, laplace(TENTH))

    def everything(*_):
        raise ks.PlanError("The kept totals of these releases together determine every cell. Keep fewer totals.")

    monkeypatch.setattr(person, "together", everything)
    with pytest.warns(ks.LedgerWarning, match="together determine every cell"):
        ledger.set_domain(None, DOMAIN)
    assert any("determine every cell" in line for _, lines in dataset_topics(ledger.dataset()) for line in lines)


def test_the_order_of_categories_is_not_what_tables_share(ledger):
    """A parent's categories in another order: nested ones keep their parents."""
    states = ks.Domain({"state": ["IL", "WI"], "sex": ["f", "m"]})
    counties = {"state": ["WI", "IL"], "county": {"WI": ["Dane"], "IL": ["Cook", "Lake"]}}
    nested = ks.Domain(counties, within={"county": "state"})
    ledger.set_domain(None, same_people=True)
    charge(ledger, laplace(TENTH, ks.Invariants.margins(states, [["sex"]])))
    charge(ledger, laplace(TENTH, ks.Invariants.margins(nested, [["state"]])))
    assert not ledger.standing().unchecked
    assert ledger.dataset().cells.domain.categories("county") == (("IL", "Cook"), ("IL", "Lake"), ("WI", "Dane"))


def test_too_many_axes_together_are_no_traceback(ledger):
    ledger.set_domain(None, same_people=True)
    for letter in "ab":
        axes = {f"{letter}{k}": ["x"] for k in range(40)} | {f"{letter}{k}": ["x", "y"] for k in (40, 41)}
        charge(ledger, grand(ks.Domain(axes)))
    assert ledger.standing().unchecked


def test_releases_that_are_only_planned_have_no_numbers(ledger):
    with pytest.raises(ks.PlanError, match="of the table of a release before it"):
        ledger.assess([pair(0, 1), pair(1, 2), pair(0, 2)])


def test_a_release_is_withdrawn_once_and_stays_charged(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(10))
    first = laplace(TENTH).release(TABLE, ledger=ledger)
    second = laplace(TENTH).release(TABLE, ledger=ledger)
    before = ledger.standing()
    spend = ledger.withdraw(first.certificate, note="counted twice")
    assert spend.number == first.certificate.ledger.entry
    assert ledger.standing() == before
    assert [each.withdrawn is not None for each in ledger.spends()] == [True, False]
    with pytest.raises(ks.InputError, match=r"is withdrawn already, in 8\."):
        ledger.withdraw(spend.number)
    for wrong in (3, -1, 0, 10**5000):
        with pytest.raises(ks.InputError, match="The entry must be the charge of a release"):
            ledger.withdraw(wrong)
    for wrong in ("x", None, True, 1.0, second):
        with pytest.raises(ks.InputError, match="by its certificate or the number of its entry"):
            ledger.withdraw(wrong)
    with pytest.raises(ks.InputError, match="must be one of this ledger"):
        ledger.withdraw(laplace(TENTH).release(TABLE).certificate)
    again = ks.Ledger.open(ledger.path)
    assert again.spends()[0].withdrawn.note == "counted twice"
    assert again.check(against=[first.certificate, second.certificate]).passed
    assert [link["number"] for link in again.export()] == list(range(1, 9))


def test_records_of_other_units_have_no_common_person(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"county": ["Alpha", "Beta"] * 3, "person": [1, 2, 3, 4, 1, 2], "flat": [1, 1, 1, 2, 2, 2]})
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(10))

    def counted(unit: str | None, most: int | None):
        bound = {} if unit is None else {"unit": unit, "max_rows_per_unit": most}
        table = ks.tabulate(frame, by="county", domain={"county": ["Alpha", "Beta"]}, **bound)
        return ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)

    counted("person", 2)
    assert ledger.standing().spent.epsilon == 2 * 2 * TENTH
    counted("person", 3)  # the larger bound counts for both
    assert ledger.standing().spent.epsilon == 2 * 3 * 2 * TENTH
    with pytest.raises(ks.BudgetError, match="records of the same unit"):
        counted("flat", 3)
    with pytest.raises(ks.BudgetError, match="may have any number of the records"):
        counted(None, None)
    assert len(ledger.spends()) == 2


def test_rows_kept_and_not_kept_are_tables_apart(ledger):
    """A table is described once, however often it is released."""
    for _ in range(3):
        charge(ledger, laplace(TENTH))
        charge(ledger, laplace(TENTH, COLUMNS))
    kinds = [entry["content"][:16] for entry in ledger.export()]
    assert sum(kind.startswith('{"entry":"table"') for kind in kinds) == 2
    assert {spend.entry.table for spend in ledger.spends()} == {3, 6}
    assert ROWS.domain == TABLE.domain


@pytest.mark.audit
def test_further_totals_give_no_budget_back(tmp_path):
    """They may make the longest changes impossible, so that one person is nearer; what was spent stays spent."""
    domain = ks.Domain({"x": list("abcdef")})
    table = ks.Table.from_array([100, 200, 300, 400, 500, 600], axes=domain)
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget("3.5"))

    def released(epsilon: str, *sums: list[int]) -> Fraction:
        kept = ks.Invariants.subsets(6, sums).over(domain)
        ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(epsilon)).release(table, ledger=ledger)
        return ledger.standing().spent.epsilon

    # From b and f to c and e, which is 4, and from a to d, which is 2: from one of these to one of those at most 6.
    assert released("1/2", [4, 5], [1, 4], [2, 5]) == Fraction(6, 2)
    assert released("1/100", [0, 3, 4]) == 6 * Fraction(51, 100)  # e is fixed now, and only a and d can change: 2
    with pytest.raises(ks.BudgetError, match="per person"):
        released("3/20", [0, 3, 4])


def test_many_long_quotients_do_not_make_a_ledger_useless(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1))
    for k in range(8):
        charge(ledger, laplace(Fraction(1, 10**950 + 2 * k + 1) + Fraction(1, 100)))
    assert str(ks.Ledger.open(ledger.path).standing()).startswith("epsilon 0.08")


def test_what_a_ledger_tells_of_a_release_that_failed_or_that_it_never_heard_of(tmp_path):
    """A certificate that names such an entry: nothing says which table it is."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(10))
    certificate = laplace(TENTH).release(TABLE, ledger=ledger).certificate._record

    with contextlib.suppress(OSError), ledger.charged(laplace(TENTH)) as receipt:
        under_way = told_of(msgspec.structs.replace(certificate, ledger=receipt.record), Store(ledger.path))
        raise OSError
    assert under_way == (True, "entry 6 of dataset 'data', not withdrawn; it was not told which table that is")
    failed = told_of(msgspec.structs.replace(certificate, ledger=receipt.record), Store(ledger.path))
    assert failed == (False, "entry 6 is of a release that failed, so that there is none")
    assert told_of(certificate, Store(ledger.path)) == (True, "entry 4 of dataset 'data', not withdrawn")
