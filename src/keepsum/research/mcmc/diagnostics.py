"""Whether chains from over-dispersed starts agree: R-hat and the effective sample size.

They compare chains with each other, not with the target; :func:`keepsum.research.mcmc.tv_upper_bound` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from keepsum._arguments import as_array, check_choice
from keepsum._arrays import Floats
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.research.mcmc.metropolis import Chains


def r_hat(draws: Chains | npt.ArrayLike, method: str = "rank") -> Any:
    """The potential scale reduction factor, one figure a cell: near 1 where chains agree.

    Parameters
    ----------
    draws
        ``Chains``, or an array (chains, draws) or (chains, draws, cells), with at least 2 chains of 4 draws.
    method
        ``"rank"``: chains split in half, draws replaced by normal scores of their ranks, and the larger of the figures
        for location and for scale (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021); ``"split"``: chains split in
        half; ``"plain"``: as Gelman and Rubin (1992) and the paper's third experiment.

    Returns
    -------
    float or array
        nan for a cell that never moves.

    Examples
    --------
    >>> import keepsum as ks
    >>> lattice, laplace = ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(epsilon=1)
    >>> far = [[90, -90, 0], [0, 90, -90], [-90, 0, 90], [0, 0, 0]]
    >>> early = ks.mcmc.metropolis(lattice, laplace, 100, 0.4, start=far, chains=4, rng=ks.rng(seed=1))
    >>> late = ks.mcmc.metropolis(lattice, laplace, 20_000, 0.4, start=far, burn_in=500, chains=4, rng=ks.rng(seed=1))
    >>> bool(ks.mcmc.r_hat(early).max() > 1.5), bool(ks.mcmc.r_hat(late).max() < 1.01)
    (True, True)
    """
    methods: dict[str, Callable[[Floats], float]] = {
        "rank": lambda cell: float(np.nanmax([_scale_reduction(_scores(part)) for part in _both_parts(_split(cell))])),
        "split": lambda cell: _scale_reduction(_split(cell)),
        "plain": _scale_reduction,
    }
    return _each_cell(draws, _method(methods, method), least_chains=2)


def effective_sample_size(draws: Chains | npt.ArrayLike, method: str = "bulk") -> Any:
    """How many independent draws the chains are worth, one figure a cell.

    Parameters
    ----------
    draws
        ``Chains``, or an array (chains, draws) or (chains, draws, cells), with at least 4 draws a chain.
    method
        ``"bulk"``: of normal scores of ranks; ``"tail"``: the smaller of those of the 5% and 95% quantiles;
        ``"mean"``: of the draws themselves. All with chains split in half (Vehtari et al. 2021).

    Returns
    -------
    float or array
        nan for a cell that never moves.

    Examples
    --------
    >>> import keepsum as ks
    >>> runs = ks.mcmc.metropolis(
    ...     ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(epsilon=1), 10_000, 0.4, chains=4, rng=ks.rng(seed=1)
    ... )
    >>> bool((ks.mcmc.effective_sample_size(runs) < 0.5 * 40_000).all())
    True
    """
    methods: dict[str, Callable[[Floats], float]] = {
        "bulk": lambda cell: _effective(_scores(_split(cell))),
        "tail": lambda cell: min(_effective(_split(cell <= q)) for q in np.quantile(cell, (0.05, 0.95))),
        "mean": lambda cell: _effective(_split(cell)),
    }
    return _each_cell(draws, _method(methods, method), least_chains=1)


def _method(methods: dict[str, Callable[[Floats], float]], name: str) -> Callable[[Floats], float]:
    return methods[check_choice(name, "Method", methods)]


def _each_cell(draws: Any, figure: Callable[[Floats], float], least_chains: int) -> Any:
    array = as_array(draws.draws if isinstance(draws, Chains) else draws)
    if array is None or array.dtype.kind not in "biuf":
        raise InputError(f"Draws must be Chains or an array of numbers, got {type_of(draws)}.")
    values = array.astype(np.float64)
    if values.ndim not in (2, 3) or values.shape[0] < least_chains or values.shape[1] < 4:
        raise InputError(
            f"Draws must be of shape (chains, draws) or (chains, draws, cells) with at least {least_chains} chains "
            f"of 4 draws, got shape {values.shape}."
        )
    if values.ndim == 2:
        return figure(values) if np.ptp(values) > 0 else float("nan")
    return np.array([_each_cell(values[:, :, j], figure, least_chains) for j in range(values.shape[2])])


def _split(cell: npt.NDArray[Any]) -> Floats:
    """Each chain as two; of an odd number of draws the middle one is left out."""
    half = cell.shape[1] // 2
    return np.concatenate([cell[:, :half], cell[:, -half:]]).astype(np.float64)


def _both_parts(cell: Floats) -> tuple[Floats, Floats]:
    """The draws, and their distances from the median: one shows a difference of location, the other one of scale."""
    return cell, np.abs(cell - np.median(cell))


def _scores(cell: Floats) -> Floats:
    """Normal scores of the ranks, equal draws sharing theirs (Blom 1958)."""
    _, place, count = np.unique(cell, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2
    return np.asarray(ndtri((rank - 3 / 8) / (cell.size + 1 / 4))[place].reshape(cell.shape))


def _scale_reduction(cell: Floats) -> float:
    """sqrt(((n - 1) / n W + B / n) / W), W within and B between chains."""
    n = cell.shape[1]
    within = cell.var(axis=1, ddof=1).mean()
    if within == 0:
        return float("nan") if np.ptp(cell) == 0 else float("inf")
    return float(np.sqrt((n - 1) / n + cell.mean(axis=1).var(ddof=1) / within))


def _effective(cell: Floats) -> float:
    """The number of draws over tau = 1 + 2 (sum of autocorrelations), cut off by Geyer's initial monotone sequence."""
    if np.ptp(cell) == 0:
        return float(cell.size)  # the indicator of a quantile that all draws share: nothing is left to estimate
    correlation = _correlations(cell)
    pairs = len(correlation) // 2
    sums = correlation[: 2 * pairs].reshape(pairs, 2).sum(axis=1)
    negative = np.flatnonzero(sums <= 0)
    cut = min(negative[0] if negative.size else pairs, (cell.shape[1] - 3) // 2)
    falling = np.minimum.accumulate(sums[:cut]).sum()
    tau = -1 + 2 * falling + max(0.0, correlation[2 * cut])
    return float(cell.size / max(tau, 1 / np.log10(cell.size)))


def _correlations(cell: Floats) -> Floats:
    """Autocorrelations over all chains, against the variance that takes their different means in."""
    n = cell.shape[1]
    size = next_fast_len(2 * n)
    spectrum = rfft(cell - cell.mean(axis=1, keepdims=True), n=size, axis=1)
    covariance = irfft(np.abs(spectrum) ** 2, n=size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    whole = covariance[0] + (cell.mean(axis=1).var(ddof=1) if len(cell) > 1 else 0)
    correlation = 1 - (within - covariance) / whole
    correlation[0] = 1.0
    return np.asarray(correlation)
