"""Factors that proposals are drawn by, and what is proved from them: against whole numbers, and with wrong factors."""

import math

import numpy as np
import pytest
from flint import fmpz_mat

from keepsum.sampling.general import scales
from keepsum.sampling.general.scales import cholesky, inverse_factor, invert_factor, verified_form
from sampling.proposals import invert

UNIT = 2.0**-53
SIZES = [1, 2, 3, 4, 5, 7, 8, 11, 16, 25, 40, 50, 101]
SHIFT = 1 << 300  # floats of these tests are whole numbers after that shift


def form_of(size, seed=1):
    """B'B for whole numbers, and B."""
    basis = np.random.default_rng(seed).integers(-2, 3, size=(size + 20, size)).astype(np.float64)
    return basis.T @ basis, basis


def band_of(size, reach=6):
    """A form whose rows start at different places, none more than some columns before the diagonal."""
    rng = np.random.default_rng(size)
    profile = np.maximum(0, np.arange(size) - rng.integers(0, reach, size))
    inside = np.arange(size)[None, :] >= profile[:, None]
    lower = np.tril(rng.integers(-3, 4, size=(size, size))) * inside
    np.fill_diagonal(lower, rng.integers(8, 12, size))
    return (lower @ lower.T).astype(np.float64), profile.astype(np.int64)


def factored(form, profile=None):
    profile = np.zeros(len(form), dtype=np.int64) if profile is None else profile
    factor, roots = np.tril(form), np.zeros(len(form))
    cholesky(factor, profile, roots)
    return factor, roots


def whole(matrix):
    """Floats as whole numbers, exactly."""
    scaled = [[int(entry * 2.0**250) << 50 for entry in row] for row in matrix.tolist()]
    return fmpz_mat(scaled)


def residual_is_small(form, factor):
    """Whether A - L L' is as small as any order of the sums makes it, entry by entry: Higham, theorem 10.3."""
    size = len(form)
    exact = whole(form) * fmpz_mat([[SHIFT if i == j else 0 for j in range(size)] for i in range(size)])
    rest = exact - whole(factor) * whole(factor).transpose()
    allowed = (size + 8) * 2 * UNIT * np.abs(factor) @ np.abs(factor).T
    return all(abs(int(rest[i, j])) <= int(allowed[i, j] * 2.0**250) << 350 for i in range(size) for j in range(i + 1))


@pytest.mark.parametrize("size", SIZES)
def test_factors_have_the_smallest_residual_that_floats_promise(size):
    form, _ = form_of(size)
    factor, roots = factored(form)
    assert residual_is_small(form, factor)
    assert roots == pytest.approx(1 / np.diag(factor), rel=4 * UNIT)
    assert not np.triu(factor, 1).any()


@pytest.mark.parametrize("size", [1, 4, 6, 13, 40, 90])
def test_factors_of_rows_that_start_late(size):
    form, profile = band_of(size)
    factor, _ = factored(form, profile)
    assert residual_is_small(form, factor)
    before = np.arange(size)[None, :] < profile[:, None]
    assert not factor[before].any()
    again = np.tril(form)
    roots = np.zeros(size)
    for _ in range(2):  # what is left in the room by one form does not enter the next
        room = np.where(np.tril(np.ones((size, size))) > 0, np.tril(form), again)
        cholesky(room, profile, roots)
        assert (np.tril(room) == np.tril(factor)).all()
        again = room


@pytest.mark.parametrize("size", [3, 8, 50])
@pytest.mark.parametrize("off", [1e-12, 1e-9, 1e-3])
def test_a_wrong_factor_is_seen(size, off):
    """One entry off by little more than floats err by: the test above must tell."""
    form, _ = form_of(size)
    factor, _ = factored(form)
    factor[size - 1, size // 2] += off * abs(factor).max()
    assert not residual_is_small(form, factor)


@pytest.mark.parametrize("size", SIZES)
def test_inverses(size):
    form, _ = form_of(size)
    factor, roots = factored(form)
    room, out = np.full((size, size), 7.0), np.full((size, size), 9.0)
    invert(factor, roots, room, out)
    assert (out == out.T).all()
    assert np.abs(out @ form - np.eye(size)).max() < 1e-9
    columns = np.full((size, size), 5.0)
    invert_factor(factor, roots, columns)
    assert not np.tril(columns, -1).any()
    assert np.abs(columns.T @ factor - np.eye(size)).max() < 1e-11


def log_volume_of(form):
    """-1/2 ln det of a form of whole numbers, of which the determinant is a whole number."""
    determinant = int(fmpz_mat([[int(entry) for entry in row] for row in form.tolist()]).det())
    bits = max(0, determinant.bit_length() - 900)
    return -(math.log(determinant >> bits) + bits * math.log(2)) / 2


@pytest.mark.parametrize("size", [5, 40, 50, 100, 200])
def test_what_is_proved_of_a_form_holds(size):
    """The determinant exactly, and b' G^-1 b by its residual, in small dimensions and in large ones."""
    form, basis = form_of(size)
    found = verified_form(basis, np.ones(len(basis)))
    low, high = found.log_volume
    assert low <= log_volume_of(form) <= high
    assert high - low < 1e-4
    low, high = found.quadratic(basis[:5])
    exact = np.einsum("ij,ij->i", basis[:5], np.linalg.solve(form, basis[:5].T).T)
    assert (low <= exact * (1 + 1e-9)).all()
    assert (exact <= high * (1 + 1e-9)).all()


WRONG = {
    "one entry is off": lambda inverse: inverse + 1e-6 * np.eye(len(inverse))[::-1] * (np.tri(len(inverse)) > 0),
    "scaled": lambda inverse: inverse * (1 + 1e-7),
    "one row is off": lambda inverse: inverse * (1 + 1e-4 * (np.arange(len(inverse)) == 2))[:, None],
    "another form's": lambda inverse: inverse_factor(form_of(len(inverse), seed=2)[0]),
    "the identity": lambda inverse: np.eye(len(inverse)),
    "not a number": lambda inverse: inverse * np.where(np.arange(len(inverse)) == 1, math.nan, 1.0)[:, None],
}


@pytest.mark.parametrize("size", [5, 50, 100])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_inverse_factor_proves_nothing_false(size, name, monkeypatch):
    """The residual exposes it: there is no bound, or one so wide that it still holds."""
    form, basis = form_of(size)
    right = verified_form(basis, np.ones(len(basis)))
    monkeypatch.setattr(scales, "inverse_factor", lambda form: WRONG[name](inverse_factor(form)))
    found = verified_form(basis, np.ones(len(basis)))
    if found is not None:
        low, high = found.log_volume
        assert low <= log_volume_of(form) <= high
        assert found.doubt > 10 * right.doubt
    else:
        assert name not in ("scaled", "one row is off")


def test_forms_that_are_not_positive_definite_have_no_factor():
    assert inverse_factor(np.array([[1.0, 1.0], [1.0, 1.0]])) is None
    assert inverse_factor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert inverse_factor(np.array([[math.nan, 0.0], [0.0, 1.0]])) is None
