"""The margin of error at any epsilon, for a slider: kept totals are compiled once, each value is worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keepsum.desk.deriving import Look
from keepsum.errors import InputError
from keepsum.specs.spec import Noise

if TYPE_CHECKING:
    from keepsum.accuracy.candidates import Candidates
    from keepsum.tables.invariants import Invariants


class Margins:
    """The candidates of the last kind of noise that was asked for."""

    def __init__(self) -> None:
        self._kept: Invariants | None = None
        self._key = b""
        self._candidates: Candidates | None = None

    def at(self, look: Look, noise: Noise, epsilon: str) -> dict[str, Any]:
        """The margins and the losses at an epsilon, as the page shows them."""
        from keepsum.accuracy.candidates import Candidates
        from keepsum.privacy.numbers import exact_in_range
        from keepsum.releasing.records import LEVEL
        from keepsum.specs.building import noise_of

        if look.kept is None or look.table is None:
            return {}
        if noise.epsilon is None:
            raise InputError("Epsilon must be given to move it. Enter a number such as 1.")
        key = msgspec.json.encode(msgspec.structs.replace(noise, epsilon="1"))
        if self._candidates is None or look.kept is not self._kept or key != self._key:
            request = noise_of(msgspec.structs.replace(noise, epsilon=epsilon))
            self._candidates = Candidates.of(look.kept, request, look.table.records, LEVEL)
            self._kept, self._key = look.kept, key
        point = self._candidates.point(exact_in_range(epsilon, "Epsilon"))
        return {
            "typical": point.typical,
            "largest": point.largest,
            "person": str(point.person),
            "little": point.person.excess is not None,
        }
