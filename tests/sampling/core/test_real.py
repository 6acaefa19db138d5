"""The kernels' own functions of real numbers, against ball arithmetic and at the edges of what floats can say."""

import math

import numpy as np
import pytest
from flint import arb

from keepsum._arrays import Floats
from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import OutFloats, OutInts
from sampling.probes import Probe

REAL = ("probe_real",)
exponentials = Probe(REAL, "exponentials", Floats, OutFloats)
logarithms = Probe(REAL, "logarithms", Floats, OutFloats)
logarithms_above_one = Probe(REAL, "logarithms_above_one", Floats, OutFloats)
cosines_of_turns = Probe(REAL, "cosines_of_turns", Floats, OutFloats)
roots = Probe(REAL, "roots", Floats, OutFloats)
floors = Probe(REAL, "floors", Floats, OutInts)
RANDOM = np.random.default_rng(1)
MANY, UNIT = 20_000, 2.0**-52


def values(kernel, numbers):
    numbers = np.array(numbers, dtype=np.float64)
    found = np.empty(len(numbers))
    kernel(numbers, found)
    return found


def largest_error(kernel, function, numbers, relative):
    """Of the values, as shares of the true ones or as they are."""
    worst = 0.0
    with precision(160):
        for number, value in zip(numbers.tolist(), values(kernel, numbers).tolist(), strict=True):
            true = function(arb(number))
            error = abs(arb(value) - true) / (abs(true) if relative else 1)
            worst = max(worst, float(error.upper()))
    return worst


def exp_ends():
    """Numbers around odd multiples of log(2) / 64, where the nearest multiple of log(2) / 32 changes."""
    near = (np.arange(-22_000, 22_000, 7) + 0.5) * math.log(2) / 32
    return np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf)])


@pytest.mark.parametrize(
    "numbers",
    [RANDOM.uniform(-708, 709, MANY), RANDOM.uniform(-1, 1, MANY), 2.0 ** RANDOM.uniform(-60, -5, MANY), exp_ends()],
    ids=["all", "around 0", "tiny", "between parts"],
)
def test_exponentials_err_by_a_little_more_than_a_unit(numbers):
    assert largest_error(exponentials, lambda x: x.exp(), numbers, relative=True) < 1.1 * UNIT


def test_exponentials_below_the_least_ordinary_float_err_by_one_unit_there():
    numbers = RANDOM.uniform(-746, -708, 2000)
    assert largest_error(exponentials, lambda x: x.exp(), numbers, relative=False) <= 2.0**-1074


def test_exponentials_at_the_ends():
    found = values(
        exponentials, [0.0, -0.0, -745.2, -1e300, -math.inf, 709.7, 709.8, 1e300, math.inf, math.nan, -5e-324]
    )
    assert found[[0, 1, 2, 3, 4, 6, 7, 8, 10]].tolist() == [1, 1, 0, 0, 0, math.inf, math.inf, math.inf, 1]
    assert found[5] == pytest.approx(math.exp(709.7))
    assert math.isnan(found[9])


@pytest.mark.parametrize(
    "numbers",
    [
        np.exp(RANDOM.uniform(-700, 700, MANY)),
        RANDOM.uniform(0.5, 2, MANY),
        1 + RANDOM.choice([-1, 1], MANY) * 2.0 ** RANDOM.uniform(-52, -2, MANY),
        np.nextafter(np.sqrt(0.5) * 2.0 ** np.arange(-20, 20), np.repeat([0, np.inf], 20)),
        5e-324 * RANDOM.integers(1, 2**52, 2000).astype(np.float64),
    ],
    ids=["all", "around 1", "near 1", "between powers", "below ordinary floats"],
)
def test_logarithms_err_by_four_units(numbers):
    numbers = numbers[numbers != 1.0]
    assert largest_error(logarithms, lambda x: x.log(), numbers, relative=True) < 4 * UNIT


def test_logarithms_at_the_ends():
    found = values(logarithms, [1.0, 0.0, -0.0, math.inf, -1.0, math.nan])
    assert found[:4].tolist() == [0, -math.inf, -math.inf, math.inf]
    assert np.isnan(found[4:]).all()


@pytest.mark.parametrize(
    "numbers",
    [
        RANDOM.uniform(-0.26, 0.26, MANY),
        RANDOM.choice([-1, 1], MANY) * 2.0 ** RANDOM.uniform(-1000, -2, MANY),
        np.exp(RANDOM.uniform(-1.5, 300, MANY)),
        2.0 ** RANDOM.uniform(-50, -1, MANY) - 1,
    ],
    ids=["small", "tiny", "large", "near -1"],
)
def test_logarithms_above_one_err_by_four_units(numbers):
    assert largest_error(logarithms_above_one, lambda x: x.log1p(), numbers, relative=True) < 4 * UNIT


def test_logarithms_above_one_at_the_ends():
    found = values(logarithms_above_one, [0.0, -1.0, math.inf, -2.0, math.nan])
    assert found[:3].tolist() == [0, -math.inf, math.inf]
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize(
    "numbers", [RANDOM.uniform(-0.5, 0.5, MANY), RANDOM.uniform(-40, 40, MANY), np.arange(-40, 41) / 8]
)
def test_cosines_err_by_less_than_they_say(numbers):
    assert largest_error(cosines_of_turns, lambda x: (2 * x).cos_pi(), numbers, relative=False) < 2.0**-48


def test_roots_are_those_that_ieee_754_defines():
    numbers = np.exp(RANDOM.uniform(-700, 700, MANY))
    assert values(roots, numbers).tolist() == [math.sqrt(number) for number in numbers.tolist()]


def test_floors_of_both_signs_up_to_the_largest():
    numbers = np.array(
        [0.0, -0.0, 0.5, -0.5, -1.0, 1.0, -5e-324, 5e-324, 2.0**52 + 1, -(2.0**52) - 1, 2.0**62, -(2.0**62)]
    )
    numbers = np.concatenate(
        [numbers, RANDOM.uniform(-1e6, 1e6, 1000), [np.nextafter(2.0**63, 0), -np.nextafter(2.0**63, 0)]]
    )
    found = np.empty(len(numbers), dtype=np.int64)
    floors(numbers, found)
    assert found.tolist() == [math.floor(number) for number in numbers.tolist()]
