"""What floats prove of a positive definite form B' V^-1 B: its determinant, its shares, and its widths.

Let Z be about the inverse of the form's lower factor, lower triangular, any floats with a diagonal above 0. Then
Z G Z' = I + F with a matrix F that is nearly 0, and its largest row sum f is computed from above: what floats can err
by in a product is at most so many units of the product of the absolute values (Higham, Accuracy and Stability,
chapter 3). If f < 1, then

    -1/2 ln det G = sum of ln Z_jj - 1/2 ln det(I + F),  between it and that -+ (m/2) ln(1 -+ f),
    b' G^-1 b = (Z b)' (I + F)^-1 (Z b),                 between |Z b|^2/(1 + f) and |Z b|^2/(1 - f),
    s_j^2 = Z_jj^2 ((I + F_j)^-1)_jj,                     between Z_jj^2/(1 + f) and Z_jj^2/(1 - f),

the last because leading blocks of a triangular product are products of leading blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import FloatMatrix, OutFloatMatrix, OutFloats
from keepsum.sampling.general.kernel_arguments import LEAST_SQUARE

cholesky = Kernel("cholesky", OutFloatMatrix, IntArray, OutFloats)
invert_factor = Kernel("invert_factor", FloatMatrix, Floats, OutFloatMatrix)

UNIT = 2.0**-53


@dataclass(frozen=True)
class VerifiedForm:
    """A form with a verified inverse factor.

    Attributes
    ----------
    inverse
        Z.
    doubt
        At least f; 1 if nothing is proved.
    """

    inverse: Floats
    doubt: float

    @property
    def log_volume(self) -> tuple[float, float]:
        """Below and above -1/2 ln det G."""
        logs = np.log(np.diag(self.inverse))
        slip = len(logs) * (4 + len(logs)) * UNIT * float(np.abs(logs).max()) + 2.0**-50
        half = len(logs) / 2
        return (
            float(logs.sum()) - half * math.log1p(self.doubt) - slip,
            float(logs.sum()) - half * math.log1p(-self.doubt) + slip,
        )

    def quadratic(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Below and above b' G^-1 b for each row b of small whole numbers."""
        size = len(self.inverse)
        lengths = np.sqrt((np.square(vectors @ self.inverse.T)).sum(axis=1))
        slips = 2 * size * UNIT * np.sqrt(np.square(np.abs(vectors) @ np.abs(self.inverse.T)).sum(axis=1))
        low, high = np.maximum(0, lengths - slips), lengths + slips
        spare = 1 + 4 * (size + 4) * UNIT
        return low**2 / (1 + self.doubt) / spare, high**2 / (1 - self.doubt) * spare

    @property
    def widths(self) -> tuple[Floats, Floats]:
        """Below and above the s_j."""
        about = np.diag(self.inverse)
        return about / math.sqrt(1 + self.doubt) * (1 - 8 * UNIT), about / math.sqrt(1 - self.doubt) * (1 + 8 * UNIT)


def inverse_factor(form: Floats) -> Floats | None:
    """About the inverse of the lower factor of a form; None if floats find that it is not positive definite."""
    factor, roots = np.array(form), np.zeros(len(form))
    cholesky(factor, np.zeros(len(form), dtype=np.int64), roots)
    if not np.diag(factor).min() ** 2 > 2 * LEAST_SQUARE:
        return None
    columns = np.zeros_like(factor)
    invert_factor(factor, roots, columns)
    return columns.T if np.isfinite(columns).all() else None


def verified_form(basis: Floats, variances: Floats) -> VerifiedForm | None:
    """The form B' V^-1 B of a basis of whole numbers; None if floats do not prove that it is positive definite."""
    regions, size = basis.shape
    weighed = basis / variances[:, None]
    form = basis.T @ weighed
    inverse = inverse_factor(form)
    if inverse is None:
        return None
    rest = np.abs(inverse @ form @ inverse.T - np.eye(size)).sum(axis=1).max()
    sizes = np.abs(inverse) @ (np.abs(basis).T @ np.abs(weighed)) @ np.abs(inverse.T)
    # Three products and a quotient, one after the other; twice that for what is of second order.
    doubt = float(rest + 2 * (regions + 2 * size + 8) * UNIT * (sizes.sum(axis=1).max() + size))
    return VerifiedForm(inverse, doubt) if doubt < 0.5 else None
