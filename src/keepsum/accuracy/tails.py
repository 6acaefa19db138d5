"""The paper's tail bounds on the length of the noise, with its constant K, for the lengths where they are proved.

Pr[|z| >= t] <= K t^m exp(-eps t) for l2 Laplace noise (``thm:lap_acc``) and K t^m exp(-t^2 / 2 sigma^2) for Gaussian
noise (``prop:gaussian``), K = 4 * 2^m V_m / sqrt(det) the larger of the paper's two constants. The paper says "for t
large enough"; enough is t >= mu / (2^(1/m) - 1), mu the covering radius, together with eps t >= (m + 1) ln 2 or
t^2 >= 2 sigma^2 (m + 1) ln 2 / 3. Half the square root of the sum of squared Gram-Schmidt lengths is used for mu; it
is an upper bound.
"""

from __future__ import annotations

import math

from keepsum._arguments import check_number
from keepsum.errors import InputError
from keepsum.planning.geometry import Geometry
from keepsum.privacy.calibration import log_constant
from keepsum.privacy.mechanism import Mechanism


def valid_from(mechanism: Mechanism, shape: Geometry) -> float:
    """The smallest length at which the bound is proved."""
    if mechanism.kind not in ("laplace-l2", "gaussian"):
        raise InputError(f"Tail bounds need l2 Laplace or Gaussian noise, got {mechanism!r}.")
    if mechanism.focus:
        raise InputError(f"Tail bounds need noise without a focus, got {mechanism!r}.")
    if shape.gram_schmidt is None or shape.log_volume is None:
        raise InputError("The tail bound needs the lattice's volume, and a block is too large to compute it.")
    m, scale = shape.dimension, float(mechanism.scale)
    covering = math.sqrt(shape.gram_schmidt) / 2 / math.expm1(math.log(2) / m)
    if mechanism.kind == "gaussian":
        return max(covering, scale * math.sqrt(2 * (m + 1) * math.log(2) / 3))
    return max(covering, (m + 1) * math.log(2) * scale)


def tail_bound(mechanism: Mechanism, shape: Geometry, length: float) -> float:
    """An upper bound on the probability that the noise is at least this long.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(4, [range(4)]), mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2"))
    >>> round(valid_from(plan.mechanism, plan.geometry), 2), round(plan.tail_bound(20.0), 6)
    (4.23, 0.001105)
    """
    least = valid_from(mechanism, shape)
    length = check_number(length, "The length", 0, math.inf)
    if not length >= least:
        raise InputError(f"The length must be at least {least:.6g}, where the bound is proved, got {length:.6g}.")
    scale = float(mechanism.scale)
    exponent = length**2 / (2 * scale**2) if mechanism.kind == "gaussian" else length / scale
    constant = log_constant(shape.dimension, shape.log_volume or 0.0)
    return math.exp(min(0.0, constant + shape.dimension * math.log(length) - exponent))
