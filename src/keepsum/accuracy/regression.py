"""Regressions on released counts that account for the published noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_whole
from keepsum._arrays import Floats, IntArray
from keepsum._text import how_many
from keepsum.accuracy.likelihood import LogPmf
from keepsum.accuracy.query_laws import check_level
from keepsum.errors import InputError

# **Poisson, by likelihood.** The logarithm of the probability of the released counts is maximised over the
# coefficients, and standard errors are those of the observed information. It needs a likelihood that can be computed.
#
# **Poisson, robust.** Noise has mean 0, so the equations of a Poisson regression, which are linear in the counts, are
# unbiased with released counts, negative ones too; they maximise a concave function. Standard errors come from the
# residuals (the sandwich), which hold noise and Poisson variation alike. Cells count as independent.
#
# **Least squares.** Released values are r = X b + e + z, where the noise z has a known covariance C, and the e of the
# model are independent with an unknown variance v. Generalised least squares with v I + C; v is chosen so that the
# weighted sum of squares of the residuals is what it is on average, n - p (Paule and Mandel 1982), and is 0 where the
# noise alone makes it that small.


STEP = 0.05  # of differences of the likelihood, in standard errors
SIGNS = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
MOST_STEPS, LAST_STEP, HALVINGS = 100, 1e-10, 40
ROUNDING = 1e-10  # of the value that a step must not make smaller
LEAST_VARIANCE = 1e-9  # of the residuals of a line, as a part of the mean variance of noise, so that totals may be kept
BISECTIONS = 200


@dataclass(frozen=True, eq=False)
class Fit:
    """Estimated coefficients of a regression on released counts.

    Attributes
    ----------
    coefficients
        One for each covariate.
    covariance
        The covariance matrix of their estimates.
    method
        How they were found: ``"likelihood"``, ``"robust"`` or ``"least squares"``.
    residual_variance
        For least squares, the variance of what the covariates leave open, without that of the noise.
    """

    coefficients: Floats
    covariance: Floats
    method: str
    residual_variance: float | None = None

    @property
    def errors(self) -> Floats:
        """The standard errors of the coefficients."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, which: int, level: float = 0.95) -> tuple[float, float]:
        """The nominal interval of a coefficient, from its standard error and the normal distribution."""
        from scipy import special  # slow to import

        which = check_whole(which, "The number of a coefficient", 0, len(self.coefficients) - 1)
        reach = special.ndtri((1 + check_level(level)) / 2) * self.errors[which]
        return float(self.coefficients[which] - reach), float(self.coefficients[which] + reach)

    def __repr__(self) -> str:
        each = zip(self.coefficients.tolist(), self.errors.tolist(), strict=True)
        return f"Fit({', '.join(f'{b:.4g} (standard error {error:.2g})' for b, error in each)}; {self.method})"


def check_covariates(covariates: Any, rows: int, what: str) -> Floats:
    """A matrix of finite numbers with a row for each cell or query, and no more columns than it has rank."""
    values = as_array(covariates)
    if values is None or values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InputError(f"Covariates must be a matrix of numbers with a row for each {what}.")
    if len(values) != rows:
        raise InputError(
            f"Covariates must be a matrix with a row for each {what}: {rows:,} of them, got {len(values):,}."
        )
    matrix = values.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InputError("Covariates must be finite numbers, and one is not.")
    if not 1 <= matrix.shape[1] <= rows or np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise InputError(
            "Covariates must be linearly independent columns, fewer than there are rows. Leave out those that follow "
            "from others."
        )
    return matrix


def check_offset(offset: npt.ArrayLike | None, rows: int) -> Floats:
    """A number for each cell; 0 if there is none."""
    if offset is None:
        return np.zeros(rows)
    values = as_array(offset)
    if values is None or values.dtype.kind not in "biuf" or values.shape != (rows,) or not np.isfinite(values).all():
        raise InputError(f"An offset must be a finite number for each of the {how_many(rows, 'cell')}.")
    return values.astype(np.float64)


def likelihood_fit(
    released: IntArray, covariates: Floats, offset: Floats, log_likelihood: Callable[[IntArray, LogPmf], float]
) -> Fit:
    """A Poisson regression by maximum likelihood, with standard errors from the observed information."""
    from scipy import optimize  # slow to import

    start = poisson_fit(released, covariates, offset, robust=True)

    def loss(steps: Floats) -> float:  # in standard errors from the start
        logs = offset + covariates @ (start.coefficients + start.errors * steps)
        return -log_likelihood(released, lambda counts: poisson_logs(counts, logs[:, None]))

    best = optimize.minimize(loss, np.zeros(len(start.errors)), method="BFGS", options={"gtol": 1e-4}).x
    curvature = _hessian(loss, best)
    if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature).min() <= 0:
        raise InputError(
            "The likelihood of these counts must have a maximum, and none was found. Check the covariates, or use "
            "fewer."
        )
    covariance = np.linalg.inv(curvature) * np.outer(start.errors, start.errors)
    return Fit(start.coefficients + start.errors * best, covariance, "likelihood")


