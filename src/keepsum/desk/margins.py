"""The margin of error at any epsilon, for a slider: kept totals are compiled once, each value is worked out once."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from keepsum.desk.curves import VALUES
from keepsum.desk.deriving import Look
from keepsum.errors import InputError, KeepsumError
from keepsum.specs.spec import Noise

if TYPE_CHECKING:
    from keepsum.accuracy.candidates import Candidates, Point
    from keepsum.tables.invariants import Invariants

LONGEST = 1.0  # seconds of work on one point of the curve, after which there are no more
PATIENCE = 0.5  # seconds of work before what there is of the curve is shown


class Margins:
    """The candidates of the last kind of noise that was asked for."""

    def __init__(self) -> None:
        self._kept: Invariants | None = None
        self._key = b""
        self._candidates: Candidates | None = None
        self._slow_at = ""  # the epsilon that took so long that the curve ends there
        self._lock = threading.Lock()

    def at(self, look: Look, noise: Noise, epsilon: str) -> dict[str, Any]:
        """The margins and the losses at an epsilon, as the page shows them."""
        with self._lock:
            point = self._point(look, noise, epsilon)
            is_stated = self._candidates is not None and self._candidates.first.person is not None
        if point is None:
            return {}
        return {
            "typical": point.typical,
            "largest": point.largest,
            "person": str(point.person) if is_stated else None,
            "little": point.person.excess is not None,
        }

    def curve(self, look: Look, noise: Noise) -> tuple[list[tuple[float, int]], bool]:
        """Typical margins at values along the slider, and whether these are all: the others come if asked again.

        The curve ends where a value takes so long that smaller ones would take longer.
        """
        found: list[tuple[float, int]] = []
        first = time.monotonic()
        for value in VALUES:
            with self._lock:  # for one value at a time, so that the slider need not wait for all of them
                if found and (look.kept is not self._kept or self._slow_at == VALUES[len(found) - 1]):
                    break
                begun = time.monotonic()
                if found and begun - first > PATIENCE:
                    return found, False
                try:
                    point = self._point(look, noise, value)
                except KeepsumError:  # there is no such noise at this epsilon
                    break
                if point is None:
                    break
                found.append((float(value), point.typical))
                if time.monotonic() - begun > LONGEST:
                    self._slow_at = value
        return found, True

    def _point(self, look: Look, noise: Noise, epsilon: str) -> Point | None:
        from keepsum.accuracy.candidates import Candidates
        from keepsum.privacy.numbers import exact_in_range
        from keepsum.releasing.records import LEVEL
        from keepsum.specs.building import noise_of

        if look.kept is None or look.table is None:
            return None
        if noise.epsilon is None:
            raise InputError("Epsilon must be given to move it. Enter a number such as 1.")
        key = msgspec.json.encode(msgspec.structs.replace(noise, epsilon="1"))
        if self._candidates is None or look.kept is not self._kept or key != self._key:
            request = noise_of(msgspec.structs.replace(noise, epsilon=epsilon))
            self._candidates = Candidates.of(look.kept, request, look.table.records, LEVEL)
            self._kept, self._key, self._slow_at = look.kept, key, ""
        return self._candidates.point(exact_in_range(epsilon, "Epsilon"))
