"""``ks.Plan`` and ``ks.Release``: the two objects that users hold, with everything that they ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from keepsum._arguments import check_whole
from keepsum.accuracy.law import Noise
from keepsum.accuracy.margins import Accuracy, accuracy
from keepsum.accuracy.tails import tail_bound
from keepsum.convergence.observe import observe_plan
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

    def certify(
        self,
        pairs: int | None = None,
        confidence: float = 0.95,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Plan:
        """Measure how near the chains of this plan come to their target: the plan that carries the result.

        Two coupled chains, one some steps ahead of the other, see the same proposals until they meet; their meeting
        times bound the total variation between a chain and its target (Biswas, Jacob and Vanetti 2019). It needs no
        data and spends no budget. Meeting times are kept in the user's cache folder, so that a run that was stopped
        goes on, and the next plan with the same blocks finds them.

        Parameters
        ----------
        pairs
            How many pairs of chains per form of blocks; by default 4,000, fewer where they would take long.
        confidence
            The level of the limit.
        threads
            How many threads to use, by default all.
        progress
            Called with the pairs done and those wanted.

        Returns
        -------
        Plan
            The same plan, whose ``convergence`` holds for each form of blocks the limit observed and its
            extrapolation. Where nothing is drawn by chains there is nothing to show, and nothing is run.
        """
        return self.with_convergence(observe_plan(self, pairs, confidence, threads, progress))

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
