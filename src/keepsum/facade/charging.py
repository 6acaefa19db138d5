"""Which ledger a release is charged to."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger
    from keepsum.releasing.release import Drawn, Prepared
    from keepsum.sampling.core.rng import Rng

VARIABLE = "KEEPSUM_LEDGER"  # names a ledger for all releases


def ledger_path(path: str | None) -> str | None:
    """The file of the ledger that is named, or that the environment names."""
    return path if path is not None else os.environ.get(VARIABLE) or None


def ledger_of(ledger: Ledger | str | PathLike[str] | None, dataset: str | None) -> Ledger | None:
    """The ledger that is given, or that the environment names; None if there is none.

    Raises
    ------
    InputError
        If there is none although a dataset is named, or the dataset is not in it.
    """
    named = ledger if ledger is not None else ledger_path(None)
    if named is None:
        if dataset is not None:
            raise InputError("A dataset must be named with its ledger: ledger=, or the variable KEEPSUM_LEDGER.")
        return None
    from keepsum.ledger.ledger import Ledger  # SQLite, which other releases do not need

    found = named if isinstance(named, Ledger) else Ledger.open(named)
    found.dataset(dataset)
    return found


def draw_charged(
    ready: Prepared,
    ledger: Ledger | None,
    dataset: str | None = None,
    rng: Rng | None = None,
    threads: int = 1,
    charged: Callable[[], None] = lambda: None,
    keep: Callable[[Drawn], None] = lambda drawn: None,
) -> Drawn:
    """Charge a release to its ledger, if it has one, and only then draw it; in memory, it exists once it is drawn.

    ``charged`` is called once it is charged, and ``keep`` with what was drawn, before anything else can fail.
    """
    if ledger is None:
        drawn = ready.draw(rng, threads)
        keep(drawn)
        return drawn
    with ledger.charged(ready.plan, dataset, rng is not None and rng.seeded) as receipt:
        charged()
        drawn = ready.draw(rng, threads, receipt.record)
        keep(drawn)
        receipt.released(drawn.certificate.table.sha256)
    return drawn
