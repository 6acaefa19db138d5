"""What releases of one dataset cost together; every rule is proved in ``docs/accounting.md``.

Let z be the difference of two datasets that agree on the kept totals of all releases. A release of a table P z, where P
merges or leaves out cells, loses epsilon |P z| or rho |P z|_2^2 in its norm, and |P z|_2 <= |P z|_1 <= |z|_1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from keepsum._arguments import check_choice, check_flag
from keepsum._saying import arg
from keepsum._text import type_of
from keepsum.accounting.total import EXACTNESS, Approximate, Cost, Total
from keepsum.errors import InputError
from keepsum.privacy.calibration import rounded_up
from keepsum.privacy.distance import Norm
from keepsum.sampling.core.balls import ball


def compose(costs: Iterable[Cost | Total], same_table: bool = True) -> Total:
    """The total of releases of the same people, whether or not a release was chosen after seeing the ones before.

    If their *costs* depend on what was seen, sums of epsilon and of rho stay valid, but not the smallest epsilon of
    several rules that ``Total.at`` gives for a delta.

    Losses add up. They are per unit of l2 distance if all noise is in the l2 norm and of one table; otherwise per unit
    of l1 distance, which bounds every one of them: merging cells shrinks l1 distances but not l2 ones.

    Parameters
    ----------
    costs
        The costs of the releases, or totals of some of them.
    same_table
        Whether all of them are releases of one and the same table, cell by cell.

    Examples
    --------
    >>> laplace, gaussian = Cost("l1", Fraction(1, 2)), Cost("l2", rho=Fraction(1, 8))
    >>> compose([laplace, laplace]).epsilon
    Fraction(1, 1)
    >>> total = compose([laplace, gaussian])
    >>> total.norm, total.epsilon, total.rho, total.zcdp
    ('l1', Fraction(1, 2), Fraction(1, 8), Fraction(1, 4))
    """
    totals = _totals(costs)
    check_flag(same_table, f"{arg.same_table}")
    several = sum(total.releases for total in totals) > 1
    norm: Norm = "l2" if _all_l2(totals) and (same_table or not several) else "l1"
    approximate = Approximate(
        _added(total.approximate.epsilon for total in totals),
        _added_deltas(totals),
        _added(total.approximate.rho for total in totals),
    )
    epsilon = _added(total.epsilon for total in totals)
    rho = _added(total.rho for total in totals)
    zcdp = _added(total.zcdp for total in totals)
    return _total(totals, norm, (epsilon, rho, zcdp), approximate)


def compose_parallel(costs: Iterable[Cost | Total], norm: Norm | None = None) -> Total:
    """The total of releases of disjoint parts of the domain, each keeping totals of its own part only.

    A difference z consists of one z_i for each part. Per unit of l1 distance: the largest epsilon, the largest delta.
    Per unit of l2 distance: the root of the summed squares of epsilon, the sum of deltas. The largest rho in both.
    Sampling errors add up. That every kept total lies inside one part is for the caller to see to.

    Parameters
    ----------
    costs
        The costs of the releases, one for each part, or totals of several releases of one part.
    norm
        How to measure distance: by default l2 if all noise is in the l2 norm; ``"l1"`` is always possible.

    Examples
    --------
    >>> parts = [Cost("l2", Fraction(3, 5)), Cost("l2", Fraction(4, 5))]
    >>> compose_parallel(parts).epsilon, compose_parallel(parts, norm="l1").epsilon
    (Fraction(1, 1), Fraction(4, 5))
    """
    totals = _totals(costs)
    if norm is not None:
        check_choice(norm, "Norm", ("l1", "l2"))
        if norm == "l2" and not _all_l2(totals):
            raise InputError("Norm must be 'l1' where a release has noise in the l1 norm, got 'l2'.")
    measured: Norm = norm or ("l2" if _all_l2(totals) else "l1")
    pure, stated = [total.epsilon for total in totals], [total.approximate.epsilon for total in totals]
    rest = max(total.approximate.rho for total in totals)
    if measured == "l1":
        epsilon, largest = max(pure), max(stated)
        delta = max(_added(delta for _, delta in total.approximate.deltas) for total in totals)
        approximate = Approximate(largest, ((largest, delta),) if delta else (), rest)
    else:
        epsilon = root_of_squares(pure)
        approximate = Approximate(root_of_squares(stated), _added_deltas(totals), rest)
    rho, zcdp = max(total.rho for total in totals), max(total.zcdp for total in totals)
    return _total(totals, measured, (epsilon, rho, zcdp), approximate)


def _totals(costs: Iterable[Cost | Total]) -> list[Total]:
    if not isinstance(costs, Iterable):
        raise InputError(f"Costs must be a list of costs, got {type_of(costs)}.")
    totals = [cost if isinstance(cost, Total) else Total.of(cost) for cost in costs]
    if not totals:
        raise InputError("Costs must be a list of one or more, got none.")
    return totals


def _all_l2(totals: Sequence[Total]) -> bool:
    return all(total.norm == "l2" for total in totals)


def _total(
    totals: Sequence[Total], norm: Norm, losses: tuple[Fraction, Fraction, Fraction], approximate: Approximate
) -> Total:
    """A total with what is the same for every rule: sampling errors add, and the weakest exactness counts."""
    return Total(
        norm,
        *losses,
        approximate,
        error=min(Fraction(1), _added(total.error for total in totals)),
        sampling=max((total.sampling for total in totals), key=EXACTNESS.index),
        releases=sum(total.releases for total in totals),
        mixed=norm == "l1" and any(total.norm == "l2" or total.mixed for total in totals),
    )


def _added_deltas(totals: Sequence[Total]) -> tuple[tuple[Fraction, Fraction], ...]:
    alike: dict[Fraction, list[Fraction]] = {}
    for total in totals:
        for growth, delta in total.approximate.deltas:
            alike.setdefault(growth, []).append(delta)
    return tuple((growth, _added(alike[growth])) for growth in sorted(alike))


def _added(numbers: Iterable[Fraction]) -> Fraction:
    """The exact sum; numerators of equal denominators first, as there are few denominators among many releases."""
    numerators: dict[int, int] = {}
    for number in numbers:
        numerators[number.denominator] = numerators.get(number.denominator, 0) + number.numerator
    return sum((Fraction(n, d) for d, n in numerators.items()), Fraction(0))


def root_of_squares(numbers: Sequence[Fraction]) -> Fraction:
    """The root of the summed squares, exact where it is rational, else rounded up to twelve digits."""
    square = _added(number**2 for number in numbers)
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    return root if root**2 == square else rounded_up(lambda: ball(square).sqrt())
