"""Bounds on the total variation between a chain and its target, from meeting times.

Numbers in, numbers out: nothing here knows where the times come from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_flag, check_number, check_whole
from keepsum._saying import arg
from keepsum._text import given, type_of
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class TvBound:
    """An estimated upper bound on the total variation between a chain at step t and its target.

    Attributes
    ----------
    t
        The step, or an array of steps; the figures below have the same shape.
    estimate
        The estimated bound. With censored pairs only a lower limit: the bound is *at least* this.
    standard_error
        Of the estimate.
    upper
        An upper confidence limit on the bound, see :func:`tv_upper_bound`; infinite with censored pairs.
    confidence, lag, pairs, censored, refined
        The confidence level of ``upper``; the lag; the number of pairs; how many had not met; whether capped at 1.
    """

    t: Any
    estimate: Any
    standard_error: Any
    upper: Any
    confidence: float
    lag: int
    pairs: int
    censored: int
    refined: bool

    def __repr__(self) -> str:
        source = f"{self.pairs:,} pairs, lag {self.lag:,}"
        rows = np.broadcast(self.t, self.estimate, self.standard_error, self.upper)
        lines = [self._line(*row) for row in rows]
        if self.censored:
            source += f"; {self.censored:,} had NOT MET: the estimate is too small by an unknown amount"
        return f"TvBound({'; '.join(lines)}; {source})"

    def _line(self, t: int, estimate: float, error: float, upper: float) -> str:
        sign = ">=" if self.censored else "="
        return f"t = {t:,}: bound {sign} {estimate:.4g} ± {error:.2g}, {float(self.confidence)!r} limit {upper:.4g}"


def tv_upper_bound(
    times: MeetingTimes | npt.ArrayLike,
    lag: int | None = None,
    t: Any = 0,
    *,
    censored: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    refined: bool = False,
) -> TvBound:
    """Bound the total variation between the law of X_t and the target by E max(0, ceil((tau - L - t) / L)).

    Parameters
    ----------
    times
        Meeting times: what :func:`meeting_times` returns, or an array of independent taus.
    lag
        L; may be omitted where ``times`` has it.
    t
        A step, or an array of steps.
    censored
        With an array of times: which pairs had not met at their time.
    confidence
        The confidence level of ``.upper``.
    refined
        Cap the bound at 1, the best possible with control variates; see Notes.

    Returns
    -------
    TvBound
        ``.estimate``, ``.standard_error``, ``.upper``.

    Notes
    -----
    Write S(u) = P(tau - L > u) and J_t = max(0, ceil((tau - L - t) / L)), so that E J_t is the sum of S(t + jL) over
    j >= 0, and TV(law of X_t, target) <= E J_t (Biswas, Jacob and Vanetti 2019, Theorem 2.5). ``.estimate`` is the mean
    of J_t over pairs.

    **The limit.** J_t has no largest value, so a limit for its mean needs an assumption. It is this: *the chance that a
    pair which has not met by u does not meet within another lag either, S(u + L) / S(u), does not grow with u.* It
    holds with equality for geometric meeting times. It fails for heavy tails, where the mean itself may be infinite.
    Then

        E J_t = S(t) (1 + r_1 + r_1 r_2 + ...) <= S(t) / (1 - r),      r = S(s + L) / S(s) for any s <= t.

    ``.upper`` uses Clopper and Pearson's upper limits for S(t), at error (1 - confidence) / 2, and for r, at half of
    that for each of two s, of which the smaller is taken: s = -1, where no pair has met, and the first s (at most t) by
    which half of the pairs have. That s is a stopping time, so the number that survive another lag is binomial given
    it. By the union bound the limit holds with at least the stated confidence, also where no pair exceeds t: zero
    observed is not zero. Pairs that can meet at once (tau = L) may do so often, and say nothing about how slow the
    others are: if any did not, the limit for s = 0 replaces that for s = -1 where it is larger. It is weak where these
    are few. If ``estimate + z standard_error`` is larger, as it is where the data contradict the assumption, that is
    taken. Each t has its own limit; they do not hold jointly.

    **Censored pairs** enter the estimate as if they met one step later, which makes it too small. Their excess has no
    upper limit at any t, however small, so ``.upper`` is infinite (1 if refined: no distance is larger).

    **The refinement.** Craiu and Meng (2022) note that E h(X_u) = E h(Y_u), so that multiples c_j of h(X_u) - h(Y_u),
    u = t + jL, may be added to what is bounded before its positive part is taken. With all c_j = c up to a far j, the
    bound becomes c + (1 - c) E J_t. No choice does better: with C >= 0 the largest of the c_j (they end in zeros), a
    pair with J_t = 0 contributes at least C, and one with J_t = n >= 1 at least 1 + (n - 1)(1 - C) and at least 1;
    together at least C + (1 - C) E J_t where C <= 1, and at least 1 where C > 1. So from meeting times alone the
    smallest bound of this kind is min(1, E J_t), and that is what ``refined`` gives. It matters for small t and short
    lags only. (Derived here, not compared with their own statement.)

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.mcmc.tv_upper_bound([12, 13, 15, 21, 40], lag=10, t=5)
    TvBound(t = 5: bound = 0.8 ± 0.58, 0.95 limit 7.464; 5 pairs, lag 10)
    >>> ks.mcmc.tv_upper_bound([12, 13, 15, 21, 40], lag=10, t=5, censored=[False] * 4 + [True])
    TvBound(t = 5: bound >= 0.8 ± 0.58, 0.95 limit inf; 5 pairs, lag 10; 1 had NOT MET: the estimate is too small by an
    unknown amount)
    """
    meetings = as_times(times, lag, censored)
    steps = as_array(t)
    if steps is None or steps.dtype.kind not in "iu" or np.any(steps < 0):
        raise InputError(f"t must be a whole number from 0, or an array of them, got {given(t)}.")
    confidence, refined = check_number(confidence, "The confidence", 0, 1), check_flag(refined, f"{arg.refined}")
    excess = np.sort(meetings.excess)
    figures = np.array([_at(excess, meetings.lag, int(step), 1 - confidence) for step in steps.reshape(-1)])
    estimate, error, upper = figures.reshape((*steps.shape, 3)).transpose(steps.ndim, *range(steps.ndim))
    count = int(meetings.censored.sum())
    if count:
        upper = np.full_like(upper, np.inf)
    if refined:
        estimate, upper = np.minimum(estimate, 1), np.minimum(upper, 1)
    shown = [values.item() if steps.ndim == 0 else values for values in (steps, estimate, error, upper)]
    return TvBound(shown[0], shown[1], shown[2], shown[3], confidence, meetings.lag, len(meetings), count, refined)


def as_times(times: Any, lag: int | None = None, censored: Any = None) -> MeetingTimes:
    """Meeting times from the arguments of a user."""
    if isinstance(times, MeetingTimes):
        if lag is not None and check_whole(lag, "The lag", 1) != times.lag:
            raise InputError(f"The lag must be that of the meeting times, {times.lag}, got {lag}. Omit it.")
        if censored is not None:
            raise InputError("Censored must not be given with MeetingTimes, which have it. Omit it.")
        return times
    if lag is None:
        raise InputError("The lag must be given with an array of meeting times, got None.")
    return MeetingTimes(times, lag, censored)


def _at(excess: npt.NDArray[np.int64], lag: int, t: int, alpha: float) -> tuple[float, float, float]:
    """Estimate, standard error and limit at one step; ``excess`` is sorted."""
    pairs = len(excess)
    counts = np.maximum(0, -((t - excess) // lag))
    estimate = float(counts.mean())
    error = float(counts.std(ddof=1) / np.sqrt(pairs)) if pairs > 1 else float("nan")
    half_met = min(t, int(excess[(pairs - 1) // 2]))
    first = _survival_limit(excess, lag, -1, alpha / 4)
    if _beyond(excess, 0):
        first = max(first, _survival_limit(excess, lag, 0, alpha / 4))
    survival = min(first, _survival_limit(excess, lag, half_met, alpha / 4))
    share = clopper_pearson(_beyond(excess, t), pairs, alpha / 2)
    limit = share / (1 - survival) if survival < 1 else float("inf")
    from scipy.special import ndtri  # takes longer to import than most plans take

    return estimate, error, float(np.fmax(limit, estimate - ndtri(alpha) * error))


def _beyond(excess: npt.NDArray[np.int64], u: int) -> int:
    """How many of the sorted values are larger than u."""
    return len(excess) - int(np.searchsorted(excess, u, side="right"))


def _survival_limit(excess: npt.NDArray[np.int64], lag: int, s: int, alpha: float) -> float:
    """An upper limit for the probability that a pair which has not met by s has not met by s + lag either."""
    return clopper_pearson(_beyond(excess, s + lag), _beyond(excess, s), alpha)


def clopper_pearson(successes: int, trials: int, alpha: float) -> float:
    """The upper limit of Clopper and Pearson (1934) for a probability; it is too low with probability at most alpha.

    >>> round(clopper_pearson(0, 100, 0.05), 4)
    0.0295
    """
    if successes >= trials:
        return 1.0
    from scipy.special import betaincinv  # takes longer to import than most plans take

    return float(betaincinv(successes + 1, trials - successes, 1 - alpha))


def first_step_below(times: MeetingTimes, level: float) -> int | None:
    """The first step at which the estimated bound is at most ``level``; None with censored pairs.

    >>> first_step_below(MeetingTimes([12, 13, 15, 21, 40], lag=10), 0.5)
    11
    """
    if times.censored.any():
        return None
    low, high = 0, int(times.excess.max())  # the estimate falls with t, and is 0 at the largest excess
    excess = times.excess
    while low < high:
        middle = (low + high) // 2
        if np.maximum(0, -((middle - excess) // times.lag)).mean() <= level:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, eq=False)
class LagChoice:
    """A lag, and the bounds at t = 0 that led to it.

    Attributes
    ----------
    lag
        The lag that was chosen.
    tried
        Pairs of a lag and the estimated bound at t = 0 with it.
    times
        The meeting times with the lag that was chosen.
    """

    lag: int
    tried: tuple[tuple[int, float], ...]
    times: MeetingTimes


def choose_lag(
    meet: Callable[[int], MeetingTimes], *, first: int = 1, factor: int = 2, tolerance: float = 0.1, most: int = 2**30
) -> LagChoice:
    """Raise the lag until the bound at t = 0 is about 1 and stays there (Biswas, Jacob and Vanetti 2019, section 2.3).

    A short lag costs few steps, but its bound sums many terms and is far above the total variation. The bound at t = 0
    of pairs that start apart is never below 1; once it is close to 1, a longer lag gains nothing.

    Parameters
    ----------
    meet
        A function that draws meeting times with a given lag.
    first, factor
        The first lag, and the factor by which it is raised.
    tolerance
        The bound at t = 0 must be at most 1 + tolerance with this lag and with the next one.
    most
        Give up beyond this lag.

    Examples
    --------
    >>> import keepsum as ks
    >>> lattice, laplace = ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(epsilon=1)
    >>> choice = ks.mcmc.choose_lag(
    ...     lambda lag: ks.mcmc.meeting_times(lattice, laplace, 0.4, lag=lag, pairs=200, rng=ks.rng(seed=1)), first=4
    ... )
    >>> choice.lag
    32
    """
    if not callable(meet):
        raise InputError(f"{arg.meet} must be a function of the lag, got {type_of(meet)}.")
    first, factor = check_whole(first, "The first lag", 1), check_whole(factor, "The factor", 2)
    tolerance, most = check_number(tolerance, "The tolerance", 0, np.inf), check_whole(most, "The largest lag", first)
    tried: list[tuple[int, float]] = []
    good: MeetingTimes | None = None
    lag = first
    while lag <= most:
        times = meet(lag)
        if not isinstance(times, MeetingTimes):
            raise InputError(f"{arg.meet} must return MeetingTimes, got {type_of(times)}.")
        if times.censored.any():
            raise InputError(f"Every pair must have met to choose a lag, got {times!r}. Raise max_steps.")
        bound = tv_upper_bound(times).estimate
        tried.append((lag, bound))
        if bound > 1 + tolerance:
            good = None
        elif good is not None:
            return LagChoice(good.lag, tuple(tried), good)
        else:
            good = times
        lag *= factor
    raise InputError(
        f"No lag up to {most:,} is long enough: the bound at t = 0 was still {tried[-1][1]:.3g}. Raise {arg.most}."
    )
