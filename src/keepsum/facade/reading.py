"""``ks.read_release``: a saved release, from its files alone."""

from __future__ import annotations

from os import PathLike

from keepsum.errors import InputError
from keepsum.facade.objects import Plan, Release
from keepsum.releasing.codec import plan_of


def read_release(
    path: str | PathLike[str],
    certificate: str | PathLike[str] | None = None,
    *,
    key: str | PathLike[str] | None = None,
    allow_seeded: bool = False,
    patient: bool = False,
) -> Release:
    """Read a release that was saved, after it has been verified.

    Parameters
    ----------
    path
        The released table, or the folder of a release.
    certificate
        Its certificate; by default the one beside it.
    key
        The publisher's public key. Without it a signature shows only that the certificate is unchanged.
    allow_seeded
        Accept noise that came from a seed.
    patient
        Work everything out again, however long that takes; see :func:`verify`.

    Raises
    ------
    InputError
        If a check of :func:`verify` fails.

    Examples
    --------
    >>> import keepsum as ks, tempfile
    >>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ks.release(table, keep=["county"], mechanism=ks.Laplace(1)).save(f"{folder}/out.csv")
    ...     release = ks.read_release(path)
    >>> release.marginal(["county"]).table.counts.tolist()
    [16, 30]
    """
    from keepsum.releasing.verify import read_verified  # signatures, which plans do not need

    verification, drawn = read_verified(path, certificate, key=key, allow_seeded=allow_seeded, patient=patient)
    if drawn is None:
        failed = ", ".join(f"{check.name} ({check.words})" for check in verification.checks if not check.passed)
        raise InputError(f"A release must verify before it is used, but this one fails: {failed}.")
    return Release(drawn, Plan(plan_of(drawn.certificate, drawn.invariants)))
