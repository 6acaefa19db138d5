"""A general sampler where no exact one is fast enough: as pilots have chosen before, or by new ones."""

from __future__ import annotations

from collections.abc import Callable

from keepsum.planning.selection.choice import Choice
from keepsum.planning.selection.general import Arranged, draw_by, settle
from keepsum.planning.selection.outcomes import Limits, OutcomeStore


def choose_general(arranged: Arranged, store: OutcomeStore, limits: Limits, exact: Callable[[], Choice]) -> Choice:
    """What pilots have chosen under these limits, if they have; else an exact sampler, or what new pilots choose.

    ``exact`` gives the exact sampler, or says why there is none; it is not called where a choice is known.
    """
    outcome = store.read(limits)
    if outcome is not None:
        choice = draw_by(outcome, arranged)
        if choice.sampler is not None or outcome.method is None:
            return choice
    tried = exact()
    if tried.sampler is not None:
        store.drop()
        return tried
    outcome = settle(arranged.problem, tried.reasons)
    store.write(outcome, limits)
    return draw_by(outcome, arranged)
