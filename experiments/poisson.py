"""Poisson regression on released counts: by a likelihood that accounts for the noise, and as if there were none.

Counts of counties are Poisson with rates exp(offset + X b), and the release keeps state totals. The likelihood of the
released counts is ``plan.noise.log_likelihood``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

import keepsum as ks

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


def fit_with_noise(released: np.ndarray, covariates: np.ndarray, offset: np.ndarray, plan: ks.Plan) -> Fit:
    """Maximum likelihood, with standard errors from the observed information."""
    start = fit_without_noise(released, covariates, offset, robust=True)

    def loss(steps: np.ndarray) -> float:  # in standard errors from the start
        logs = offset + covariates @ (start.coefficients + start.errors * steps)
        return -plan.noise.log_likelihood(released, lambda counts: poisson_logs(counts, logs[:, None]))

    best = optimize.minimize(loss, np.zeros(len(start.errors)), method="BFGS", options={"gtol": 1e-4}).x
    variances = np.diag(np.linalg.inv(hessian(loss, best)))
    return Fit(start.coefficients + start.errors * best, start.errors * np.sqrt(variances))


def poisson_logs(counts: np.ndarray, log_rates: np.ndarray) -> np.ndarray:
    """Ln of Poisson probabilities, quicker than those of scipy.stats."""
    return counts * log_rates - np.exp(log_rates) - special.gammaln(counts + 1)


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
