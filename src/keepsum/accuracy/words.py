"""How margins of error are known, in words."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

Basis: TypeAlias = Literal["exact", "conservative", "estimated"]
STANDARD_ERRORS = 3  # that margins from simulated draws allow for


def words_of_basis(basis: Basis, draws: int, error: float) -> str:
    """How margins are known; empty if they were computed.

    Examples
    --------
    >>> words_of_basis("estimated", 4000, 0.000347)
    'from 4,000 simulated draws with 0.11 percentage points allowed for their error'
    """
    if basis == "exact":
        return ""
    if basis == "conservative":
        return "by a proved bound, which is too long rather than too short"
    points = f" with {_two_digits_up(100 * STANDARD_ERRORS * error)} percentage points" if error else ""
    return f"from {draws:,} simulated draws{points and points + ' allowed for their error'}"


def _two_digits_up(number: float) -> str:
    place = max(0, 1 - math.floor(math.log10(number)))
    return f"{math.ceil(number * 10**place * (1 - 1e-12)) / 10**place:.{place}f}"
