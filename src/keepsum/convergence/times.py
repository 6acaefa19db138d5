"""Meeting times of coupled chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_whole
from keepsum.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class MeetingTimes:
    """Meeting times of pairs of chains with a lag: tau is the first step t with X_t = Y_(t - lag).

    It is the lag itself for a pair whose second chain starts where the first one is at step lag: X_lag and Y_0 may
    depend on each other in any way, as long as each has its law.

    Attributes
    ----------
    times
        int64, one per pair: tau, or for a censored pair the last step that was checked.
    lag
        How many steps the first chain is ahead.
    censored
        bool, one per pair: had not met by then, so tau is larger than ``times`` by an unknown amount.
    max_steps
        The last step that was checked, or None.

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
            raise InputError("Meeting times must be whole numbers, one per pair, got rows of several lengths.")
        steps = np.array(array)
        if steps.ndim != 1 or steps.size == 0 or steps.dtype.kind not in "iu":
            raise InputError(
                f"Meeting times must be whole numbers, one per pair, got {steps.dtype} of shape {steps.shape}."
            )
        lag = check_whole(lag, "The lag", 1)
        max_steps = None if max_steps is None else check_whole(max_steps, "max_steps", 1)
        flags = np.zeros(steps.shape, dtype=bool) if censored is None else as_array(censored)
        if flags is None:
            raise InputError(f"Censored must be true or false for each of {steps.size} pairs, got ragged rows.")
        unmet = np.array(flags)
        if unmet.shape != steps.shape or unmet.dtype != np.bool_:
            raise InputError(f"Censored must be true or false for each of {steps.size} pairs, got {unmet.shape}.")
        if np.any(steps[~unmet] < lag):
            raise InputError(f"Meeting times must be at least the lag, {lag}, got {int(steps[~unmet].min())}.")
        steps.flags.writeable = unmet.flags.writeable = False
        for name, value in {"times": steps, "lag": lag, "censored": unmet, "max_steps": max_steps}.items():
            object.__setattr__(self, name, value)

    @property
    def excess(self) -> npt.NDArray[np.int64]:
        """The steps from the lag to the meeting, tau - lag; for a censored pair a lower bound."""
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
