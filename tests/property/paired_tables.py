"""Random pairs of tables with the same kept totals and declarations, each written as a file in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import keepsum as ks

TEXTS = ["5-9", "10-14", "85+", "Rome, NY", '5" pipe', "Ämter", "zeta", "Beta", "-1", "01", "1"]
NOISE = (ks.Laplace.per_unit(epsilon=0.5), ks.Gaussian(sigma=2), ks.Laplace.per_unit(epsilon=0.5, norm="l2"))
SMALL = (np.int8, np.uint16, np.int32, np.float64, np.int64)


@dataclass(frozen=True)
class Declared:
    """What the curator says: the same for both tables of a pair."""

    domain: ks.Domain
    axes: tuple[str, ...]  # whose categories are declared
    named: bool  # whether the columns that are axes are named
    whole: bool  # whether the domain is declared whole, with its structural zeros
    keep: tuple[tuple[str, ...], ...]
    mechanism: ks.Laplace | ks.Gaussian
    keep_order: bool
    quoted: bool  # the names of the header of a CSV file
    kind: str  # the type of the columns of labels in a frame: plain, categorical or ordered

    def categories(self) -> dict[str, Any]:
        return {name: list(self.domain.categories(name)) for name in self.axes}


@dataclass(frozen=True)
class File:
    """One table, as rows in some order."""

    labels: list[dict[str, Any]]
    counts: list[int]
    dtype: type[np.generic]
    style: str  # how a count is written in a CSV file

    def frame(self, declared: Declared) -> pa.Table:
        """The rows with the types that are the same for both tables, but for the counts, which may be narrow."""
        fits = np.iinfo(self.dtype).max if np.issubdtype(self.dtype, np.integer) else 2**50
        dtype = self.dtype if max(self.counts, default=0) <= fits else np.int64
        columns = {}
        for name in declared.domain.axes:
            labels = [row[name] for row in self.labels]
            whole = isinstance(declared.domain.axis(name).labels[0], int)
            columns[name] = pa.array(labels, pa.int16() if whole else pa.string())
            if declared.kind != "plain" and not whole:
                # The list of categories in the order of the rows, as libraries make it.
                distinct = list(dict.fromkeys(labels))
                codes = pa.array([distinct.index(label) for label in labels], pa.int32())
                texts = pa.array(distinct, pa.string())
                columns[name] = pa.DictionaryArray.from_arrays(codes, texts, ordered=declared.kind == "ordered")
        return pa.table(columns | {"n": np.array(self.counts, dtype=dtype)})


@st.composite
def domains(draw):
    """Two to twenty-seven cells: text, numbers, a nested axis, structural zeros."""
    texts = st.lists(st.sampled_from(TEXTS), min_size=2, max_size=3, unique=True)
    numbers = st.lists(st.integers(-3, 12), min_size=2, max_size=3, unique=True)
    axes: dict[str, Any] = {"area": draw(texts)}
    within = {}
    if draw(st.booleans()):
        axes["town"] = {label: draw(texts) for label in axes["area"]}
        within = {"town": "area"}
    if draw(st.booleans()):
        axes["age"] = draw(numbers)
    if not within and draw(st.booleans()):
        axes["sex"] = draw(texts)
    return ks.Domain(axes, within)


@st.composite
def declarations(draw, whole=True):
    domain = draw(domains())
    zeros = whole and domain.size > 4 and draw(st.booleans())
    if zeros:
        domain = domain.without(domain.cell(draw(st.integers(0, domain.size - 1))))
    names = domain.axes
    most = 2 if domain.size <= 9 else 1  # samplers for wide tables under overlapping totals take long to prepare
    margins = draw(st.lists(st.sampled_from([*((n,) for n in names), ()]), min_size=1, max_size=most, unique=True))
    if not ks.Lattice(ks.Invariants.margins(domain, margins).coefficients).dimension:
        margins = [()]
    return Declared(
        domain=domain,
        axes=names if zeros or draw(st.booleans()) else tuple(name for name in names if draw(st.booleans())),
        named=draw(st.integers(0, 3)) > 0,
        whole=zeros,
        keep=tuple(margins),
        mechanism=draw(st.sampled_from(NOISE)),
        keep_order=draw(st.integers(0, 3)) == 0,
        quoted=draw(st.booleans()),
        kind=draw(st.sampled_from(["plain", "categorical", "ordered"])),
    )


@st.composite
def pairs(draw, whole=True):
    """What is declared, and two tables with the same kept totals, each written in its own way."""
    declared = draw(declarations(whole))
    size = declared.domain.size
    lattice = ks.Lattice(ks.Invariants.margins(declared.domain, declared.keep).coefficients)
    step = draw(st.sampled_from([1, 3, 400, 70_000]))
    moves = draw(st.lists(st.integers(-2, 2), min_size=lattice.dimension, max_size=lattice.dimension))
    change = step * (lattice.basis @ np.array(moves, dtype=np.int64)) if lattice.dimension else np.zeros(size, np.int64)
    base = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 7, 250]), min_size=size, max_size=size)))
    tables = [base + np.maximum(change, 0), base + np.maximum(-change, 0)]
    order = draw(st.permutations(range(size)))
    return declared, [draw(files(declared, counts, order)) for counts in tables]


@st.composite
def files(draw, declared, counts, order):
    """A table as a file: sorted by count, shuffled or in a given order; empty cells with a row or without."""
    domain = declared.domain
    if not declared.keep_order:  # else the order is public, and the same for both
        by_count = sorted(range(domain.size), key=lambda cell: -counts[cell])
        order = draw(st.sampled_from([by_count, by_count[::-1], range(domain.size), draw(st.permutations(order))]))
        seen = [cell for cell in order if counts[cell]]
        if draw(st.booleans()) and all(
            {tuple(domain.cell(cell).values())[: k + 1] for cell in seen}
            == {tuple(domain.cell(cell).values())[: k + 1] for cell in order}
            for k, name in enumerate(domain.axes)
            if name not in declared.axes
        ):
            order = seen
    rows = [{name: domain.cell(cell)[name] for name in domain.axes} for cell in order]
    style = draw(st.sampled_from(["{}", '"{}"', "+{}", " {} "]))
    return File(rows, [int(counts[cell]) for cell in order], draw(st.sampled_from(SMALL)), style)
