"""``ks.share_budget``, ``ks.accuracy_curve`` and ``ks.mechanism_for``: choosing the loss before data are seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from keepsum._arguments import check_choice, check_number, check_whole
from keepsum._saying import arg
from keepsum._text import type_of
from keepsum.accuracy.choose import LARGEST_TARGET, MARGINS_OF, AccuracyCurve, Candidates, curve_of
from keepsum.accuracy.shares import BudgetShares, Key, SharedBudget
from keepsum.errors import InputError
from keepsum.facade.functions import Keep, kept_totals, records_of
from keepsum.privacy.focus import Focus, levels_of
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number, exact_in_range
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.table import Table

# ``ks.share_budget``: a per-person epsilon divided between levels, before any data is seen.


def share_budget(
    table: Table | Domain,
    levels: Iterable[Key],
    epsilon: Number,
    weights: Focus | None = None,
    *,
    cell_weight: Number = 1,
    keep: Keep = (),
    max_rows_per_unit: int | None = None,
) -> BudgetShares:
    """Divide a per-person epsilon between cells and totals, so that their weighted mean squared error is least.

    No data is used, and no budget is spent.

    Parameters
    ----------
    table
        The table, of which only the cells are used, or its ``Domain``.
    levels
        The totals that matter beside cells, as in ``focus``: each an axis, a tuple of axes, or ``()`` for the grand
        total. They must be nested with each other and with the kept ones.
    epsilon
        The loss of one person, as in ``Laplace``.
    weights, cell_weight
        How much the mean squared error of each level counts, and that of cells, by default 1. It is that of a single
        total of the level, on average.
    keep
        The totals that a release keeps, as in :func:`release`.
    max_rows_per_unit
        How many records one person has at most, as in :func:`plan`.

    Returns
    -------
    BudgetShares
        ``mechanism`` is the noise to use; it shows itself as a table, and ``plot()`` draws errors against shares.

    Raises
    ------
    PlanError
        If totals cross, kept ones overlap, or all totals of a level are kept.

    Notes
    -----
    Variances are those of the noise that is drawn, computed from its law. Shares are whole thousandths; with them no
    thousandth can be moved from one level to another to lower the error. 3,143 counties of 20 cells in 51 states take
    about 5 seconds.

    Examples
    --------
    >>> import keepsum as ks
    >>> counties = {state: [f"{state} {k}" for k in range(31)] for state in "AB"}
    >>> domain = ks.Domain({"state": ["A", "B"], "county": counties, "cell": range(20)}, within={"county": "state"})
    >>> shared = ks.share_budget(domain, ["state", "county"], epsilon=1, weights={"county": 4})
    >>> shared
    BudgetShares(epsilon 1 per person: weighted rmse 7.3; 30.3 without a focus)
                        weight  share  epsilon per unit  expected rmse
      totals of state        1  0.253            0.1265            9.9
      totals of county       4  0.459            0.2295            5.8
      cells                  1  0.288             0.144            9.2
    >>> shared.mechanism
    Laplace(epsilon=1, norm='l1', focus={'state': 0.253, 'county': 0.459}, cell_share=0.288)
    """
    chosen = _levels(levels)
    weighted = levels_of(weights, f"{arg.weights}")
    counted = {frozenset(level.axes): level.weight for level in weighted}
    if not counted.keys() <= {frozenset(axes) for axes in chosen} or any(level.subsets for level in weighted):
        raise InputError(
            f"Keys of {arg.weights} must be among the levels, and one is not. See {arg.cell_weight} for that of cells."
        )
    return BudgetShares(
        SharedBudget(
            _kept(table, keep),
            records_of(table, max_rows_per_unit),
            chosen,
            exact_in_range(epsilon, "Epsilon"),
            (
                exact_in_range(cell_weight, "The weight of cells"),
                *(counted.get(frozenset(axes), Fraction(1)) for axes in chosen),
            ),
        )
    )


def _levels(levels: Any) -> tuple[tuple[str, ...], ...]:
    """The axes of each level; checked as those of a focus are."""
    if isinstance(levels, str):
        levels = [levels]
    if isinstance(levels, (bytes, Mapping)) or not isinstance(levels, Iterable):
        raise InputError(f"Levels must be a list such as ['state', 'county'], got {type_of(levels)}.")
    keys = [tuple(key) if isinstance(key, list) else key for key in levels]
    for key in keys:
        if not isinstance(key, str) and not (isinstance(key, tuple) and all(isinstance(axis, str) for axis in key)):
            raise InputError(f"Levels must be axes or tuples of axes, got {type_of(key)}.")
    if not keys:
        raise InputError("Levels must be one or more, got none. Without any, cells have the whole epsilon.")
    if len(set(keys)) < len(keys):
        raise InputError("Levels must be different, got one twice.")
    return tuple(level.axes for level in levels_of(dict.fromkeys(keys, 1), f"{arg.levels}"))


def _kept(table: Any, keep: Any) -> Invariants:
    if table is None:
        raise InputError("Levels must be of a Table or its Domain, got none.")
    return kept_totals(table, keep)


# ``ks.accuracy_curve`` and ``ks.mechanism_for``: choosing the privacy loss by the margin of error.


def accuracy_curve(
    table: Table | Domain | None = None,
    *,
    keep: Keep,
    mechanism: Request | Mechanism,
    values: Iterable[Number] | None = None,
    level: float = 0.95,
    max_rows_per_unit: int | None = None,
) -> AccuracyCurve:
    """Margins of error against the privacy loss, without any data and without spending any budget.

    Parameters
    ----------
    table, keep, max_rows_per_unit
        The cells, the totals to keep, and how many records one person has at most, as in :func:`plan`.
    mechanism
        ``Laplace`` or ``Gaussian``, per unit of distance or per person.
    values
        Values of its epsilon (or its rho, or sigma, if it was given as that) to compare; by default its own and up
        to eight round ones around it, without those that protect little; of these, where margins are simulated in a
        table of hundreds of cells, those of smaller losses are scaled from this one, and shown as "about".
    level
        The level of the margins.

    Returns
    -------
    AccuracyCurve
        It shows itself as a table; ``to_frame()`` and ``plot()`` give the same as a data frame and as a figure.

    Notes
    -----
    The kept totals are compiled once; then each value that is not scaled costs as much as ``plan.accuracy``.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": range(100), "sex": ["f", "m"]})
    >>> ks.accuracy_curve(domain, keep=["sex"], mechanism=ks.Laplace(epsilon=1), values=[0.4, 1, 4])
    AccuracyCurve(95% margins of error per cell)
      epsilon per person  typical  per unit of distance
      0.4                     ±30  epsilon 0.1
    > 1                       ±12  epsilon 0.25
      4                        ±3  epsilon 1
    """
    return curve_of(_candidates(table, keep, mechanism, level, max_rows_per_unit), values)


def mechanism_for(
    table: Table | Domain | None = None,
    *,
    keep: Keep,
    mechanism: Request | Mechanism,
    margin: int,
    level: float = 0.95,
    of: str = "typical",
    max_rows_per_unit: int | None = None,
) -> Laplace | Gaussian:
    """The mechanism of least privacy loss whose margin of error is at most so many counts.

    Parameters
    ----------
    table, keep, max_rows_per_unit
        The cells, the totals to keep, and how many records one person has at most, as in :func:`plan`.
    mechanism
        The kind of noise. Its epsilon is looked for (or its rho, or sigma, if it was given as that), per unit of
        distance or per person as it was given, so that the value itself does not matter.
    margin
        The margin of error to reach, in counts.
    level
        The level of the margin.
    of
        ``"typical"`` for the median margin of the cells, ``"largest"`` for that of every cell.

    Returns
    -------
    Laplace or Gaussian
        With the smallest epsilon of three digits that reaches the margin (the smallest rho, the largest sigma): the
        margin was computed for it, and is too large one step before it. Where margins are simulated, a step more
        or less may do as well.

    Raises
    ------
    PlanError
        If no loss reaches it, or a typical cell has no noise at any.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": range(100), "sex": ["f", "m"]})
    >>> chosen = ks.mechanism_for(domain, keep=["sex"], mechanism=ks.Laplace(epsilon=1), margin=10)
    >>> chosen, ks.plan(domain, keep=["sex"], mechanism=chosen).accuracy()
    (Laplace(epsilon=1.13, norm='l1'), Accuracy(typical 95% margin of error ±10 per cell))
    """
    target = check_whole(margin, "The margin", 1, LARGEST_TARGET)
    check_choice(of, f"{arg.of}", MARGINS_OF)
    candidates = _candidates(table, keep, mechanism, level, max_rows_per_unit)
    return candidates.family.at(candidates.least_loss(target, of).value)


def _candidates(
    table: Any, keep: Any, mechanism: Request | Mechanism, level: float, max_rows_per_unit: int | None
) -> Candidates:
    records, level = records_of(table, max_rows_per_unit), check_number(level, "Level", 0, 1)
    return Candidates.of(kept_totals(table, keep), mechanism, records, level)
