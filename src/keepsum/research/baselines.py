"""What others do instead: noise first, totals mended afterwards. For comparison; a release never uses it.

Both mechanisms here add double geometric noise, which is differentially private in the usual sense, and then move the
noisy counts to where the kept totals hold. Their law has no closed form, and the second one depends on the data.
"""

from __future__ import annotations

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.privacy.numbers import Number
from keepsum.research.mending import double_geometric, draws_of, forced_regions, structure_of, sum_zero
from keepsum.research.topdown import topdown_like
from keepsum.sampling.core.rng import Rng, Stream, checked_rng
from keepsum.tables.invariants import Invariants

__all__ = ["projected_laplace", "topdown_like"]


def __dir__() -> list[str]:
    return __all__


def projected_laplace(
    invariants: Invariants, epsilon: Number, size: int | None = None, *, rng: Rng | None = None
) -> IntArray:
    """Double geometric noise, projected in l2 onto the kept totals, then moved to the nearest whole numbers in l1.

    The comparison of the paper's appendix ("projected discrete Laplace mechanism"), without non-negativity.

    Parameters
    ----------
    invariants
        The totals to keep.
    epsilon
        Of the double geometric noise, P(z) proportional to exp(-epsilon |z|) in each cell.
    size
        How many draws; without it one, as a flat vector.
    rng
        The source of randomness; ``ks.rng(seed=...)`` repeats.

    Returns
    -------
    numpy.ndarray
        int64 noise, one row a draw, one column a cell; every total of it is 0.

    Guarantee
    ---------
    The double geometric noise is drawn exactly; what projection and rounding make of it has no closed form. The mean is
    0: ties are broken evenly. ``tests/research/test_baselines.py``.

    Notes
    -----
    After the projection onto one sum all cells have the *same* fractional part, so the nearest whole numbers are never
    unique: which cells are rounded down is a tie between all of them. A solver breaks it by position, which shifts the
    first cells; here it is broken at random. Linear for hierarchies of totals; where totals overlap an integer program
    is solved for each draw (some milliseconds for a dozen cells).

    Examples
    --------
    >>> import keepsum as ks
    >>> keep = ks.Invariants.subsets(5, [range(5)])
    >>> noise = ks.baselines.projected_laplace(keep, 0.25, 1000, rng=ks.rng(seed=1))
    >>> noise.shape, bool((noise.sum(axis=1) == 0).all())
    ((1000, 5), True)
    """
    source = checked_rng(rng)
    structure = structure_of(invariants)
    noise = double_geometric(invariants.size, epsilon, draws_of(size), source)
    stream = source.stream()
    if structure.blocks:
        noise = _nearest_on_lattice(invariants, noise, stream)
    else:
        for cells in forced_regions(structure):
            noise[:, cells] = sum_zero(noise[:, cells], stream)
    return noise[0] if size is None else noise


def _nearest_on_lattice(invariants: Invariants, noise: IntArray, stream: Stream) -> IntArray:
    """Project in l2, then the nearest vector of the lattice in l1, draw by draw.

    The columns of the basis are put in a random order and all signs flipped at random, so that the solver's ties have
    no side.
    """
    basis = np.asarray(Lattice(invariants.coefficients).basis, dtype=np.float64)
    inverse: Floats = np.asarray(np.linalg.pinv(basis), dtype=np.float64)
    out = np.empty_like(noise)
    for i, coordinates in enumerate(noise @ inverse.T):  # B times its pseudo-inverse is the projection
        order = np.argsort(stream.take(basis.shape[1]))
        sign = 1 if stream.bits(1) else -1
        found = _nearest_coordinates(basis[:, order], inverse[order], sign * coordinates[order])
        out[i] = sign * np.rint(basis[:, order] @ found).astype(np.int64)
    return out


def _nearest_coordinates(basis: Floats, inverse: Floats, centre: Floats) -> Floats:
    """Whole c with the least |B (c - centre)|_1, by an integer program.

    Rounding the centre gives a vector at some distance; the nearest one is no farther, which bounds every coordinate.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells, width = basis.shape
    point, eye = basis @ centre, np.eye(cells)
    farthest = np.abs(basis @ np.rint(centre) - point).sum()
    reach = np.abs(inverse).max(axis=1) * farthest + 1
    found = milp(
        np.repeat([0.0, 1.0], [width, cells]),
        constraints=LinearConstraint(np.block([[basis, eye], [-basis, eye]]), np.concatenate([point, -point]), np.inf),
        integrality=np.repeat([1, 0], [width, cells]),
        bounds=Bounds(
            np.concatenate([np.floor(centre - reach), np.zeros(cells)]),
            np.concatenate([np.ceil(centre + reach), np.full(cells, np.inf)]),
        ),
    )
    if found.x is None:
        raise InputError(f"The solver found no nearest whole numbers: {found.message}")
    return np.asarray(np.rint(found.x[:width]))
