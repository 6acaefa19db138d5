"""Only the noise may depend on the counts.

For random pairs of tables with the same kept totals and the same declarations everything else that a release shows is
the same, however the two files are written: their rows in any order, with or without the rows of empty cells, and with
counts in any type that holds them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import keepsum as ks
from keepsum.accuracy.disclosure import bounded_cells
from keepsum.releasing.release import Prepared
from keepsum.tables.cells import arrange
from keepsum.tables.released import ReleasedTable
from property.paired_tables import Declared, File, pairs
from property.shown import FILES, MAKERS, by_command, by_library, outcome
from support import mostly_audit


@mostly_audit("door", [*FILES, *MAKERS])
@settings(derandomize=True, deadline=None, max_examples=12)
@given(pair=pairs())
def test_only_the_noise_depends_on_the_counts(door, pair):
    declared, (one, two) = pair
    assert outcome(by_library, declared, one, door) == outcome(by_library, declared, two, door)


LONG_DOORS = (pytest.param(door, marks=pytest.mark.audit) for door in FILES if door != "csv")


@pytest.mark.parametrize("door", ["csv", *LONG_DOORS])
@settings(derandomize=True, deadline=None, max_examples=6)
@given(pair=pairs(whole=False))
def test_nor_does_what_the_commands_print(door, pair):
    declared, (one, two) = pair
    assert outcome(by_command, declared, one, door) == outcome(by_command, declared, two, door)


# -- the comparison can fail ------------------------------------------------------------------------

TOWNS = ["Gort", "Bray", "Cobh", "Athy", "Naas", "Birr", "Trim", "Ennis"]
AUDIT = [50, 49, 48, 47, 45, 45, 45, 43], [50, 49, 48, 47, 44, 45, 46, 43]  # one person moved from Trim to Naas


def towns(*tables: list[int], order: Any = None) -> tuple[Declared, list[File]]:
    """Towns with the grand total kept, the second table's rows in an order of their own."""
    domain = ks.Domain({"town": TOWNS})
    declared = Declared(domain, (), False, False, ((),), ks.Laplace.per_unit(epsilon=0.25), False, False, "plain")
    files = []
    for counts, places in zip(tables, (range(8), order or range(8)), strict=True):
        rows = [{"town": TOWNS[place]} for place in places]
        files.append(File(rows, [counts[place] for place in places], np.int64, "{}"))
    return declared, files


@pytest.mark.parametrize("door", [*MAKERS, *FILES])
def test_the_pair_of_an_audit(door):
    """The first was released in the order of its labels, the second in that of its rows, with certainty."""
    declared, (one, two) = towns(*AUDIT)
    found, _ = outcome(by_library, declared, one, door)
    assert (found, _) == outcome(by_library, declared, two, door)
    assert found["table"][2].categories("town") == tuple(sorted(TOWNS))


def rows_decide(monkeypatch):
    monkeypatch.setattr("keepsum.tables.table.arrange", lambda *arguments: arrange(*arguments[:-1], True))


def ranks_decide(monkeypatch):
    """The order of the file where the counts do not fall with it: the rule that an audit found."""

    def decide(columns, counts, *rest):
        return arrange(columns, counts, *rest[:-1], bool((np.diff(counts) > 0).any()))

    monkeypatch.setattr("keepsum.tables.table.arrange", decide)


def types_shrink(monkeypatch):
    plain = ReleasedTable.to_frame

    def shrunk(table, backend=None):
        frame = plain(table, backend)
        return frame.cast({"n": pl.Int16}) if abs(table.counts).max() < 1000 else frame

    monkeypatch.setattr(ReleasedTable, "to_frame", shrunk)


def bounds_look(monkeypatch):
    def bounded(structure, counts, margins):
        return replace(bounded_cells(structure, counts, margins), not_checked=int((counts < 45).sum()))

    monkeypatch.setattr("keepsum.releasing.release.bounded_cells", bounded)


def sampler_looks(monkeypatch):
    plain = Prepared.draw
    seed_of = lambda counts: int((counts**2).sum())  # noqa: E731
    monkeypatch.setattr(Prepared, "draw", lambda ready, rng: plain(ready, ks.rng(seed=seed_of(ready.table.counts))))


BACKWARDS = range(7, -1, -1)


@pytest.mark.parametrize(
    ("wrong", "tables", "order", "part"),
    [
        (rows_decide, (AUDIT[0], AUDIT[0]), BACKWARDS, "table"),
        (ranks_decide, AUDIT, None, "files"),
        (types_shrink, ([10, 20, 30, 40, 50, 60, 70, 2000], [285] * 8), None, "frame"),
        (bounds_look, AUDIT, None, "before"),
        (sampler_looks, AUDIT, None, "noise"),
    ],
)
def test_the_comparison_finds_what_looks_at_rows_or_counts(monkeypatch, wrong, tables, order, part):
    declared, (one, two) = towns(*tables, order=order)
    wrong(monkeypatch)
    shown = [outcome(by_library, declared, file, "polars")[0] for file in (one, two)]
    assert shown[0][part] != shown[1][part]
