"""The file cache of meeting times: pairs of chains that were run once are not run again.

Times are stored pair by pair, in chunks, so that an interrupted run resumes where it stopped, and another plan with
the same blocks reuses them.
"""

from __future__ import annotations

import hashlib
import json

from keepsum._cache import CacheFile

CHUNK_PAIRS = 250  # pairs that are run and stored together


class MeetingTimeStore:
    """The file that holds the meeting times of one chain, in chunks; -1 for a pair that was given up.

    Parameters
    ----------
    name
        The file's name: one for each chain, lag and step at which pairs are given up.
    lag, give_up
        The smallest and the largest possible meeting time.
    """

    def __init__(self, name: str, lag: int, give_up: int) -> None:
        self._file = CacheFile("convergence", f"{name}.json")
        self._name, self._lag, self._give_up = name, lag, give_up

    def read(self) -> list[list[int]]:
        """The stored chunks; none if the file is missing or damaged."""
        digest, _, text = (self._file.read() or "").partition("\n")
        if digest != self._digest(text):
            return []
        try:
            chunks = json.loads(text)
        except (ValueError, RecursionError):
            return []
        whole = isinstance(chunks, list) and all(
            isinstance(chunk, list) and len(chunk) == CHUNK_PAIRS and all(self._possible(time) for time in chunk)
            for chunk in chunks
        )
        return chunks if whole else []

    def _digest(self, text: str) -> str:
        """What tells a file that was damaged, or copied from another chain's: whoever forges one can forge it too."""
        return hashlib.sha256(f"{self._name} {text}".encode()).hexdigest()

    def _possible(self, time: object) -> bool:
        return type(time) is int and (time == -1 or self._lag <= time <= self._give_up)

    def write(self, chunks: list[list[int]]) -> None:
        """Replace the file atomically; where the folder cannot be written to, nothing is stored."""
        text = json.dumps(chunks)
        self._file.write(f"{self._digest(text)}\n{text}")