def poisson_logs(counts: IntArray, log_rates: Floats) -> Floats:
    """Ln of Poisson probabilities, quicker than those of scipy.stats."""
    from scipy import special  # slow to import

    return np.asarray(counts * log_rates - np.exp(log_rates) - special.gammaln(counts + 1))


def poisson_fit(counts: IntArray, covariates: Floats, offset: Floats, *, robust: bool) -> Fit:
    """The usual Poisson regression, whose equations have a solution where some counts are negative, too.

    Standard errors are those of Poisson counts, or robust ones from the residuals.
    """

    def value(at: Floats) -> float:
        logs = offset + covariates @ at
        with np.errstate(over="ignore"):
            return float(counts @ logs - np.exp(logs).sum())

    first = np.log(np.maximum(counts, 0.5)) - offset
    coefficients: Floats = np.asarray(np.linalg.lstsq(covariates, first, rcond=None)[0], dtype=np.float64)
    for _ in range(MOST_STEPS):
        rates = np.exp(offset + covariates @ coefficients)
        information = covariates.T @ (rates[:, None] * covariates)
        if not np.isfinite(information).all() or np.linalg.cond(information) > 1 / np.finfo(np.float64).eps:
            break
        step = np.linalg.solve(information, covariates.T @ (counts - rates))
        now, share = value(coefficients), 1.0
        now -= ROUNDING * (1 + abs(now))
        for _ in range(HALVINGS):
            if value(coefficients + share * step) >= now:
                break
            share /= 2
        coefficients = np.asarray(coefficients + share * step, dtype=np.float64)
        if np.abs(step).max() < LAST_STEP * (1 + np.abs(coefficients).max()):
            covariance: Floats = np.asarray(np.linalg.inv(information), dtype=np.float64)
            if robust:
                scores = covariates * (counts - rates)[:, None]
                spare = len(counts) - len(coefficients)
                covariance = np.asarray(covariance @ (scores.T @ scores) @ covariance * len(counts) / max(1, spare))
            return Fit(coefficients, covariance, "robust" if robust else "poisson")
    raise InputError(
        "The equations of a Poisson regression must have a solution, and none was found for these counts. Check the "
        "covariates and the offset, or use fewer covariates."
    )


def least_squares_fit(values: Floats, covariates: Floats, noise: Floats) -> Fit:
    """Generalised least squares with a known covariance of the noise and an unknown variance of the rest."""
    rows, columns = covariates.shape
    if rows <= columns:
        raise InputError("Least squares must have more rows than covariates.")

    def fitted(variance: float) -> tuple[Floats, Floats, float]:
        weights = np.linalg.inv(noise + variance * np.eye(rows))
        covariance = np.asarray(np.linalg.inv(covariates.T @ weights @ covariates), dtype=np.float64)
        found = covariance @ (covariates.T @ (weights @ values))
        rest = values - covariates @ found
        return found, covariance, float(rest @ weights @ rest)

    plain = values - covariates @ np.linalg.lstsq(covariates, values, rcond=None)[0]
    scale = float(np.diag(noise).mean()) or float(plain @ plain) / rows or 1.0
    low = LEAST_VARIANCE * scale
    if fitted(low)[2] > rows - columns:
        high = scale
        while fitted(high)[2] > rows - columns:
            low, high = high, 4 * high
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if high - low <= LAST_STEP * high:
                break
            low, high = (middle, high) if fitted(middle)[2] > rows - columns else (low, middle)
        found, covariance, _ = fitted(high)
        return Fit(found, covariance, "least squares", high)
    found, covariance, _ = fitted(low)
    return Fit(found, covariance, "least squares", 0.0)


def _hessian(function: Callable[[Floats], float], at: Floats) -> Floats:
    """Second derivatives by central differences."""
    steps = STEP * np.eye(len(at))

    def mixed(one: Floats, other: Floats) -> float:
        return sum(sign * function(at + a * one + b * other) for a, b, sign in SIGNS) / (4 * STEP**2)

    return np.array([[mixed(one, other) for other in steps] for one in steps])
