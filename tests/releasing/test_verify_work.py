"""A forged release cannot keep a verifier busy: work is counted, and what is not worked out is said to be unchecked."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum._work import is_limited, limited, spend
from keepsum.errors import TooMuchWorkError
from keepsum.lattice.structure import decompose
from keepsum.projection import programs
from keepsum.projection.nearest import nearest
from keepsum.releasing import verify
from keepsum.releasing.codec import invariants_file, kept_record
from keepsum.releasing.postprocess import nonnegative_record
from keepsum.sources.writing import table_bytes, table_hash

SAMPLE = Path(__file__).parents[1] / "certificates" / "nonnegative_overlapping"


def words(folder, **options):
    checks = ks.verify(folder, allow_seeded=True, **options).checks
    return {check.name: check.words for check in checks if not check.passed}


def forged(folder, matrix, counts, projected):
    """A release of these counts that states other kept totals than it was drawn with, and a projection."""
    table = ks.Table.from_array(np.full(len(counts), 5), axes={"cell": [f"c{k}" for k in range(len(counts))]})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
    kept = ks.Invariants.matrix(matrix).over(table.domain)
    file = invariants_file(kept)
    unbiased, published = (replace(release.table, counts=numbers) for numbers in (counts, projected))
    certificate = msgspec.structs.replace(
        release.certificate._record,
        kept=kept_record(kept, file, (matrix @ counts).tolist()),
        table=msgspec.structs.replace(release.certificate.table, sha256=table_hash(unbiased)),
        postprocessing=[nonnegative_record(unbiased, published, "l1", unique=False)],
    )
    folder.mkdir()
    (folder / "certificate.json").write_bytes(certificate.to_json())
    (folder / "invariants.json").write_bytes(file)
    (folder / "table.csv").write_bytes(table_bytes(published, "csv"))
    (folder / "table.unbiased.csv").write_bytes(table_bytes(unbiased, "csv"))
    return folder


@pytest.mark.audit
def test_an_integer_program_that_would_take_very_long(tmp_path):
    random = np.random.default_rng(0)
    matrix = (random.random((20, 60)) < 0.4) * random.integers(1, 1000, (20, 60))
    projected = random.integers(0, 3, 60)
    basis = np.array(ks.Lattice(matrix).basis, dtype=np.int64).T
    counts = projected + random.integers(-1, 2, len(basis)) @ basis
    assert counts.min() < 0
    failed = words(forged(tmp_path / "out", matrix, counts, projected))
    assert failed["non-negative table"] == verify.NOT_CHECKED
    assert "does not follow" in failed["statement"]


def test_totals_that_would_take_very_long(tmp_path):
    """Elimination is counted operation by operation."""
    matrix = (np.random.default_rng(0).random((200, 700)) < 0.1).astype(np.int64)
    counts = np.ones(700, dtype=np.int64)
    with pytest.raises(TooMuchWorkError), limited(10**6):
        decompose(ks.Invariants.matrix(matrix).coefficients)
    assert words(forged(tmp_path / "out", matrix[:40], counts, counts)).keys() == {"statement"}


@pytest.mark.parametrize("steps", [0, 10, 20])
def test_few_steps_check_little_and_patience_everything(monkeypatch, steps):
    assert words(SAMPLE) == {}
    monkeypatch.setattr(verify, "VERIFICATION", steps)
    failed = words(SAMPLE)
    assert failed["statement"] == verify.NOT_CHECKED
    assert words(SAMPLE, patient=True) == {}
    with pytest.raises(ks.InputError, match="not checked: working it out again takes more steps"):
        ks.read_release(SAMPLE, allow_seeded=True)
    assert ks.read_release(SAMPLE, allow_seeded=True, patient=True).unbiased is not None


@pytest.mark.parametrize("limit", ["CHECK_ENTRIES", "CHECK_SECONDS"])
def test_a_solver_that_reaches_its_limit(monkeypatch, limit):
    monkeypatch.setattr(programs, limit, 0)
    assert words(SAMPLE) == {"non-negative table": verify.NOT_CHECKED}
    assert words(SAMPLE, patient=True) == {}


def test_large_tables_are_counted_too():
    kept = ks.Invariants.margins(ks.Domain({"a": [*map(str, range(30))], "b": [*map(str, range(30))]}), [["a"], ["b"]])
    counts = np.array([[-1, 3, 1][(row + column) % 3] for row in range(30) for column in range(30)])
    structure = decompose(kept.coefficients)
    assert nearest(structure, counts).min() == 0
    with pytest.raises(TooMuchWorkError), limited(500):
        nearest(structure, counts)


def test_nothing_is_counted_without_a_limit():
    spend(10.0**30)
    with limited(5):
        assert is_limited()
        spend(5)
        with limited(None):
            spend(10.0**30)
        with pytest.raises(TooMuchWorkError):
            spend(1)
    assert not is_limited()
