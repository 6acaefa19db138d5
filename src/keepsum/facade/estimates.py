"""What a release tells of the confidential table: margins of error, sums and intervals, for whoever holds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from keepsum._arguments import check_flag
from keepsum._copying import WithoutCaches
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.queries import Query, as_weights
from keepsum.accuracy.query_laws import check_level
from keepsum.accuracy.ratios import Ratio
from keepsum.errors import InputError
from keepsum.facade.marginal import Marginal, marginal_of, with_intervals
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.records import LEVEL
from keepsum.tables.released import ReleasedTable


def plan_accuracy(plan: CompiledPlan, level: float, simultaneous: bool = False, patient: bool = False) -> Accuracy:
    """The margins of error of a plan, with the names of its cells."""
    check_flag(simultaneous, "simultaneous=")
    check_flag(patient, "patient=")
    return replace(accuracy_by_level(plan.blocks, level, simultaneous, patient), domain=plan.invariants.domain)


class Estimates(WithoutCaches):
    """The part of a release that its readers use. It needs what is published, never the confidential counts.

    Attributes
    ----------
    table, unbiased
        The published table, and the table as it was drawn.
    """

    @property
    def table(self) -> ReleasedTable:
        """The published table."""
        raise NotImplementedError

    @property
    def unbiased(self) -> ReleasedTable:
        """The table as it was drawn."""
        raise NotImplementedError

    @property
    def _compiled(self) -> CompiledPlan:
        """The plan, which a certificate determines."""
        raise NotImplementedError

    def accuracy(self, level: float = LEVEL, *, simultaneous: bool = False, patient: bool = False) -> Accuracy:
        """The margin of error of every count of the unbiased table; see ``plan.accuracy``."""
        return replace(plan_accuracy(self._compiled, level, simultaneous, patient), origin=self.table.origin)

    def to_frame(self, backend: str | None = None, *, level: float | None = None, simultaneous: bool = False) -> Any:
        """The published table as a data frame; with a level, the unbiased table and the interval of each count.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        level
            Adds columns such as ``count_low`` and ``count_high``: the interval that holds the confidential count with
            this probability.
        simultaneous
            Intervals that hold all confidential counts at once with this probability.

        Examples
        --------
        >>> import keepsum as ks
        >>> table = ks.Table.from_array([15, 1, 20], axes={"county": ["Alpha", "Beta", "Gamma"]})
        >>> release = ks.release(table, keep=[[]], mechanism=ks.Laplace(epsilon=2), rng=ks.rng(seed=1))
        >>> release.to_frame("polars", level=0.9).columns
        ['county', 'count', 'count_low', 'count_high']
        """
        if level is None:
            return self.table.to_frame(backend)
        return with_intervals(self.unbiased, self.accuracy(level, simultaneous=simultaneous), backend)

    def marginal(self, axes: str | Iterable[str]) -> Marginal:
        """A margin of the released table: sums of released counts, at no further privacy loss.

        Parameters
        ----------
        axes
            An axis or a list of axes; parents of nested axes are added. ``[]`` for the grand total.

        Returns
        -------
        Marginal
            The table of totals, how many counts each is the sum of, whether they are kept exactly, and how large their
            noise is otherwise.

        Notes
        -----
        The more counts a total sums, the larger its noise. Where one margin matters most, keep it, or release it as a
        table of its own, whose loss is then added to that of this release.

        Examples
        --------
        >>> import keepsum as ks
        >>> counts = [[15, 1, 3], [20, 10, 9]]
        >>> table = ks.Table.from_array(counts, axes={"county": ["Alpha", "Beta"], "age": ["0-17", "18-64", "65+"]})
        >>> release = ks.release(table, keep=["county"], mechanism=ks.Laplace(epsilon=2))
        >>> release.marginal(["county"])
        Marginal(2 totals of county. These totals are kept exactly: they have no noise, and are not protected.)
        county  count
        Alpha      19
        Beta       39
        >>> print(release.marginal(["age"]).note)
        Each total is a sum of 2 released counts, so its noise is usually larger than that of a count: a typical 95%
        margin of error of ±5.
        >>> release.marginal(["age"]).accuracy(0.99).margins.tolist()
        [7, 7, 7]
        """
        return marginal_of(self.unbiased, self._compiled, axes, self.unbiased is not self.table)

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise, as ``plan.noise``; nothing of it depends on the counts."""
        return Noise(self._compiled.blocks, self._compiled.invariants)

    def interval(self, query: Query, level: float = 0.95, *, simultaneous: bool = False) -> tuple[int, int]:
        """An interval that holds the confidential value of a query with at least this probability.

        It is the released value of the unbiased table, less and plus the margin of ``noise.interval``; a query that the
        kept totals determine has an interval of one value.

        Parameters
        ----------
        query
            The number of a cell, labels such as ``{"state": "Illinois", "county": ["Cook County", "Lake County"]}``
            (the sum of all cells that have them), or a whole number for each cell.
        level
            The probability.
        simultaneous
            Intervals that hold for all queries at once with this probability, however many are asked: that of a cell is
            the one of ``to_frame(level=level, simultaneous=True)``, and that of a sum is as wide as those of its cells
            together. Totals of axes have shorter ones, ``marginal(axes).intervals(level, simultaneous=True)``.

        Examples
        --------
        >>> import keepsum as ks
        >>> table = ks.Table.from_array(
        ...     [[15, 1], [20, 10], [7, 9]], axes={"county": ["Alpha", "Beta", "Gamma"], "sex": ["f", "m"]}
        ... )
        >>> release = ks.release(table, keep=[[]], mechanism=ks.Laplace(epsilon=2), rng=ks.rng(seed=3))
        >>> release.interval({"county": ["Alpha", "Beta"]}), release.interval({}), release.interval({"sex": "f"})
        ((42, 48), (62, 62), (40, 46))
        """
        weights = as_weights(query, self._compiled.invariants)
        value = weights.of(self.unbiased.counts)
        if not check_flag(simultaneous, "simultaneous="):
            low, high = self.noise.interval(weights, level)
            return value + low, value + high
        margins = self.accuracy(level, simultaneous=True).margins[weights.cells].tolist()
        reach = sum(abs(weight) * margin for weight, margin in zip(weights.weights.tolist(), margins, strict=True))
        reach = 0 if self.noise.keeps(weights) else reach
        return value - reach, value + reach

    def difference(self, first: Query, second: Query, level: float = 0.95) -> tuple[int, int]:
        """An interval that holds the confidential difference of two queries with at least this probability.

        Noise that both have in common, or that moves one against the other, is taken into account.
        """
        one, other = (as_weights(query, self._compiled.invariants) for query in (first, second))
        return self.interval(one - other, level)

    def ratio(self, numerator: Query, denominator: Query, level: float = 0.95) -> tuple[float, float]:
        """An interval that holds the ratio of two confidential values with at least this probability.

        It has no upper end where the denominator may be 0 as far as the released counts tell, and no lower one either
        if a weight is negative.

        Examples
        --------
        >>> import keepsum as ks
        >>> table = ks.Table.from_array(
        ...     [[1500, 100], [2000, 1000]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]}
        ... )
        >>> release = ks.release(table, keep=[[]], mechanism=ks.Laplace(epsilon="0.2"), rng=ks.rng(seed=3))
        >>> low, high = release.ratio({"sex": "f"}, {"sex": "m"})
        >>> round(low, 2), round(high, 2)
        (3.05, 3.23)
        """
        one, other = (as_weights(query, self._compiled.invariants) for query in (numerator, denominator))
        counts = self.unbiased.counts
        reach, certain = self.noise.combined_reach(one, other), self.noise.keeps(one) or self.noise.keeps(other)
        positive = bool((one.weights > 0).all() and (other.weights > 0).all())
        return Ratio(one.of(counts), other.of(counts), reach, check_level(level), certain, positive).interval()

    def share(self, part: Query, whole: Query, level: float = 0.95) -> tuple[float, float]:
        """An interval that holds the confidential share of a part in a whole with at least this probability.

        Parameters
        ----------
        part, whole
            Queries: every cell of the part must be in the whole, as in
            ``release.share({"county": "Cook", "sex": "f"}, {"county": "Cook"})``.
        level
            The probability.
        """
        one, other = (as_weights(query, self._compiled.invariants) for query in (part, whole))
        rest = other - one
        if (one.weights < 0).any() or (rest.weights < 0).any():
            raise InputError("A part must be made of cells of the whole. Use ratio for other queries.")
        low, high = self.ratio(one, other, level)
        return min(low, 1.0), min(high, 1.0)
