"""On workers: the noise of a task, and the released rows of its cells.

The noise of a task is that of its pieces given their sums, drawn from a source whose key follows from the secret of the
release and the number of the task: whoever does the task, and however often, draws the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.core.rng import keyed_rng
from keepsum.spark.encoding import by_task
from keepsum.spark.layout import Layout
from keepsum.tables.domain import Domain

BATCH_ROWS = 2**16  # that are handed to Spark at a time


@dataclass(frozen=True, eq=False)
class Noise:
    """How the noise of a release is drawn, task by task.

    Attributes
    ----------
    secret
        What the keys of all tasks are derived from; held for the run, in the driver and in a broadcast variable.
    kind, scale
        Of the mechanism: ``"laplace-l1"`` or ``"gaussian"``, and its width.
    sums
        The sum of the noise of each piece of the layout; None if all are 0.
    free
        Whether cells are under no total, so that there are no sums.
    """

    secret: bytes = field(repr=False)
    kind: str
    scale: Fraction
    sums: IntArray | None = field(default=None, repr=False)
    free: bool = False

    def draw(self, layout: Layout, task: int) -> IntArray:
        """The noise of the cells of a task, in the order of their positions."""
        pieces, sizes = layout.pieces_of(task)
        noise = np.empty((1, int(sizes.sum())), dtype=np.int64)
        sums = None if self.sums is None else self.sums[pieces]
        self._sampler(sizes, sums).draw_into(noise, keyed_rng(self.secret, task))
        drawn: IntArray = noise[0]
        return drawn

    def _sampler(self, sizes: IntArray, sums: IntArray | None) -> Any:
        width = int(sizes.sum())
        if self.kind == "laplace-l1":
            from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells

            return FreeCells(1 / self.scale, width) if self.free else ForcedSums(1 / self.scale, sizes, sums)
        from keepsum.sampling.gaussian.sums import FreeGaussian, LatticeGaussian, SumsGaussian

        part = FreeGaussian(width) if self.free else SumsGaussian(sizes, sums=sums)
        return LatticeGaussian(part, self.scale**2)


def fill(
    layout: Callable[[], Layout], noise: Callable[[], Noise], count: str
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The released rows of tasks, for ``mapInArrow`` on partitions sorted by task.

    ``layout`` and ``noise`` are called on workers.
    """

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        where, how = layout(), noise()
        for task, positions, counts in by_task(batches):
            first, last = where.starts[task : task + 2].tolist()
            released = how.draw(where, task)
            np.add.at(released, positions - first, counts)
            rows = labelled(where.domain, where.codes(where.rows(first, last)), released, count)
            yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    return work


def labelled(domain: Domain, codes: dict[str, IntArray], counts: IntArray, count: str) -> Any:
    """Rows with the labels of cells, and their counts."""
    import pyarrow as pa

    columns = {name: pa.array(list(domain.axis(name).labels)).take(pa.array(codes[name])) for name in domain.axes}
    return pa.table(columns | {count: pa.array(counts)})
