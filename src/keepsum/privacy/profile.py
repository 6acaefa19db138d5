"""The (epsilon, delta) of Gaussian noise on any lattice, by its lines; the proofs are in ``docs/gaussian.md``.

A change D of zCDP loss rho = |D|^2 / 2 sigma^2 splits the lattice into lines z + Z D. On each of them the noise is a
discrete Gaussian of width s = 1/sqrt(2 rho) on Z + u for some u, and D shifts it by 1. So delta is at most

    S(eps, rho) = sup over u of [ sum of max(0, w(y) - e^eps w(y - 1)) ] / [ sum of w(y) ],  w(y) = exp(-y^2 / 2 s^2),

both sums over y in Z + u. Only y below y_0 = 1/2 - s^2 eps count, and there a summand is w(y) (1 - exp((y - y_0)/s^2)):
both factors are monotone on each side of 0, which bounds it on an interval of u. ``holds`` bisects until every interval
is small enough. S falls as s grows, so that it holds for every change of at most this rho.

For one fixed mechanism the conversion of zCDP holds as well, and is the smaller one where rho is large. Parameters are
looked for in floating-point numbers and rounded to the safe side; what is returned has passed ``holds``, in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly

from keepsum.errors import InputError
from keepsum.privacy.calibration import SIGMA_BITS, delta_of, epsilon_of, log_expm1, rho_of, rounded_up, zcdp
from keepsum.sampling.core.balls import ball, precision

RULE: Final = "lines"
VERSION = 1
DIGITS = 6  # of sigma and of epsilon, which are rounded up
MARGINS = (1e-5, 1e-4, 1e-3, 1e-2)  # by which a root in floating-point numbers is moved to the safe side
RESOLUTION = Fraction(1, 10**4)  # relative: noise for one person that is so much narrower than the rule's has no proof
RESOLUTION_PER_UNIT = Fraction(2, 10**3)  # the same for the guarantee at every distance
BOUNDED = (1e-3, 1e-2)  # by which S in floating-point numbers is moved to the safe side, for a bound on S itself
LARGEST_EPSILON = 600
WIDEST = 512  # in steps of the change: for wider noise the closed form loses little
NARROWEST = 0.02  # and for narrower noise the conversion of zCDP is smaller
BITS = 128  # of the sums
FARTHEST = 50.0  # twice the logarithm of what summands may weigh that are bounded together
MOST_INTERVALS = 20_000
POINTS = 128  # of u, in floating-point numbers
SINGLE = 64  # squared distances that are checked by S itself, and so is noise
NARROW = 4  # of at most so many steps of the change; otherwise by the closed form


# -- the bound, in balls ----------------------------------------------------------------------------


def holds(epsilon: Fraction, delta: Fraction, rho: Fraction) -> bool:
    """Whether noise that loses at most rho (zCDP) at a change of the lattice is (epsilon, delta)-private there.

    It is proved if true: by the closed form, by S itself, or by the conversion of zCDP.

    >>> holds(Fraction(1), Fraction(1, 10**6), 1 / Fraction("5.989") ** 2)
    True
    >>> holds(Fraction(1), Fraction(1, 10**6), 1 / Fraction("5.987") ** 2)
    False
    """
    if delta >= 1:
        return True
    with precision(SIGMA_BITS):
        if _follows(ball(epsilon), ball(delta), 1 / (2 * ball(rho))):
            return True
    return delta_of(rho, epsilon) <= delta


def is_smallest(epsilon: Fraction, delta: Fraction, rho: Fraction) -> bool:
    """Whether noise that loses at most rho is that of the rule: it holds, and noise narrower by 1/10,000 does not.

    Two evaluations: no width is looked for. What ``largest_rho`` and ``smallest_sigma`` return always passes.

    >>> one, millionth = Fraction(1), Fraction(1, 10**6)
    >>> [is_smallest(one, millionth, 1 / Fraction(sigma) ** 2) for sigma in ("5.987", "5.98824", "5.989")]
    [False, True, False]
    """
    return holds(epsilon, delta, rho) and not holds(epsilon, delta, rho / (1 - RESOLUTION) ** 2)


def _follows(epsilon: arb, delta: arb, square: arb, closely: bool = True) -> bool:
    """Whether S is at most delta for noise of this squared width, in steps of the change."""
    if closed_form(epsilon, square) <= delta:
        return True
    if not closely or not square <= WIDEST**2:
        return False
    with precision(BITS):
        return _supremum_is_below(epsilon, delta, square)


def closed_form(epsilon: arb, square: arb) -> arb:
    """(delta of the continuous Gaussian + the largest summand) / theta_4: never less than S.

    A sum over Z + u of a function that rises and then falls is at most its integral and its largest value.
    """
    s = square.sqrt()
    theta = 1 - 2 * (-2 * arb.pi() ** 2 * square).exp()
    if not theta > 0:
        return arb("inf")
    middle, half = epsilon * s, 1 / (2 * s)
    continuous = _normal(half - middle) - epsilon.exp() * _normal(-half - middle)
    return (continuous + _largest_summand(epsilon, square) / (s * (2 * arb.pi()).sqrt())) / theta


def _normal(x: arb) -> arb:
    """The distribution function of the standard normal distribution."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _largest_summand(epsilon: arb, square: arb) -> arb:
    """An upper bound of w(y_0 - t)(1 - exp(-t / s^2)) over t > 0.

    It rises while (y_0 - t) + 1/(exp(t / s^2) - 1) is positive, and then falls: w and 1 - exp are log-concave.
    """
    top = arb(0.5) - square * epsilon
    width, y0 = float(square.mid()), float(top.mid())
    low, high = -60.0, 60.0  # of ln(t / s^2)
    for _ in range(80):
        middle = (low + high) / 2
        x = math.exp(middle)
        rises = y0 - width * x + (1 / math.expm1(x) if x < 700 else 0.0) > 0
        low, high = (middle, high) if rises else (low, middle)
    before, after = (square * arb(low + shift).exp() for shift in (-1e-6, 1e-6))
    rises = top - before + 1 / (before / square).expm1() > 0
    falls = top - after + 1 / (after / square).expm1() < 0
    if not (rises and falls):
        return arb("inf")
    nearest = top - before  # nearer 0 than anything in between, or on the other side of it
    weight = (-(nearest**2) / (2 * square)).exp() if nearest < 0 else arb(1)
    return -weight * (-after / square).expm1()


