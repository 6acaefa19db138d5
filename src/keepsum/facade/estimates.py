"""What a release tells of the confidential table: margins of error, sums, intervals, and tables that are margins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import check_choice, check_flag, check_path
from keepsum._arrays import Floats, IntArray
from keepsum._copying import WithoutCaches
from keepsum._saying import arg
from keepsum._text import percent, printable
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise, Ratio
from keepsum.accuracy.queries import Query, as_weights
from keepsum.accuracy.query_laws import check_level
from keepsum.accuracy.regression import (
    Fit,
    check_covariates,
    check_offset,
    least_squares_fit,
    likelihood_fit,
    poisson_fit,
)
from keepsum.accuracy.sums import sum_accuracy, sum_deviations
from keepsum.errors import DataError, InputError
from keepsum.lattice.matrix import product
from keepsum.lattice.structure import decompose
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.codec import LEVEL
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Margin, describe_margin
from keepsum.tables.released import FirstRows, IntervalTable, ReleasedTable, frame_of

# Tables that are margins of one release: sums of its counts, at no further privacy loss.

GRAND_TOTAL = "grand total"


@dataclass(frozen=True, eq=False, repr=False)
class Marginal:
    """A margin of a release: for each of its totals, the sum of the released counts.

    Made by ``release.marginal``. It costs no further privacy loss, because it is computed from what is published.

    Attributes
    ----------
    table
        The totals, as a released table over the axes of the margin; the grand total is a table of one row.
    axes
        The axes, with the parents of nested ones; none for the grand total.
    cells
        How many released counts each total is the sum of.
    kept
        Whether the release keeps all of these totals, so that they are exact.
    """

    table: ReleasedTable
    axes: tuple[str, ...]
    cells: IntArray
    kept: bool
    _plan: CompiledPlan
    _sums: IntArray  # in which of the totals each cell of the release is
    _beside: bool = False  # whether the published table is another, without negative counts, beside the unbiased one

    @cached_property
    def deviations(self) -> Floats | None:
        """The standard deviation of the noise in each total; None where it would take too long to simulate."""
        if self.kept:
            return np.zeros(len(self.cells))
        return sum_deviations(self._plan.blocks, self._sums, len(self.cells))

    def accuracy(self, level: float = LEVEL, *, simultaneous: bool = False) -> Accuracy:
        """The margin of error of each total; of all of them at once, if ``simultaneous``."""
        check_flag(simultaneous, f"{arg.simultaneous}")
        level = check_level(level)
        key = (level, simultaneous)
        if key not in self._found:
            found = Accuracy(level, np.zeros(len(self.cells), dtype=np.int64), simultaneous=simultaneous, what="total")
            if not self.kept:
                found = sum_accuracy(self._plan.blocks, self._sums, len(self.cells), level, simultaneous)
            self._found[key] = replace(found, domain=self.table.domain, origin=self.table.origin)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[float, bool], Accuracy]:
        return {}

    def intervals(self, level: float = LEVEL, *, simultaneous: bool = False) -> IntArray:
        """The interval of each total, a row of (low, high): it holds the confidential total with this probability.

        With ``simultaneous`` they all do so at once.
        """
        margins = self.accuracy(level, simultaneous=simultaneous).margins
        return np.stack([self.table.counts - margins, self.table.counts + margins], axis=1)

    def ranks(self, level: float = LEVEL) -> IntArray:
        """The rank of each total, a row of (highest, lowest): both ends hold for all totals at once.

        Rank 1 is the largest. With at least this probability every confidential total has a rank between both ends;
        equal totals share a range of ranks, and each of it is within.

        Examples
        --------
        >>> import keepsum as ks
        >>> counts = [[150, 180], [900, 870], [160, 174], [20, 10]]
        >>> table = ks.Table.from_array(counts, axes={"county": list("ABCD"), "sex": ["f", "m"]})
        >>> release = ks.release(table, keep=["sex"], mechanism=ks.Laplace(epsilon=1), rng=ks.rng(seed=1))
        >>> release.marginal("county").ranks().tolist()
        [[2, 3], [1, 1], [2, 3], [4, 4]]
        """
        return ranks(self.table.counts, self._apart(check_level(level)))

    def _apart(self, level: float) -> IntArray:
        """How far two released totals must be apart, for all pairs at once: a matrix, which no count decides."""
        if self.kept:
            return np.zeros((len(self.cells), len(self.cells)), dtype=np.int64)
        noise = Noise(self._plan.blocks, self._plan.invariants)
        found = noise.reaches_of_differences(self._sums, len(self.cells), level)
        if found is None:
            margins = self.accuracy(level, simultaneous=True).margins
            found = margins[:, None] + margins
        return found

    @property
    def note(self) -> str:
        """What a reader must know of these totals, in a sentence or two."""
        return self.note_at(LEVEL)

    def note_at(self, level: float, *, simultaneous: bool = False) -> str:
        """The note, with the margin of error at a level."""
        found = self.accuracy(level, simultaneous=simultaneous)
        if self.kept:
            return "These totals are kept exactly: they have no noise, and are not protected."
        low, high = int(self.cells.min()), int(self.cells.max())
        cells = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        source = f", {found.source}" if found.source else ""
        size = f"a typical {percent(found.level)} margin of error of ±{found.typical:,}"
        if found.simultaneous and len(self.cells) > 1:
            largest = int(found.margins.max())
            size = f"a {percent(found.level)} margin of error of up to ±{largest:,} for all totals at once"
        counts = "counts of the unbiased table" if self._beside else "released counts"
        larger = "" if self._plan.mechanism.focus else ", so its noise is usually larger than that of a count"
        sentence = f"Each total is a sum of {cells} {counts}{larger}: {size}{source}."
        if not self._beside:
            return sentence
        return (
            f"{sentence} It may be negative. Sums of the published table, which has no negative counts, may differ, "
            f"and are biased."
        )

    def to_frame(self, backend: str | None = None, *, level: float | None = None, simultaneous: bool = False) -> Any:
        """The totals as a data frame; see ``ReleasedTable.to_frame``.

        With a level the ends of the interval of each total are added, as columns such as ``count_low`` and
        ``count_high``.
        """
        if level is None:
            return self.table.to_frame(backend)
        return with_intervals(self.table, self.accuracy(level, simultaneous=simultaneous), backend)

    def save(
        self, path: str | PathLike[str], *, level: float | None = None, simultaneous: bool = False, force: bool = False
    ) -> Path:
        """Write the totals to a file, as ``keepsum marginal`` does, completely or not at all.

        Parameters
        ----------
        path
            A file such as ``"states.csv"`` (or .parquet, .arrow).
        level, simultaneous
            With a level the file has the interval of each total too, as ``to_frame`` does.
        force
            Replace an existing file.

        Returns
        -------
        pathlib.Path
            The file.
        """
        # Locks and signatures, which sums do not need.
        from keepsum.releasing.destination import check_sums, write_sums
        from keepsum.sources.writing import kind_of

        check_flag(force, f"{arg.force}")
        check_flag(simultaneous, f"{arg.simultaneous}")
        file = check_path(path, "The file of sums")
        check_sums(file, force)
        write_sums(file, file_of(self, kind_of(file), level, simultaneous), force)
        return file

    def __repr__(self) -> str:
        words = printable(f"Marginal({describe_margin(len(self.cells), self.axes, self._parents)}. {self.note})")
        return f"{words}\n{FirstRows.of(self.table).as_text()}"

    def _repr_html_(self) -> str:
        return f"{self.table._repr_html_()}<p>{self.note}</p>"

    @property
    def _parents(self) -> list[str]:
        return list(self.table.domain.within.values())


def ranks(counts: IntArray, apart: IntArray) -> IntArray:
    """The highest and the lowest rank of each count, where one that is more than ``apart`` above another is larger."""
    # Where |z_i - z_j| <= apart_ij for all pairs, r_i - r_j > apart_ij proves that y_i > y_j.
    larger = counts[:, None] - counts > apart
    return np.stack([1 + larger.sum(axis=0), len(counts) - larger.sum(axis=1)], axis=1)


def file_of(marginal: Marginal, kind: str, level: float | None = None, simultaneous: bool = False) -> bytes:
    """The totals as the contents of a file of this kind: csv, parquet or arrow; with a level, and their intervals.

    A file with intervals has one row per total, also where the table is wide.
    """
    from keepsum.sources.writing import table_bytes

    if level is None:
        return table_bytes(marginal.table, kind)
    intervals = IntervalTable.of(marginal.table, marginal.accuracy(level, simultaneous=simultaneous).margins)
    return table_bytes(intervals, kind, intervals.layout)


def with_intervals(table: ReleasedTable, accuracy: Accuracy, backend: str | None) -> Any:
    """A table with its intervals as a data frame: the labels, the counts, and the ends of the interval of each."""
    intervals = IntervalTable.of(table, accuracy.margins)
    return frame_of(intervals, backend, intervals.layout)


def marginal_of(released: ReleasedTable, plan: CompiledPlan, axes: Iterable[str], beside: bool = False) -> Marginal:
    """The margin of a released table over these axes; over none, the grand total.

    ``beside`` says that it is the unbiased table of a release whose published table has no negative counts.
    """
    margin = Margin(released.domain, released.domain.closure(axes))
    sums = released.domain.marginal_index(margin.axes)
    totals = product(margin.coefficients(), released.counts)
    if totals.dtype != np.int64:
        raise DataError("Totals of released counts must fit in 64 bits, and one does not.")
    if margin.axes:
        origin = released.origin
        if origin is not None and origin.wide not in margin.axes:
            origin = replace(origin, wide=None)
        carried = tuple(column for column in released.carried if column.axis in margin.axes)
        domain = released.domain.project(margin.axes)
        table = replace(released, domain=domain, counts=totals, origin=origin, rows=None, carried=carried)
    else:
        name = "margin" if released.count == "total" else "total"
        table = ReleasedTable(Domain({name: [GRAND_TOTAL]}), totals, released.count)
    cells = np.bincount(sums, minlength=margin.height)
    return Marginal(table, margin.axes, cells, _is_kept(margin, sums, plan), plan, sums, beside)


def _is_kept(margin: Margin, sums: IntArray, plan: CompiledPlan) -> bool:
    """Whether every total of a margin follows from the kept totals: a finer margin is kept, or the rank says so.

    Cells of one region are in the same kept totals, so where they are in different totals of the margin it does not.
    """
    kept, region = plan.invariants, plan.structure.region
    if any(isinstance(part, Margin) and set(margin.axes) <= set(part.axes) for part in kept.parts):
        return True
    of_region = np.zeros(len(plan.structure.sizes), dtype=np.int64)
    of_region[region] = sums
    if (of_region[region] != sums).any():
        return False
    both = sparse.csr_array(sparse.vstack([kept.coefficients, margin.coefficients()], format="csr"))
    return decompose(both).rank == plan.structure.rank


def plan_accuracy(plan: CompiledPlan, level: float, simultaneous: bool = False, patient: bool = False) -> Accuracy:
    """The margins of error of a plan, with the names of its cells."""
    check_flag(simultaneous, f"{arg.simultaneous}")
    check_flag(patient, f"{arg.patient}")
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

    def ranks(self, axes: str | Iterable[str], level: float = LEVEL) -> IntArray:
        """The ranks that each total of a margin can have, all at once with this probability.

        See ``Marginal.ranks``. ``release.marginal(axes)`` has the totals in the same order.
        """
        return self.marginal(axes).ranks(level)

    def covariance(self, queries: Iterable[Query] | None = None) -> Floats:
        """The covariance matrix of the noise of several queries, which is that of their released values.

        Parameters
        ----------
        queries
            See ``interval``; by default every cell.

        Examples
        --------
        >>> import keepsum as ks
        >>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
        >>> release = ks.release(table, keep=["county"], mechanism=ks.Laplace(epsilon=1))
        >>> release.covariance([0, 1, {"sex": "f"}]).round(2)
        array([[ 7.84, -7.84,  7.84],
               [-7.84,  7.84, -7.84],
               [ 7.84, -7.84, 15.67]])
        """
        return self.noise.covariances(self._listed(queries))

    def fit_linear(self, covariates: npt.ArrayLike, queries: Iterable[Query] | None = None) -> Fit:
        """Weighted least squares of released values on covariates, with weights from the published noise.

        The confidential values are taken to be linear in the covariates, with residuals that are independent of each
        other and have one variance. That variance is estimated; the noise's covariances are known (``covariance``), so
        that precise values count for more and noise that adds up to 0 is used.

        Parameters
        ----------
        covariates
            A matrix with a row for each query and a column for each coefficient; for an intercept, a column of ones.
        queries
            The values to explain, in this order; by default every cell.

        Returns
        -------
        Fit
            ``coefficients``, ``errors``, ``covariance`` and ``interval(which, level)``.

        Examples
        --------
        >>> import numpy as np
        >>> import keepsum as ks
        >>> table = ks.Table.from_array([100, 220, 290, 410, 500, 590], axes={"year": range(2019, 2025)})
        >>> release = ks.release(table, keep=[], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
        >>> fit = release.fit_linear(np.column_stack([np.ones(6), np.arange(6)]))
        >>> fit.coefficients.round(1), fit.errors.round(1)
        (array([108.8,  97.3]), array([8.8, 2.9]))
        """
        asked = self._listed(queries)
        matrix = check_covariates(covariates, len(asked), "cell" if queries is None else "query")
        values = [as_weights(query, self._compiled.invariants).of(self.unbiased.counts) for query in asked]
        return least_squares_fit(np.array(values, dtype=np.float64), matrix, self.noise.covariances(asked))

    def fit_poisson(
        self, covariates: npt.ArrayLike, offset: npt.ArrayLike | None = None, *, method: str = "likelihood"
    ) -> Fit:
        """A Poisson regression of the confidential counts, from the released ones.

        Parameters
        ----------
        covariates
            A matrix with a row for each cell and a column for each coefficient; for an intercept, a column of ones.
        offset
            For each cell a number that is added to the logarithm of its rate, such as that of its population.
        method
            ``"likelihood"``: the exact likelihood of the released counts, where totals do not overlap (see
            ``noise.log_likelihood``). ``"robust"``: the usual equations, which noise does not bias, with standard
            errors from the residuals; for any release, with longer intervals.

        Returns
        -------
        Fit
            ``coefficients``, ``errors``, ``covariance`` and ``interval(which, level)``.

        Examples
        --------
        >>> import numpy as np
        >>> import keepsum as ks
        >>> table = ks.Table.from_array([7, 11, 12, 22, 30, 51], axes={"year": range(2019, 2025)})
        >>> release = ks.release(table, keep=[[]], mechanism=ks.Laplace(epsilon=1), rng=ks.rng(seed=1))
        >>> fit = release.fit_poisson(np.column_stack([np.ones(6), np.arange(6)]))
        >>> fit.coefficients.round(2), fit.errors.round(2)
        (array([1.81, 0.42]), array([0.26, 0.07]))
        """
        check_choice(method, f"{arg.method}", ["likelihood", "robust"])
        counts = self.unbiased.counts
        matrix = check_covariates(covariates, len(counts), "cell")
        offset = check_offset(offset, len(counts))
        if method == "robust":
            return poisson_fit(counts, matrix, offset, robust=True)
        return likelihood_fit(counts, matrix, offset, self.noise.log_likelihood)

    def _listed(self, queries: Iterable[Query] | None) -> list[Query]:
        """Queries one by one; by default each cell."""
        if queries is None:
            return list(range(self._compiled.invariants.size))
        if isinstance(queries, Mapping) or not isinstance(queries, Iterable):
            raise InputError("Queries must be a list of queries, each a cell, labels, or a whole number for each cell.")
        return list(queries)

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
        if not check_flag(simultaneous, f"{arg.simultaneous}"):
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
