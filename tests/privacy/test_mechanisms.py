import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.privacy.distance import Distance
from keepsum.privacy.numbers import exact, shown
from keepsum.privacy.profile import holds


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.float64(0.1), Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (np.int64(2), Fraction(2)),
    ],
)
def test_parameters_are_exact(value, expected):
    assert ks.Laplace.per_unit(epsilon=value).epsilon == expected


@pytest.mark.parametrize(
    "value", [0, -1, math.nan, math.inf, "x", "", "1/0", None, True, [1], Decimal("NaN"), Decimal("Infinity"), 1j]
)
def test_bad_epsilon(value):
    with pytest.raises(ks.InputError, match="Epsilon must be a positive number"):
        ks.Laplace.per_unit(epsilon=value)


@pytest.mark.parametrize("value", ["1e-400", "1e13", 5e-324])
def test_extremes_are_refused(value):
    with pytest.raises(ks.InputError, match="from 1e-12 to 1e12"):
        ks.Laplace.per_unit(epsilon=value)
    with pytest.raises(ks.InputError, match="from 1e-12 to 1e12"):
        ks.Gaussian.per_unit(epsilon=value, delta="1e-6")


@pytest.mark.parametrize("value", [Decimal("1e9999999"), Decimal("1e-9999999"), "1e9999999"])
def test_numbers_of_a_million_digits_are_refused(value):
    with pytest.raises(ks.InputError, match="Epsilon must be a positive number"):
        ks.Laplace.per_unit(epsilon=value)


def test_a_large_epsilon_per_unit_has_a_delta():
    """Beyond what floats can exponentiate: exact noise adds nothing, and delta at distance 1 is the mechanism's."""
    keep = ks.Invariants.subsets(4, [[0, 1]])
    for mechanism in (ks.Laplace.per_unit(800, "l2"), ks.Gaussian.per_unit(800, "1e-6")):
        guarantee = ks.plan(keep=keep, mechanism=mechanism).guarantee
        assert guarantee.sampling_delta(guarantee.person) == 0
    loss = ks.Gaussian.per_unit(1200, "1e-6").resolve().loss(Distance("l2", 1))
    assert (loss.epsilon, loss.delta) == (1200, Fraction(1, 10**6))


def test_bad_norm():
    with pytest.raises(ks.InputError, match="'l1' or 'l2', got 'l3'"):
        ks.Laplace.per_unit(epsilon=1, norm="l3")


@pytest.mark.parametrize(
    "arguments",
    [{}, {"epsilon": 1}, {"delta": 0.1}, {"rho": 1, "sigma": 1}, {"epsilon": 1, "delta": 0.1, "rho": 1}],
)
def test_gaussian_takes_one_set_of_parameters(arguments):
    with pytest.raises(ks.InputError, match="epsilon and delta, or rho, or sigma"):
        ks.Gaussian(**arguments)
    if "sigma" not in arguments:
        with pytest.raises(ks.InputError, match="epsilon and delta, or rho, or sigma"):
            ks.Gaussian.per_unit(**arguments)


def test_gaussian_delta_is_a_probability():
    with pytest.raises(ks.InputError, match="Delta must be below 1"):
        ks.Gaussian.per_unit(epsilon=1, delta=1)
    with pytest.raises(ks.InputError, match="Delta must be a positive number"):
        ks.Gaussian.per_unit(epsilon=1, delta=0)


def test_specs_are_frozen_and_comparable():
    assert ks.Laplace.per_unit(epsilon=0.25) == ks.Laplace.per_unit(epsilon="1/4")
    assert ks.Laplace.per_unit(epsilon=0.25) != ks.Laplace(epsilon=0.25)
    assert len({ks.Gaussian.per_unit(rho=1), ks.Gaussian.per_unit(rho="1")}) == 1
    with pytest.raises(AttributeError):
        ks.Laplace.per_unit(epsilon=1).epsilon = 2
    with pytest.raises(AttributeError):
        ks.Gaussian(sigma=1).sigma = 2


@pytest.mark.parametrize("length", [2, 3, 4, 6, 8, 9, 50])
@pytest.mark.parametrize("epsilon", ["1", "0.25", "1/3", "1e-9", "40"])
def test_per_person_is_rounded_to_the_safe_side(length, epsilon):
    """The loss per unit times the distance is at most what was asked, and hardly less."""
    asked = ks.Laplace(epsilon=epsilon, norm="l2")
    unit = asked.resolve(Distance("l2", length)).epsilon
    assert unit**2 * length <= asked.epsilon**2
    assert unit**2 * length >= asked.epsilon**2 * (1 - Fraction(1, 10**11))
    assert ks.Laplace(epsilon=epsilon).resolve(Distance("l1", length)).epsilon * length == asked.epsilon


