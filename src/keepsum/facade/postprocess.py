"""What may be made of a release without any privacy loss: ``ks.postprocess``."""

from __future__ import annotations

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.facade.objects import Release
from keepsum.releasing.postprocess import checked_norm, without_negative

__all__ = ["nonnegative"]


def nonnegative(release: Release, norm: str = "l1") -> Release:
    """The release with the nearest table without negative counts that keeps every total.

    It reads the released counts and the kept totals alone, so it costs no privacy, and it can be done at any time. The
    released table stays in ``unbiased`` and is saved beside the other: noise, margins of error and intervals are those
    of the unbiased table. In ``table`` counts at or near 0 are biased upwards, the others downwards.

    Parameters
    ----------
    release
        A release, drawn or read with :func:`keepsum.read_release`.
    norm
        ``"l1"`` for the smallest sum of changes, ``"l2"`` for the smallest sum of their squares; of several tables that
        are nearest in l1, the one that is nearest in l2 is taken. Overlapping totals that are not a two-way table
        require l1, and there it is one of the nearest.

    Returns
    -------
    Release
        With a certificate that says what changed, and is not signed until it is saved with a key.

    Raises
    ------
    PlanError
        If the norm is l2 and the totals are not sums, hierarchies or two-way tables, or a solver gives up.

    Examples
    --------
    >>> import keepsum as ks
    >>> table = ks.Table.from_array([0, 1, 0, 40, 2], axes={"county": list("ABCDE")})
    >>> release = ks.release(table, keep=[[]], mechanism=ks.Laplace(epsilon=1), rng=ks.rng(seed="sparse"))
    >>> without = ks.postprocess.nonnegative(release)
    >>> release.table.counts.tolist(), without.table.counts.tolist()
    ([3, -1, 1, 40, 0], [3, 0, 1, 39, 0])
    >>> without.unbiased is release.table
    True
    """
    if not isinstance(release, Release):
        raise InputError(f"A release must be a keepsum Release, got {type_of(release)}. Use read_release for files.")
    plan = release.plan
    drawn = without_negative(release._record, plan.structure, plan.invariants, checked_norm(norm))
    return Release(drawn, plan)


def __dir__() -> list[str]:
    return __all__
