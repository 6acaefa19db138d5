"""``ks.read_release``: a saved release, from its files alone."""

from __future__ import annotations

from os import PathLike

from keepsum.errors import DataError
from keepsum.facade.objects import Certificate, Release
from keepsum.releasing.saved import read_saved


def read_release(path: str | PathLike[str], certificate: str | PathLike[str] | None = None) -> Release:
    """Read a saved release: the table, its certificate, and the plan that it was made with.

    Parameters
    ----------
    path
        The released table, or the folder of a release.
    certificate
        Its certificate; by default the one beside it.

    Raises
    ------
    DataError
        If the table is not the one that the certificate describes: its hash or a kept total differs. Signature and
        statement are not checked; ``ks.verify`` does that.

    Examples
    --------
    >>> import keepsum as ks, tempfile
    >>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ks.release(table, keep=["county"], mechanism=ks.Laplace(epsilon=1)).save(f"{folder}/out.csv")
    ...     release = ks.read_release(path)
    >>> release.marginal(["county"]).table.counts.tolist()
    [16, 30]
    """
    saved = read_saved(path, certificate)
    if saved.problems:
        raise DataError(
            f"The released table must be the one of its certificate, but {' and '.join(saved.problems)}. "
            f"Get both files again from the publisher."
        )
    record = Certificate.of(saved.certificate)
    return Release(saved.table, record, record.plan(saved.invariants), saved.invariants)
