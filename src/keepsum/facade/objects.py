"""``ks.Plan`` and ``ks.Release``: the two objects that users hold, with everything that they ask of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from keepsum._arguments import check_whole
from keepsum.accuracy.law import Noise
from keepsum.accuracy.margins import Accuracy, accuracy
from keepsum.accuracy.tails import tail_bound
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.numbers import Number
from keepsum.releasing.explain import explain, explain_html
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.tables.axes import IntArray
from keepsum.tables.table import Table


class Plan(CompiledPlan):
    """A compiled release: immutable, free of data, safe to share between threads.

    Made by :func:`plan`.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "education": ["low", "high"]})
    >>> plan = ks.plan(ks.Invariants.margins(domain, [["county"], ["education"]]), ks.Laplace(epsilon=0.25))
    >>> plan
    Plan(6 cells, 4 independent totals kept, Laplace(epsilon=0.25, norm='l1'))
    >>> plan.person_distance, plan.pinned.tolist()
    (4, [])
    >>> [(attribute.axis, str(attribute.any_value)) for attribute in plan.attributes]
    [('county', '4'), ('education', '4')]
    """

    @classmethod
    def of(cls, compiled: CompiledPlan) -> Plan:
        """A compiled plan as users hold it."""
        return cls(**{field.name: getattr(compiled, field.name) for field in fields(compiled)})

    @property
    def sigma(self) -> Fraction | None:
        """The width of Gaussian noise, exactly as it is drawn; None for Laplace noise."""
        return self.mechanism.scale if self.mechanism.kind == "gaussian" else None

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise: variances and intervals of single cells."""
        return Noise(self.invariants, self.structure, self.mechanism)

    def accuracy(self, level: float = 0.95) -> Accuracy:
        """The margin of error of every cell: what a release will be like, without spending any budget."""
        return accuracy(self.blocks, level)

    def tail_bound(self, length: float) -> float:
        """The paper's bound of the chance that the noise is at least that long, in the l2 norm."""
        return tail_bound(self.mechanism, self.geometry, length)

    def explain(self) -> str:
        """What is kept, the blocks, the guarantee, the pinned cells and what one person costs, for a person."""
        return explain(self)

    def sample(self, size: int | None = None, rng: Rng | None = None, threads: int = 1) -> IntArray:
        """Draw noise that keeps every total.

        Parameters
        ----------
        size
            How many draws; without it one, as a flat vector.
        rng
            The source of randomness; by default the operating system's. The same seed gives the same noise for any
            number of threads.
        threads
            How many threads to use.

        Returns
        -------
        numpy.ndarray
            int64, one row per draw, one column per cell.
        """
        draws = 1 if size is None else check_whole(size, "The number of draws", 0)
        threads = check_whole(threads, "The number of threads", 1)
        noise = self.blocks.sample(draws, checked_rng(rng), threads)
        return noise[0] if size is None else noise

    def release(
        self,
        table: Table,
        *,
        accept_pinned: str | Iterable[Any] = (),
        accept_delta: Number | None = None,
        rng: Rng | None = None,
        threads: int = 1,
    ) -> Release:
        """Release a table by this plan; see :func:`keepsum.release`."""

    def _repr_html_(self) -> str:
        return explain_html(self)
