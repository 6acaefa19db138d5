"""Poisson regression on released counts: by a likelihood that accounts for the noise, and as if there were none.

Counts of counties are Poisson with rates exp(offset + X b), and the release keeps state totals. The weight of a vector
z of l1 Laplace or Gaussian noise is a product over its cells, w(z_1) w(z_2) ..., and within a state z adds up to 0. So
the probability of a state's released counts r is, up to a constant,

    the sum over all counts y with sum(y) = sum(r) of  prod_i Poisson(y_i; rate_i) w(r_i - y_i):

a coefficient of a product of one polynomial for each county, and so a mean over angles of the product of their Fourier
transforms. Given its total a state's counts are multinomial; rates are scaled to add up to the total, which keeps that
coefficient from being tiny, and the probability of the total itself is a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import fft, optimize, special

import keepsum as ks

NEGLIGIBLE = 1e-11  # the weight of noise that is left out, that of no noise being 1
STEP = 0.05  # of differences of the likelihood, in standard errors
SIGNS = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
MOST_STEPS, LAST_STEP = 50, 1e-10


@dataclass(frozen=True)
class Fit:
    """Estimated coefficients, with their standard errors."""

    coefficients: np.ndarray
    errors: np.ndarray

    def interval(self, which: int, level: float = 0.95) -> tuple[float, float]:
        """The nominal interval of a coefficient."""
        reach = special.ndtri((1 + level) / 2) * self.errors[which]
        return float(self.coefficients[which] - reach), float(self.coefficients[which] + reach)


def log_weights(plan: ks.Plan, released: np.ndarray) -> np.ndarray:
    """Ln of the weights of the noise -R, ..., R of one cell, in l1 Laplace and Gaussian noise.

    Beyond R noise is negligible, also for what has made the smallest of the released counts negative.
    """
    scale, rare = float(plan.mechanism.scale), -np.log(NEGLIGIBLE)
    below = max(0, -int(released.min()))
    if plan.mechanism.kind == "laplace-l1":
        reach = below + int(np.ceil(rare * scale))
        return -np.abs(np.arange(-reach, reach + 1)) / scale
    if plan.mechanism.kind == "gaussian":
        reach = below + int(np.ceil(np.sqrt(2 * rare) * scale))
        return -(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2)
    raise ValueError("All cells of l2 Laplace noise share one scale, so its weights are not a product over cells.")


def likelihood(released: np.ndarray, state: np.ndarray, weights: np.ndarray) -> Callable[[np.ndarray], float]:
    """Ln of the probability of released counts, given the rate of each, if the totals of states are kept."""
    noise = np.arange(len(weights)) - len(weights) // 2
    order = np.argsort(state, kind="stable")
    starts = np.flatnonzero(np.diff(state[order], prepend=-1))
    totals = np.add.reduceat(released[order], starts)
    sizes = np.diff(np.append(starts, len(order)))
    points = fft.next_fast_len(int(len(weights) * np.sqrt(sizes.max())) + 1, real=True)  # a sum of noise is not wider
    counts = released[order, None] - noise  # what a count was, for each noise that it may have
    possible, counts = counts >= 0, np.maximum(counts, 0)
    known = np.where(possible, weights - special.gammaln(counts + 1), -np.inf)

    def log_probability(rates: np.ndarray) -> float:
        expected = np.add.reduceat(rates[order], starts)
        scaled = np.repeat(totals / expected, sizes) * rates[order]
        logs = known + special.xlogy(counts, scaled[:, None])
        largest = logs.max(axis=1, keepdims=True)
        masses = np.exp(logs - largest)
        sums = masses.sum(axis=1, keepdims=True)
        placed = np.zeros((len(order), points))
        placed[:, noise] = masses / sums  # negative noise comes last
        product = np.multiply.reduceat(fft.rfft(placed), starts)
        no_noise_in_total = fft.irfft(product, points)[:, 0]
        of_totals = special.xlogy(totals, expected / np.maximum(totals, 1)) - expected
        return float((np.log(no_noise_in_total) + of_totals).sum() + (np.log(sums) + largest).sum())

    return log_probability


def fit_with_noise(
    released: np.ndarray, state: np.ndarray, covariates: np.ndarray, offset: np.ndarray, plan: ks.Plan
) -> Fit:
    """Maximum likelihood, with standard errors from the observed information."""
    log_probability = likelihood(released, state, log_weights(plan, released))
    start = fit_without_noise(released, covariates, offset, robust=True)

    def loss(steps: np.ndarray) -> float:  # in standard errors from the start
        return -log_probability(np.exp(offset + covariates @ (start.coefficients + start.errors * steps)))

    best = optimize.minimize(loss, np.zeros(len(start.errors)), method="BFGS", options={"gtol": 1e-4}).x
    variances = np.diag(np.linalg.inv(hessian(loss, best)))
    return Fit(start.coefficients + start.errors * best, start.errors * np.sqrt(variances))


def fit_without_noise(counts: np.ndarray, covariates: np.ndarray, offset: np.ndarray, *, robust: bool = False) -> Fit:
    """The usual Poisson regression, whose equations have a solution where some counts are negative, too.

    Standard errors are those of Poisson counts, or robust ones from the residuals (sandwich). The first covariate is 1.
    """
    coefficients = np.zeros(covariates.shape[1])
    coefficients[0] = np.log(counts.sum() / np.exp(offset).sum())
    for _ in range(MOST_STEPS):
        rates = np.exp(offset + covariates @ coefficients)
        information = covariates.T @ (rates[:, None] * covariates)
        step = np.linalg.solve(information, covariates.T @ (counts - rates))
        coefficients = coefficients + step
        if np.abs(step).max() < LAST_STEP:
            break
    covariance = np.linalg.inv(information)
    if robust:
        scores = covariates * (counts - rates)[:, None]
        covariance = covariance @ (scores.T @ scores) @ covariance * len(counts) / (len(counts) - len(coefficients))
    return Fit(coefficients, np.sqrt(np.diag(covariance)))


def hessian(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Second derivatives by central differences."""
    steps = STEP * np.eye(len(at))

    def mixed(one: np.ndarray, other: np.ndarray) -> float:
        return sum(sign * function(at + a * one + b * other) for a, b, sign in SIGNS) / (4 * STEP**2)

    return np.array([[mixed(one, other) for other in steps] for one in steps])