def _supremum_is_below(epsilon: arb, delta: arb, square: arb) -> bool:
    """Whether S <= delta, by bisection over t, with y_0 - t the first y of Z + u below y_0."""
    line = _Line(epsilon, square)
    pieces = [(arb(k) / 16, arb(k + 1) / 16) for k in range(16)]
    for _ in range(MOST_INTERVALS):
        if not pieces:
            return True
        low, high = pieces.pop()
        if line.bound(low, high) <= delta:
            continue
        middle = (low + high) / 2
        if not line.bound(middle, middle) <= delta:
            return False
        pieces += [(low, middle), (middle, high)]
    return False


class _Line:
    """Bounds on delta for all lines y_0 - t + Z with t in an interval.

    With c = y_0 - t the weights of c, c - 1, c - 2, ... are w(c) x^j exp(-j^2 / 2 s^2) with x = exp(c / s^2): sums over
    them are values of one polynomial.
    """

    def __init__(self, epsilon: arb, square: arb) -> None:
        self.square = square
        self.top = arb(0.5) - square * epsilon
        width, top = float(square.mid()), float(self.top.mid())
        self.terms = math.ceil(math.sqrt(FARTHEST * width + max(0.0, -top) ** 2) + top) + 2
        self.above = max(0, math.ceil(top) + 1)  # how many terms may be above 0
        self.polynomial = arb_poly([(-(arb(j) ** 2) / (2 * square)).exp() for j in range(self.above, self.terms)])
        self.step = (-1 / square).exp()
        self.wide = square >= 1
        self.total = (2 * arb.pi() * square).sqrt() * (1 - 2 * (-2 * arb.pi() ** 2 * square).exp())
        self.reach = math.ceil(math.sqrt(FARTHEST * width)) + 1

    def bound(self, low: arb, high: arb) -> arb:
        """The largest delta for t from low to high, bounded from above."""
        gone, first = (-high / self.square).exp(), self.top - low
        numerator = arb(0)
        for j in range(self.above):
            heaviest = self._heaviest(self.top - high - j, first - j)
            numerator += heaviest * (1 - gone * (-arb(j) / self.square).exp())
        if not first - self.above < 0:
            return arb("inf")
        x = (first / self.square).exp()
        below = self.polynomial(x) - gone * self.step**self.above * self.polynomial(x * self.step)
        numerator += self._weight(first) * x**self.above * below
        last = first - self.terms
        ratio = ((2 * last - 1) / (2 * self.square)).exp()  # of a weight to the one before, and falling
        if not (last < 0 and ratio < 1):
            return arb("inf")
        tail = self._weight(last) / (1 - ratio)
        return (numerator + tail) / (self.total if self.wide else self._lightest(low, high))

    def _weight(self, y: arb) -> arb:
        return (-(y**2) / (2 * self.square)).exp()

    def _heaviest(self, low: arb, high: arb) -> arb:
        """The largest weight between two points."""
        if high <= 0:
            return self._weight(high)
        return self._weight(low) if low >= 0 else arb(1)

    def _lightest(self, low: arb, high: arb) -> arb:
        """The weight of all points, bounded from below: weights between two points are at least that of one of them."""
        centre = int(float(self.top.mid()) // 1)
        total = arb(0)
        for k in range(-self.reach, self.reach + 2):
            left, right = self._weight(self.top - high - centre + k), self._weight(self.top - low - centre + k)
            total += left.min(right)
        return total


def bounded(epsilon: Fraction, rho: Fraction) -> float:
    """S at an epsilon for a change of this zCDP loss, bounded from above: nearly always within 0.1%.

    >>> 1e-6 < bounded(Fraction(1), 1 / Fraction("5.987") ** 2) < 1.01e-6
    True
    """
    with precision(SIGMA_BITS):
        e, square = ball(epsilon), 1 / (2 * ball(rho))
        least = math.exp(log_supremum(float(epsilon), math.sqrt(0.5 / float(rho)))) if square < WIDEST**2 else 0.0
        for margin in BOUNDED:
            bound = least * (1 + margin)
            if 0 < bound < 1 and _follows(e, arb(bound), square):
                return bound
        closed = closed_form(e, square)
        return min(1.0, math.nextafter(float(closed.upper()), math.inf)) if closed.is_finite() else 1.0


# -- the same in floating-point numbers: where to look ----------------------------------------------


def log_supremum(epsilon: float, s: float) -> float:
    """Ln S, nearly: the largest over some u."""
    square, top = s * s, 0.5 - s * s * epsilon
    terms = math.ceil(math.sqrt(FARTHEST * square + max(0.0, -top) ** 2) + top) + 2
    points = POINTS if s < 16 else POINTS // 4
    shifts = np.arange(points) / points
    t = shifts[:, None] + np.arange(max(terms, 2))[None, :]
    scale = min(top, 0.0) ** 2 / (2 * square)
    exponent = scale - (top - t) ** 2 / (2 * square)
    numerator = (np.exp(exponent) * -np.expm1(-t / square)).sum(axis=1)
    if s >= 1:
        total = np.full(points, s * math.sqrt(2 * math.pi))
    else:
        reach = math.ceil(s * math.sqrt(FARTHEST)) + 1
        y = (top - shifts) % 1.0
        total = np.exp(-((y[:, None] + np.arange(-reach, reach + 1)[None, :]) ** 2) / (2 * square)).sum(axis=1)
    best = float((numerator / total).max())
    return math.log(best) - scale if best > 0 else -math.inf


def _log_closed(epsilon: npt.NDArray[np.float64], s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ln of the closed form, nearly, for wide noise."""
    from scipy.special import log_ndtr  # not loaded where every sigma is given

    upper, lower = log_ndtr(0.5 / s - epsilon * s), epsilon + log_ndtr(-0.5 / s - epsilon * s)
    continuous = upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))
    top = 0.5 - s * s * epsilon
    low, high = np.full_like(s, -60.0), np.full_like(s, 60.0)
    with np.errstate(over="ignore"):
        for _ in range(50):
            middle = (low + high) / 2
            x = np.exp(middle)
            rises = top - s * s * x + 1 / np.expm1(x) > 0
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    t = s * s * np.exp(low)
    largest = -((top - t) ** 2) / (2 * s * s) + np.log(-np.expm1(-t / (s * s))) - np.log(s * math.sqrt(2 * math.pi))
    theta = np.maximum(1e-300, 1 - 2 * np.exp(-2 * math.pi**2 * s * s))
    return np.asarray(np.logaddexp(continuous, largest) - np.log(theta))


def log_delta_of(epsilon: float, s: float) -> float:
    """Ln of the bound that ``holds`` uses for noise of this width, nearly."""
    if s <= WIDEST:
        return log_supremum(epsilon, s)
    return float(_log_closed(np.array([epsilon]), np.array([s]))[0])


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, from above."""
    for _ in range(60):
        if high - low < 1e-9:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def _narrowest(epsilon: float, log_delta: float) -> float:
    """The smallest s with S <= delta, nearly; infinite if there is none that numbers hold."""

    def excess(log_s: float) -> float:
        return log_delta_of(epsilon, math.exp(log_s)) - log_delta

    widest = math.log(WIDEST)
    if excess(widest) <= 0:
        return math.exp(_root(excess, math.log(NARROWEST), widest))
    return math.exp(_root(excess, widest + 1e-9, 36.0))


# -- what follows -----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest zCDP loss of a change that is (epsilon, delta)-private there, rounded down.

    >>> sigma = (2 / (2 * largest_rho(Fraction(1), Fraction(1, 10**6)))) ** 0.5
    >>> round(sigma, 2)
    5.99
    """
    if epsilon > LARGEST_EPSILON:
        raise InputError(
            "Epsilon per person, or per record, must be at most 600 under Gaussian noise. Choose a smaller one."
        )
    proved = rho_of(epsilon, delta)
    s = _narrowest(float(epsilon), _log(delta))
    rho = max(0.5 / s**2, rho_of_epsilon(epsilon, delta))
    candidates = (Fraction(rho * (1 - margin)).limit_denominator(10**30) for margin in MARGINS)
    found = next((each for each in candidates if each <= proved or holds(epsilon, delta, each)), proved)
    return _raised(max(found, proved), lambda rho: holds(epsilon, delta, rho))


def _raised(rho: Fraction, is_proved: Callable[[Fraction], bool]) -> Fraction:
    """A proved rho; not that one, where floating-point numbers misled and more by the resolution is proved as well."""
    step = 1 + RESOLUTION  # half of the resolution in sigma: rounding that up has the other half
    if not is_proved(rho * step):
        return rho
    growth = step**2
    while is_proved(rho * growth):
        rho, growth = rho * growth, growth**2
    high = rho * growth
    while high > rho * step:
        middle = ((rho + high) / 2).limit_denominator(10**30)
        rho, high = (middle, high) if is_proved(middle) else (rho, middle)
    return rho


def rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> float:
    """The rho that the conversion of zCDP allows, nearly: at least the proved one, which is simpler.

    >>> round(rho_of_epsilon(Fraction(1), Fraction(1, 10**6)), 4)  # of which a ledger makes epsilon 1
    0.0244
    """

    def excess(log_rho: float) -> float:
        return float(epsilon) - float(epsilon_of(Fraction(math.exp(log_rho)).limit_denominator(10**30), delta))

    low = math.log(float(rho_of(epsilon, delta)))
    return math.exp(_root(excess, low, low + 2)) if excess(low) > 0 else 0.0


def smallest_sigma(epsilon: Fraction, delta: Fraction, length: int) -> Fraction:
    """The smallest sigma that is (epsilon, delta)-private at a change of this squared length, rounded up.

    >>> [float(smallest_sigma(Fraction(1), Fraction(1, 10**6), length)) for length in (2, 4)]
    [5.98824, 8.46865]
    """
    rho = largest_rho(epsilon, delta)
    with precision(SIGMA_BITS):
        sigma = rounded_up(lambda: (length / (2 * ball(rho))).sqrt())
    return digits_up(sigma)


@lru_cache(maxsize=4096)
def smallest_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon at this delta for a change of this zCDP loss, rounded up to six digits.

    >>> float(smallest_epsilon(Fraction(1, 2), Fraction(1, 10**6)))
    5.03528
    """
    converted = epsilon_of(rho, delta)
    s, log_delta = float(1 / (2 * rho)) ** 0.5, _log(delta)
    if not NARROWEST < s < 1e15 or converted == 0:
        return converted

    def excess(log_epsilon: float) -> float:
        return log_delta_of(math.exp(log_epsilon), s) - log_delta

    most = math.log(float(converted))
    if excess(most) > 0:
        return converted
    epsilon = math.exp(_root(excess, most - 40, most))
    for margin in MARGINS:
        larger = digits_up(Fraction(epsilon * (1 + margin)))
        if larger >= converted:
            break
        if holds(larger, delta, rho):
            return larger
    return converted


def crossing(scale: float, delta: Fraction, low: float, high: float) -> float:
    """The largest epsilon at which noise of width scale/epsilon, in steps of the change, loses at most delta, nearly.

    Laplace noise is about as wide as 1/epsilon times a constant; Gaussian noise need not be wider below this epsilon.
    ``low`` if that is at most that, ``high`` if at least.

    >>> s = float(smallest_sigma(Fraction(1), Fraction(1, 10**6), 1))
    >>> round(crossing(s, Fraction(1, 10**6), 1e-3, 10), 3)
    1.0
    """
    log_delta = _log(delta)

    def room(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return log_delta - log_delta_of(epsilon, scale / epsilon)

    if room(math.log(low)) <= 0:
        return low
    return high if room(math.log(high)) >= 0 else math.exp(_root(room, math.log(low), math.log(high)))


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def digits_up(number: Fraction) -> Fraction:
    """Rounded up to six digits."""
    power = math.floor(_log(number) / math.log(10))
    unit = Fraction(10) ** (power - DIGITS + 1)
    return math.ceil(number / unit) * unit


# -- per unit of distance ---------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def per_unit_sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The smallest sigma of the definition: at distance r, eps r and (e^(eps r) - 1)/(e^eps - 1) delta, on any lattice.

    >>> float(per_unit_sigma(Fraction(1, 2), Fraction(1, 10**6)))
    8.06437
    """
    proved = zcdp(epsilon, delta)
    if epsilon > LARGEST_EPSILON:
        return proved
    sigma = _narrowest_per_unit(float(epsilon), _log(delta))
    for margin in (2e-4, 1e-3, 1e-2):
        rounded = digits_up(Fraction(sigma * (1 + margin)))
        if rounded >= proved:
            break
        if holds_per_unit(epsilon, delta, rounded):
            return rounded
    return proved


def holds_per_unit(epsilon: Fraction, delta: Fraction, sigma: Fraction) -> bool:
    """Whether this sigma gives the guarantee of the definition at every distance that a lattice can have.

    Squared distances are whole numbers n, checked until the delta of the definition is 1. Those from a to b are checked
    together, with the epsilon and delta of a and the width of b: the first few one by one.
    """
    if sigma >= zcdp(epsilon, delta):
        return True  # proved for all
    return _holds_everywhere(epsilon, delta, sigma, (sigma / (NARROW + 1)) ** 2)


def is_smallest_per_unit(epsilon: Fraction, delta: Fraction, sigma: Fraction) -> bool:
    """Whether this sigma is that of the rule: it is enough at every distance, and one less by 1/500 is not.

    The narrower one is tried with S where ``per_unit_sigma`` looked with S, or at fewer distances, and otherwise with
    the closed form: it is never better off, so that what that returns always passes.
    """
    proved = zcdp(epsilon, delta)
    if sigma > proved or epsilon > LARGEST_EPSILON:
        return sigma == proved
    narrower = sigma * (1 - RESOLUTION_PER_UNIT)
    return holds_per_unit(epsilon, delta, sigma) and not _holds_everywhere(
        epsilon, delta, narrower, (sigma / NARROW) ** 2
    )


def _holds_everywhere(epsilon: Fraction, delta: Fraction, sigma: Fraction, near: Fraction) -> bool:
    """The same, by S at squared distances up to SINGLE and from some number on, and between by the closed form."""
    with precision(SIGMA_BITS):
        e, d, square = ball(epsilon), ball(delta), ball(sigma**2)
        for a, b in _blocks(float(epsilon), _log(delta)):
            loss = e * arb(a).sqrt()
            allowed = d * loss.expm1() / e.expm1()
            closely = b <= SINGLE or b >= near
            if not allowed >= 1 and not _follows(loss, allowed, square / b, closely):
                return False
        farthest = e * arb(b + 1).sqrt()
        return bool(d * farthest.expm1() / e.expm1() >= 1)


def _blocks(epsilon: float, log_delta: float) -> Iterator[tuple[int, int]]:
    """Squared distances, from a to b, until delta is 1."""
    farthest: float = (max(0.0, float(log_expm1(epsilon)) - log_delta) + 1) / epsilon + 1
    a = 1
    while a <= farthest**2:
        b = a + a // 256
        yield a, b
        a = b + 1


def _narrowest_per_unit(epsilon: float, log_delta: float) -> float:
    """The smallest sigma that is enough for every block of squared distances, nearly."""
    blocks = np.array(list(_blocks(epsilon, log_delta)), dtype=np.float64)
    loss, lengths = epsilon * np.sqrt(blocks[:, 0]), np.sqrt(blocks[:, 1])
    allowed = log_delta + log_expm1(loss) - log_expm1(epsilon)
    counts = allowed < 0
    sigma = _narrowest(epsilon, log_delta) if log_delta < 0 else 0.0
    singly = counts & ((blocks[:, 1] <= SINGLE) | (lengths >= sigma / NARROW))
    for e, d, r in zip(loss[singly], allowed[singly], lengths[singly], strict=True):
        if log_delta_of(float(e), sigma / float(r)) > d:
            sigma = max(sigma, float(r) * _narrowest(float(e), float(d)))
    e, d, r = (numbers[counts & ~singly] for numbers in (loss, allowed, lengths))

    def excess(log_sigma: float) -> float:
        return float((_log_closed(e, math.exp(log_sigma) / r) - d).max())

    if not len(e) or excess(math.log(sigma)) <= 0:
        return sigma
    return math.exp(_root(excess, math.log(sigma), math.log(2 * sigma)))
