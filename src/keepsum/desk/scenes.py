"""All that a page is made of, taken together at one moment: so no page shows one draft with the number of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsum.desk.deriving import Draft, Look
from keepsum.desk.history import Made

if TYPE_CHECKING:
    from keepsum.desk.finished import Finished
    from keepsum.desk.jobs import Job
    from keepsum.ledger.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Scene:
    """A draft, its version, what was asked for of it, and what else the desk has.

    Parameters
    ----------
    look, whole
        What is known of the draft: up to the stage that was asked for, and of all stages.
    progress
        The work that goes on.
    opened, made
        The steps whose pages were opened with this file, and the releases that were made of it.
    """

    draft: Draft | None
    version: int
    look: Look
    whole: Look
    finished: Finished | None
    releasing: Job | None
    progress: Job | None
    is_given_up: bool
    ledger: Ledger | None
    say: Callable[[str], str]
    opened: frozenset[str] = frozenset()
    made: tuple[Made, ...] = ()
