"""When coupled chains met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_whole
from keepsum.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class MeetingTimes:
    """When pairs of chains with a lag met: tau is the first step t with X_t = Y_(t - lag).

    It is the lag itself for a pair of which the second chain starts where the first one is by then: X_lag and Y_0 may
    depend on each other in any way, as long as each has its law.

    Attributes
    ----------
    times
        int64, one a pair: tau, or for a censored pair the last step that was looked at.
    lag
        How many steps the first chain is ahead.
    censored
        bool, one a pair: had not met by then, so tau is larger than ``times`` by an unknown amount.
    max_steps
        The last step that was looked at, or None.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.mcmc.MeetingTimes([12, 15, 20], lag=10, censored=[False, False, True], max_steps=20)
    MeetingTimes(3 pairs, lag 10, median tau - lag 5, 1 CENSORED: had not met after 20 steps)
    """

    times: npt.NDArray[np.int64]
    lag: int
    censored: npt.NDArray[np.bool_]
    max_steps: int | None = None

    def __init__(self, times: Any, lag: int, censored: Any = None, max_steps: int | None = None) -> None:
        array = as_array(times)
        if array is None:
            raise InputError("Meeting times must be whole numbers, one a pair, got rows of several lengths.")
        found = np.array(array)
        if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu":
            raise InputError(
                f"Meeting times must be whole numbers, one a pair, got {found.dtype} of shape {found.shape}."
            )
        lag = check_whole(lag, "The lag", 1)
        max_steps = None if max_steps is None else check_whole(max_steps, "max_steps", 1)
        flags = np.zeros(found.shape, dtype=bool) if censored is None else as_array(censored)
        if flags is None:
            raise InputError(f"Censored must be true or false for each of {found.size} pairs, got ragged rows.")
        open_ = np.array(flags)
        if open_.shape != found.shape or open_.dtype != np.bool_:
            raise InputError(f"Censored must be true or false for each of {found.size} pairs, got {open_.shape}.")
        if np.any(found[~open_] < lag):
            raise InputError(f"Meeting times must be at least the lag, {lag}, got {int(found[~open_].min())}.")
        found.flags.writeable = open_.flags.writeable = False
        for name, value in {"times": found, "lag": lag, "censored": open_, "max_steps": max_steps}.items():
            object.__setattr__(self, name, value)

    @property
    def excess(self) -> npt.NDArray[np.int64]:
        """The steps that pairs were coupled for, tau - lag; for a censored pair the least that it can be."""
        return np.asarray(self.times + self.censored - self.lag, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} pairs", f"lag {self.lag:,}", f"median tau - lag {np.median(self.times - self.lag):,g}"]
        count = int(self.censored.sum())
        if count:
            last = int(self.times[self.censored].min())
            parts.append(f"{count:,} CENSORED: had not met after {last:,} steps")
        return f"MeetingTimes({', '.join(parts)})"
