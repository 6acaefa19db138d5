"""``ks.accuracy_curve`` and ``ks.mechanism_for``: choosing the privacy loss by the margin of error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keepsum._arguments import check_choice, check_number, check_whole
from keepsum.accuracy.candidates import LARGEST_TARGET, MARGINS_OF, Candidates
from keepsum.accuracy.curve import AccuracyCurve, curve_of
from keepsum.facade.totals import Keep, kept_totals, records_of
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.tables.domain import Domain
from keepsum.tables.table import Table


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
        to eight round ones around it, without those that protect little.
    level
        The level of the margins.

    Returns
    -------
    AccuracyCurve
        It shows itself as a table; ``to_frame()`` and ``plot()`` give the same as a data frame and as a figure.

    Notes
    -----
    The kept totals are compiled once; then each value costs as much as ``plan.accuracy``.

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
    check_choice(of, "of=", MARGINS_OF)
    candidates = _candidates(table, keep, mechanism, level, max_rows_per_unit)
    return candidates.family.at(candidates.least_loss(target, of).value)


def _candidates(
    table: Any, keep: Any, mechanism: Request | Mechanism, level: float, max_rows_per_unit: int | None
) -> Candidates:
    records, level = records_of(table, max_rows_per_unit), check_number(level, "Level", 0, 1)
    return Candidates.of(kept_totals(table, keep), mechanism, records, level)
