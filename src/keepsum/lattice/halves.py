"""All lattice vectors of l1 length 1, 2, 3, ..., exactly and in integers, for as long as that takes about a second.

Meet in the middle: a vector of l1 length t is the difference of two halves of lengths ceil(t/2) and floor(t/2) with
equal images under the matrix. All short halves are listed by image; two halves with one image make a lattice vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from scipy import sparse

from keepsum._work import spend
from keepsum.lattice.matrix import Row

# At most this many halves are listed, and this many pairs of halves with one image compared: a second each.
HALVES_LIMIT, MATCHES_LIMIT = 200_000, 200_000
STEPS_PER_HALF = 5
TYPICAL_TOTALS = 4  # totals that contain a column, in a typical table

Half = tuple[tuple[int, int], ...]


def vectors_by_length(matrix: sparse.csr_array, limit: int) -> Iterator[tuple[list[Row], int]]:
    """For t = 1, 2, 3, ...: all lattice vectors of l1 length t up to sign, until the lists get too long."""
    columns = matrix.tocsc()
    width = matrix.shape[1]
    entries = [
        tuple(zip(columns.indices[a:b].tolist(), columns.data[a:b].tolist(), strict=True))
        for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
    ]
    shells: list[dict[Half, list[Half]]] = [{(): [()]}]
    listed = matches = 0
    weight = 1 + columns.nnz // (TYPICAL_TOTALS * width)  # columns in many totals cost more
    for t in range(1, 64):
        size = (t + 1) // 2
        if len(shells) <= size:
            listed += weight * _shell_size(width, size)
            if listed > limit:
                return
            spend(STEPS_PER_HALF * weight * _shell_size(width, size))
            shells.append(_shell(entries, size))
        long, short = shells[size], shells[t // 2]
        matches += sum(len(halves) * len(short.get(image, ())) for image, halves in long.items())
        if matches > MATCHES_LIMIT:
            return
        spend(STEPS_PER_HALF * matches)
        yield list(_match(long, short, t)), t


def _shell_size(width: int, length: int) -> int:
    """The number of integer vectors of this l1 length."""
    return sum(comb(width, k) * comb(length - 1, k - 1) * 2**k for k in range(1, length + 1))


def _shell(entries: list[tuple[tuple[int, int], ...]], length: int) -> dict[Half, list[Half]]:
    """All integer vectors of this l1 length, by image."""
    shell: dict[Half, list[Half]] = {}

    def extend(start: int, remaining: int, vector: Half, image: Row) -> None:
        if remaining == 0:
            key = tuple(sorted((i, e) for i, e in image.items() if e))
            shell.setdefault(key, []).append(vector)
            return
        for j in range(start, len(entries)):
            for value in (*range(1, remaining + 1), *range(-1, -remaining - 1, -1)):
                moved = dict(image)
                for i, e in entries[j]:
                    moved[i] = moved.get(i, 0) + value * e
                extend(j + 1, remaining - abs(value), (*vector, (j, value)), moved)

    extend(0, length, (), {})
    return shell


def _match(long: dict[Half, list[Half]], short: dict[Half, list[Half]], length: int) -> Iterator[Row]:
    """The differences of two halves with one image that have the full length, so that nothing cancels."""
    for image, halves in long.items():
        for a in halves:
            for b in short.get(image, ()):
                vector = dict(a)
                for j, value in b:
                    vector[j] = vector.get(j, 0) - value
                if sum(abs(value) for value in vector.values()) == length:
                    yield {j: value for j, value in vector.items() if value}
