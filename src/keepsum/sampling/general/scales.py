"""The laws that the scale mixture draws variances from, and what floats prove of the forms that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arrays import Floats, IntArray
from keepsum.lattice.matrix import Row, vectors_matrix
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import FloatMatrix, OutFloatMatrix, OutFloats
from keepsum.sampling.general.kernel_arguments import GUIDE, LEAST_SQUARE, ScaleTables, SlabTables

# What floats prove of a positive definite form B' V^-1 B: its determinant, its shares, and its widths.
#
# Let Z be about the inverse of the form's lower factor, lower triangular, any floats with a diagonal above 0. Then Z
# G Z' = I + F with a matrix F that is nearly 0, and its largest row sum f is computed from above: what floats can err
# by in a product is at most so many units of the product of the absolute values (Higham, Accuracy and Stability,
# chapter 3). If f < 1, then
#
#     -1/2 ln det G = sum of ln Z_jj - 1/2 ln det(I + F),  between it and that -+ (m/2) ln(1 -+ f),
#     b' G^-1 b = (Z b)' (I + F)^-1 (Z b),                 between |Z b|^2/(1 + f) and |Z b|^2/(1 - f),
#     s_j^2 = Z_jj^2 ((I + F_j)^-1)_jj,                     between Z_jj^2/(1 + f) and Z_jj^2/(1 - f),
#
# the last because leading blocks of a triangular product are products of leading blocks.


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


# How the lattice of a block is laid out for drawing it coordinate by coordinate.
#
# A table under all margins of one way less is a stack of *slabs*: each slab lies in one smaller lattice, and all
# slabs add up to 0. The slabs are then eliminated one after the other, in time proportional to their number. Any
# other lattice is a single slab, its basis ordered so that the factor of its form stays near the diagonal.


@dataclass(frozen=True, eq=False)
class Slabs:
    """A lattice of region sums in slabs.

    Attributes
    ----------
    order
        The column of the block that each region stands for, slab by slab.
    slabs
        How many slabs there are; with one, the lattice is the slab's.
    basis
        The basis of a slab, regions by coordinates.
    """

    order: IntArray
    slabs: int
    basis: sparse.csr_array

    @property
    def size(self) -> int:
        """The coordinates of a slab."""
        return int(self.basis.shape[1])

    @property
    def drawn(self) -> int:
        """The slabs that are drawn; the last of several follows from the others."""
        return max(1, self.slabs - 1)

    @property
    def dimension(self) -> int:
        """The dimension of the lattice."""
        return self.drawn * self.size

    @cached_property
    def profile(self) -> IntArray:
        """Where each row of the factor of a slab's form starts."""
        if self.slabs > 1:
            return np.zeros(self.size, dtype=np.int64)
        pattern = sparse.coo_array(abs(self.basis).T @ abs(self.basis))
        first = np.arange(self.size)
        np.minimum.at(first, pattern.row, pattern.col)
        return first.astype(np.int64)

    @property
    def multiplications(self) -> int:
        """About how many multiplications the factors of one proposal take."""
        reach = np.arange(self.size) - self.profile + 1.0
        if self.slabs == 1:
            return int((reach**2).sum() / 2)
        rows_only = 5 / 6 if self.is_rows else 3 / 2
        return int(rows_only * self.slabs * self.size**3)

    @property
    def is_rows(self) -> bool:
        """Whether a slab is a row with its sum kept."""
        width, size = self.basis.shape
        star = sparse.vstack([sparse.eye_array(size), -np.ones((1, size))]) if width == size + 1 else None
        return self.slabs > 1 and star is not None and abs(self.basis - star).nnz == 0

    def tables(self, law: IntArray) -> SlabTables:
        """As the kernels read them; ``law`` is the number of each region's law."""
        basis = sparse.csr_array(self.basis)
        basis.sort_indices()
        return SlabTables(
            law=law,
            slabs=self.slabs,
            simple=self.is_rows,
            pointers=basis.indptr.astype(np.int64),
            rows=basis.indices.astype(np.int64),
            values=basis.data.astype(np.float64),
            profile=self.profile,
        )

    def full_basis(self) -> Floats:
        """The basis of the whole lattice, regions by coordinates; the last coordinate is the first to be drawn."""
        one: Floats = self.basis.toarray().astype(np.float64)
        if self.slabs == 1:
            return one
        turned = np.vstack([np.eye(self.slabs - 1)[::-1], -np.ones((1, self.slabs - 1))])
        return np.asarray(np.kron(turned, one))

    def form(self, variances: Floats) -> VerifiedForm | None:
        """What is proved of the form B' V^-1 B; it is worked out once for all mixtures on these slabs."""
        key = variances.tobytes()
        if key not in self._forms:
            self._forms[key] = verified_form(self.full_basis(), variances)
        return self._forms[key]

    @cached_property
    def _forms(self) -> dict[bytes, VerifiedForm | None]:
        return {}

    def widths(self, variances: Floats | None = None) -> Floats:
        """The standard deviation with which each coordinate is drawn when regions have these variances, or 1."""
        basis = self.full_basis()
        form = basis.T @ (basis if variances is None else basis / variances[:, None])
        roots = np.zeros(self.dimension)
        cholesky(form, np.zeros(self.dimension, dtype=np.int64), roots)
        return roots

    @cached_property
    def width_bounds(self) -> tuple[Floats, Floats]:
        """Below and above the ``widths``, proved: those of a slab times sqrt(j/(j+1)) for the j-th slab from the last.

        A factor of a Kronecker product is the product of factors. Where floats prove nothing, 0 and infinity.
        """
        form = verified_form(self.basis.toarray().astype(np.float64), np.ones(self.basis.shape[0]))
        if form is None:
            return np.zeros(self.dimension), np.full(self.dimension, np.inf)
        j = np.arange(1, self.drawn + 1) if self.slabs > 1 else np.array([np.inf])
        stacked = 1 / np.sqrt(1 + 1 / j)
        low, high = form.widths
        return (
            np.asarray(np.kron(stacked, low) * (1 - 2.0**-50), dtype=np.float64),
            np.asarray(np.kron(stacked, high) * (1 + 2.0**-50), dtype=np.float64),
        )