@pytest.mark.parametrize("length", [2, 4, 8, 50])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("1/3", "0.01"), ("20", "1e-30")])
def test_gaussian_per_person_is_rounded_to_the_safe_side(length, epsilon, delta):
    """The noise has the requested epsilon and delta at the distance of one person, and less by 1% does not."""
    asked = ks.Gaussian(epsilon, delta)
    assert asked.sigma is None
    made = asked.resolve(Distance("l2", length))
    loss = made.loss(Distance("l2", length))
    assert (loss.epsilon, loss.delta) == (asked.epsilon, asked.delta)
    assert holds(asked.epsilon, asked.delta, length / (2 * made.sigma**2))
    assert not holds(asked.epsilon, asked.delta, length / (2 * (made.sigma * Fraction(98, 100)) ** 2))
    assert made.request().resolve() == made
    assert made.unit_loss.rho == 1 / (2 * made.sigma**2)


@pytest.mark.parametrize("length", [2, 4, 8, 50])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("1/3", "0.01"), ("20", "1e-30")])
def test_the_earlier_rules_are_per_unit_and_rounded_to_the_safe_side(length, epsilon, delta):
    """Epsilon and delta at the distance of one person are at most what was asked, and hardly less."""
    asked = ks.Gaussian(epsilon, delta, calibration="zcdp")
    unit = asked.resolve(Distance("l2", length))
    with localcontext(prec=80):
        root = Decimal(length).sqrt()
        loss = Decimal(unit.epsilon.numerator) / unit.epsilon.denominator
        growth = ((loss * root).exp() - 1) / (loss.exp() - 1)
        spent = growth * unit.delta.numerator / unit.delta.denominator
        wanted = Decimal(asked.delta.numerator) / asked.delta.denominator
        assert wanted * (1 - Decimal("1e-10")) <= spent <= wanted
    assert unit.epsilon**2 * length <= asked.epsilon**2
    assert unit.sigma == ks.Gaussian.per_unit(unit.epsilon, unit.delta, calibration="zcdp").sigma


def test_gaussian_per_person_in_rho():
    asked = ks.Gaussian(rho="1/2", attributes=["sex"], to="some other value")
    assert repr(asked) == "Gaussian(rho=0.5, attributes=['sex'], to='some other value')"
    assert asked.resolve(Distance("l2", 8)) == ks.Gaussian.per_unit(rho="1/16").resolve()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"to": "nothing"}, "'any value' or 'some other value', got 'nothing'"),
        ({"to": 5}, "got a int"),
        ({"attributes": 7}, "must be a list of axes, got a int"),
        ({"attributes": []}, "one or more"),
        ({"attributes": ["a", "a"]}, "different axes"),
        ({"attributes": [1, 2]}, "different axes"),
    ],
)
def test_wrong_neighbours(wrong, words):
    with pytest.raises(ks.InputError, match=words):
        ks.Laplace(1, **wrong)
    with pytest.raises(ks.InputError, match=words):
        ks.Gaussian(rho=1, **wrong)


def test_stated_losses_are_rounded_up():
    root2 = Distance("l2", 2)
    assert str(ks.Laplace.per_unit(epsilon=1, norm="l2").resolve().loss(root2)) == "epsilon 1.415"
    assert str(ks.Laplace.per_unit(epsilon="0.25").resolve().loss(Distance("l1", 4))) == "epsilon 1"
    stated = str(ks.Gaussian.per_unit(epsilon="0.5", delta="1e-6").resolve().loss(Distance("l2", 8)))
    loss, delta = (float(part.split()[1]) for part in stated.split(", "))
    true = math.expm1(0.5 * math.sqrt(8)) / math.expm1(0.5) * 1e-6
    assert 0.5 * math.sqrt(8) <= loss <= 0.5 * math.sqrt(8) * 1.001
    assert true <= delta <= true * 1.001
    assert str(ks.Gaussian.per_unit(epsilon=500, delta="1e-6").resolve().loss(Distance("l2", 8))).endswith("delta 1")


def test_zcdp_grows_with_the_square():
    assert str(ks.Gaussian.per_unit(rho="0.1").resolve().loss(Distance("l2", 2))) == "rho 0.2 (zCDP)"
    assert str(ks.Gaussian(sigma=2).resolve().loss(Distance("l2", 4))) == "rho 0.5 (zCDP)"
    assert "rho 0.125 (zCDP)" in ks.Gaussian(sigma=2).resolve().statement()


def test_distances():
    assert Distance("l1", 4).value == 4
    assert Distance("l2", 4).value == 2
    assert Distance("l2", 8).value == math.sqrt(8)
    assert str(Distance("l2", 8)) == "√8"
    assert str(Distance("l1", 6, exact=False)) == "at most 6"


@pytest.mark.parametrize("number", ["0.25", "1/3", "1e-9", "123456789012345678901234567890", "0.707106781186", "3"])
def test_shown_reads_back(number):
    assert exact(shown(Fraction(number)), "Number") == Fraction(number)