def table_slabs(column: IntArray) -> Slabs:
    """A table under all margins of one way less: slabs along its longest axis."""
    longest = int(np.argmax(column.shape))
    stacked = np.moveaxis(column, longest, 0)
    stars = [
        np.vstack([np.eye(n - 1, dtype=np.int64), -np.ones((1, n - 1), dtype=np.int64)]) for n in stacked.shape[1:]
    ]
    return Slabs(stacked.reshape(-1), stacked.shape[0], sparse.csr_array(reduce(np.kron, stars)))


def lattice_slab(basis: list[Row], width: int) -> Slabs:
    """Any other lattice: one slab, its basis in an order that keeps the factor's rows short."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = vectors_matrix(basis, width)
    order = reverse_cuthill_mckee(sparse.csr_array(abs(matrix).T @ abs(matrix)), symmetric_mode=True)
    as_given = Slabs(np.arange(width), 1, matrix)
    ordered = Slabs(np.arange(width), 1, sparse.csr_array(matrix[:, order]))
    # A reduced basis has its shortest vectors first, which serves the widths: kept unless the order pays well.
    return ordered if ordered.multiplications < as_given.multiplications / 4 else as_given


def leverages(matrix: sparse.csr_array, variances: Floats) -> Floats:
    """How much of each region's variance the totals take away: v a'(A V A')^-1 a."""
    dense = matrix.toarray().astype(np.float64)
    inverse = np.linalg.pinv((dense * variances) @ dense.T, hermitian=True)
    return np.asarray(variances * np.einsum("ij,ij->j", dense, inverse @ dense))


# The laws that the scale mixture draws variances from, in pieces that invert in closed form.
#
# A Laplace variable is Gaussian with a random variance v of density proportional to e^(-eps^2 v/2), a sum of n of
# them with density v^(n-1) e^(-eps^2 v/2). In y = sqrt(v), and together with the Gaussian's own factor 1/sqrt(v), the
# target density is y^(2(n-1)) e^(-eps^2 y^2/2), or with another order in the place of n (``shape_for``). It is
# proposed with a further factor max(v, tau)^(q/2), which makes up for the weight of the lattice (``mixture.py``). The
# log density is then interpolated by straight lines: a line of slope t has its mass, and the inverse of it, in closed
# form. Whatever is drawn from is known exactly, so the interpolation costs nothing but a little of the weights.


fall = Kernel("fall", float, int, int, OutFloats)
accumulate = Kernel("accumulate", float, Floats, float, returns=float)

CUT = 45.0  # e^-45 of the largest density is where the pieces end and straight tails begin
FINE = 0.04  # pieces are this wide, in units of 1/eps and of y
SPREAD = 40.0  # sums of regions are tabulated to e^-40
LEAST = 1.25  # the smallest order of a Gamma law other than 1
LONGEST_LAW = 4 * 10**6  # entries of the law of a sum
FLATTEST = 1e-12
SHARP = 1e-12  # the spread of a width that is one number


@dataclass(frozen=True)
class ScaleLaw:
    """The law of y for a region: n cells, exponent q, threshold tau.

    Attributes
    ----------
    edge, height, slope, passed
        The pieces: log density ``height + slope (y - edge)``, and the mass before each.
    half, power, exponent, tau
        The target, e^(-half y^2) y^power, and the further factor max(y^2, tau)^(exponent/2) that it is proposed
        with. ``mixture_bounds.py`` proves how far the lines are below that.
    """

    edge: Floats
    height: Floats
    slope: Floats
    passed: Floats
    half: float
    power: float
    exponent: float
    tau: float


def scale_law(epsilon: float, size: int, exponent: float, tau: float) -> ScaleLaw:
    """Lay straight lines through the log density at edges, and a tangent beyond the last."""
    power, root = 2 * (shape_for(epsilon, size) - 1), math.sqrt(tau)

    def log_density(y: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            rise = power * np.log(y) if power else np.zeros_like(y)
        return np.asarray(-((epsilon * y) ** 2) / 2 + rise + exponent * np.log(np.maximum(y, root)))

    edge = _edges(epsilon, power, exponent, root)
    at = log_density(edge)
    if power:
        at[0] = at[1]  # the density rises from 0 there: a level piece above it
    slope = np.empty_like(edge)
    slope[:-1] = np.diff(at) / np.diff(edge)
    slope[-1] = -(epsilon**2) * edge[-1] + (power + exponent * (edge[-1] > root)) / edge[-1]
    mass = np.empty_like(edge)
    rise = slope[:-1] * np.diff(edge)
    # Slopes of almost 0 would divide 0 by 0.
    mass[:-1] = np.diff(edge) * np.where(
        np.abs(rise) < 1e-9, 1 + rise / 2, np.expm1(rise) / np.where(rise == 0, 1, rise)
    )
    mass[-1] = -1 / slope[-1]
    top = float(at.max())
    mass *= np.exp(at - top)
    passed = np.concatenate([[0.0], np.cumsum(mass)])
    height = at - top - math.log(passed[-1])
    passed = passed[:-1] / passed[-1]
    slope = np.where(np.abs(slope) < FLATTEST, FLATTEST, slope)  # level lines are tilted by less than rounding
    return ScaleLaw(edge, height, slope, passed, epsilon**2 / 2, power, exponent, tau)


def fixed_scale(variance: float) -> ScaleLaw:
    """No mixture: one width, spread over its last digits so that its density is a number."""
    width = math.sqrt(variance)
    spread = SHARP * width
    height = -math.log(spread)
    return ScaleLaw(
        edge=np.array([width, width + spread]),
        height=np.array([height, height - 60]),
        slope=np.array([1e-12, -1 / spread]),
        passed=np.array([0.0, 1.0]),
        half=0.0,
        power=0.0,
        exponent=0.0,
        tau=variance,
    )


def _edges(epsilon: float, power: float, exponent: float, root: float) -> Floats:
    """From 0 through the threshold to where the density has fallen by e^-CUT, finer where it bends."""
    top = math.sqrt(power + exponent) / epsilon + math.sqrt(2 * CUT) / epsilon
    bend = FINE / math.sqrt(max(1.0, power + exponent))
    edges = [0.0]
    if power:
        # Below this the density is less than e^-CUT of the largest, or y is far below a whole number.
        edges.append(min(root, math.sqrt(power) / epsilon) * math.exp(-CUT / power))
    else:
        edges += np.linspace(0, root, max(2, math.ceil(root * epsilon / FINE) + 1))[1:].tolist()
    if edges[-1] < root:
        edges += [*_ladder(edges[-1], root, FINE / epsilon, bend)[:-1].tolist(), root]
    return np.concatenate([edges, _ladder(edges[-1], top, FINE / epsilon, bend)])


def _ladder(start: float, end: float, widest: float, bend: float) -> Floats:
    """Numbers after ``start`` to the first that is not below ``end``: y more than ``bend`` y, or ``widest`` if less.

    >>> _ladder(1.0, 2.0, 0.5, 0.25).tolist()
    [1.25, 1.5625, 1.953125, 2.44140625]
    >>> _ladder(1.0, 2.0, 0.25, 0.25).tolist()
    [1.25, 1.5, 1.75, 2.0]
    """
    turn = min(end, widest / bend)  # from here on steps have the same width
    growing = max(0, math.ceil(math.log(turn / start) / math.log1p(bend)))
    grown = start * (1 + bend) ** np.arange(1, growing + 1)
    last = float(grown[-1]) if growing else start
    return np.concatenate([grown, last + widest * np.arange(1, math.ceil((end - last) / widest) + 1)])


def pack_scales(laws: Sequence[ScaleLaw], ratios: Sequence[Floats]) -> ScaleTables:
    """Laws and ratios one behind the other, as the kernels read them."""
    start = np.cumsum([0, *(len(law.edge) for law in laws)])
    guide = np.array([np.searchsorted(law.passed, np.arange(GUIDE) / GUIDE, side="right") - 1 for law in laws])
    return ScaleTables(
        start=start.astype(np.int64),
        edge=np.concatenate([law.edge for law in laws]),
        height=np.concatenate([law.height for law in laws]),
        # Pieces as low as e^-700 are never drawn from.
        unheight=np.exp(-np.maximum(-700.0, np.concatenate([law.height for law in laws]))),
        slope=np.concatenate([law.slope for law in laws]),
        passed=np.concatenate([law.passed for law in laws]),
        guide=guide.astype(np.int32),
        power=np.array([law.power for law in laws]),
        half=np.array([law.half for law in laws]),
        ratio_start=np.cumsum([0, *(len(table) for table in ratios)]).astype(np.int64),
        ratios=np.concatenate([*ratios, np.zeros(0)]),
    )


def shape_for(epsilon: float, size: int) -> float:
    """The order of the Gamma law of a region's variance.

    For one cell it is 1, and the mixture is the Laplace law itself. For n cells it is chosen so that the variance
    agrees with that of n double geometrics, which at large epsilon are narrower than n Laplace variables; 1 where that
    would be less than LEAST, so that no density is infinite at 0, or rises there over hundreds of orders.
    """
    if size == 1 or epsilon > 100:
        return 1.0
    shape = size * (epsilon / 2 / math.sinh(epsilon / 2)) ** 2
    return shape if shape >= LEAST else 1.0


def typical_variances(epsilon: float | Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """The mean variance of each region's mixture."""
    each = zip(np.broadcast_to(epsilon, len(sizes)).tolist(), sizes.tolist(), strict=True)
    return np.array([2 * shape_for(e, n) / e**2 for e, n in each])


@lru_cache(maxsize=256)
def log_ratios(epsilon: float, size: int) -> Floats:
    """Ln of the law of a sum of n double geometrics over the mixture's density there, for sums 0, 1, ...

    Up to a constant, for sums as likely as e^-SPREAD; none for a single cell, where the two agree.
    """
    if size == 1:
        return np.zeros(0)
    law = log_sum_law(epsilon, size)
    ratios = law - log_mixture(epsilon, shape_for(epsilon, size), np.arange(len(law), dtype=np.float64))
    return np.asarray(ratios - ratios[0])


def log_mixture(epsilon: float, shape: float, sums: Floats) -> Floats:
    """Ln of the integral of y^(2 shape - 2) e^(-eps^2 y^2/2 - S^2/2y^2) dy over y > 0, up to a constant.

    In x = ln y the integrand is analytic in a strip, falls off doubly exponentially to the right and at least like
    e^(x (2 shape - 1)) to the left, so the trapezoid rule with a quarter of its width as the step is accurate to the
    last digits.
    """
    power = 2 * shape - 1
    result = np.empty(len(sums))
    for first in range(0, len(sums), 4096):
        chunk = sums[first : first + 4096, None]
        square = (power + np.sqrt(power**2 + 4 * (epsilon * chunk) ** 2)) / (2 * epsilon**2)  # e^2x at the top
        width = 1 / np.sqrt(2 * epsilon**2 * square + 2 * chunk**2 / square)
        step = np.minimum(width / 4, 1 / 16)
        # To the left it falls like e^(power x), and once S^2/2y^2 is large much faster.
        fallen = np.log(120 * square / np.maximum(chunk, 1e-100) ** 2 + 1) / 2
        before = int(np.ceil((12 * width + np.minimum(45 / power, fallen)) / step).max())
        after = int(np.ceil(12 * width / step).max())
        away = step * np.arange(-before, after + 1)
        grown = square * np.exp(2 * away)
        logs = power * away - epsilon**2 * grown / 2 - chunk**2 / (2 * grown)
        top = logs.max(axis=1)
        tail = np.log((np.exp(logs - top[:, None])).sum(axis=1)) + np.log(step[:, 0])
        result[first : first + 4096] = top + tail + power * np.log(square[:, 0]) / 2
    return result


@lru_cache(maxsize=256)
def log_sum_law(epsilon: float, size: int) -> Floats:
    """Ln of the law of a sum of n double geometrics at 0, 1, ... as far as e^-SPREAD of the largest, up to a constant.

    The generating function G = ((1 - a x)(1 - a/x))^-n has x G' (1 - a x)(1 - a/x) = n a (x - 1/x) G, so that
    a (n - S - 1) p(S+1) = a (n + S - 1) p(S-1) - (1 + a^2) S p(S), and the ratios r(S) = p(S+1)/p(S) follow from each
    other downwards, where the recurrence forgets where it started by a factor a^2 a step.
    """
    ratios = sum_ratios(epsilon, size, sum_reach(epsilon, size))
    return np.concatenate([[0.0], np.cumsum(np.log(ratios))])


@lru_cache(maxsize=256)
def log_ratio_error(epsilon: float, size: int) -> float:
    """A bound of the error of any of the ``log_ratios``.

    A step of the recurrence is right to c = 20 + 4 eps units: its numbers are positive, or (beyond n) a difference
    that takes away less than two thirds, and e^-eps is right to 3 + eps units, by which a ratio changes no more. Of the
    error of a ratio r(S) a share |n - S - 1| r(S) r(S-1)/(n + S - 1) < 1 is passed on to the next. The ratio that the
    recurrence starts from may be all wrong, and reaches the table through as many shares as there are steps before it.
    The law adds up all ratios, and the mixture is right to some units of its exponents, ``largest`` at most.
    """
    if size == 1:
        return 0.0
    reach = sum_reach(epsilon, size)
    before = _run_in(epsilon, size, reach)
    ratios = sum_ratios(epsilon, size, reach)
    s = np.arange(1, len(ratios), dtype=np.float64)
    shares = np.abs(size - s - 1) * ratios[1:] * ratios[:-1] / (size + s - 1)
    ends = [abs(size - s - 1) / (size + s - 1) for s in (reach, reach + before)]
    share = max(ends) * float(ratios[-1]) ** 2
    fresh = (20 + 4 * epsilon) * UNIT
    last = fresh / (1 - share) + 4 * share**before
    law = accumulate(fresh, shares * (1 + 2.0**-40), last) + last + 4 * len(ratios) * UNIT * (2 * SPREAD + epsilon)
    power = 2 * shape_for(epsilon, size) - 1
    exponents = power + epsilon * reach
    largest = 64 * exponents + 4 * power * abs(math.log(exponents) - 2 * math.log(epsilon))
    return float(2 * (law + (largest + 2000) * UNIT))


@lru_cache(maxsize=256)
def log_tail(epsilon: float, size: int) -> float:
    """Ln of a bound of the chance that a region's sum lies beyond its table, whatever totals hold.

    Given all totals a sum S is at most p(S)/p(0) times as likely as 0 (the law of the rest has a positive Fourier
    transform, so its weight is largest at 0), and ratios p(S+1)/p(S) fall: the rest is at most a geometric series.
    """
    law = log_sum_law(epsilon, size)
    return float(math.log(4) + law[-1] - math.log(-math.expm1(law[-1] - law[-2])))


def sum_reach(epsilon: float, size: int) -> int:
    """How many sums are as likely as e^-SPREAD of the likeliest, at most."""
    deviation = math.sqrt(2 * size * math.exp(-epsilon)) / -math.expm1(-epsilon)
    return int(math.sqrt(2 * SPREAD) * deviation + SPREAD / epsilon) + 16


def sum_ratios(epsilon: float, size: int, most: int) -> Floats:
    """p(S+1)/p(S) for S = 0, ..., most - 2."""
    out = np.empty(most - 1)
    fall(math.exp(-epsilon), size, most + _run_in(epsilon, size, most), out)
    return out


def _run_in(epsilon: float, size: int, most: int) -> int:
    """Steps before the table until the recurrence has forgotten where it started: see ``log_ratio_error``."""
    return int(SPREAD / epsilon) + 16 + int(SPREAD * (size + most) / (2 * most))
