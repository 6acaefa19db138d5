"""Verify a release from what was published: the table, its certificate, and nothing else."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from keepsum._arguments import check_flag, check_path
from keepsum._saying import Text, arg
from keepsum._text import printable
from keepsum._work import VERIFICATION, OutOfStepsError, limited
from keepsum.errors import InputError, KeepsumError
from keepsum.lattice.structure import decompose
from keepsum.releasing.canonical import is_signed_by, named_key, read_public_key
from keepsum.releasing.certificate import CertificateRecord, document_of
from keepsum.releasing.checks import contradictions, unknown_methods
from keepsum.releasing.codec import carried_of, kept_invariants, kept_values
from keepsum.releasing.destination import File, Files, Pathlike, UnreadableError, is_table_of_folder
from keepsum.releasing.facts import SCHEMA, NonNegativeRecord
from keepsum.releasing.postprocess import problem_of
from keepsum.releasing.release import Drawn
from keepsum.releasing.wording import RANDOMNESS, SHORTEST_CHANGE, PersonStatements
from keepsum.sources.declarations import read_released, read_totals
from keepsum.sources.uploads import Upload
from keepsum.sources.writing import table_hash
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable

SHOWN_TOTALS = 5
STOPPED = "; nothing else was checked"
NOT_CHECKED = Text(
    f"not checked: working it out again takes more steps than a check may take. {arg.patient(True):Pass} to do it, "
    "however long it takes."
)
UNSIGNED = "none: nothing shows who published it"
BOUND = "that the records of each person were so bounded is the publisher's word, and cannot be checked"
CLAIM = "that the noise is as stated, and its loss no larger, is the publisher's own claim, and was not checked"
NON_NEGATIVE = "non-negative table"
T = TypeVar("T")


@dataclass(frozen=True)
class Check:
    """One check, whether it passed, and a phrase about it."""

    name: str
    passed: bool
    words: str


@dataclass(frozen=True, repr=False)
class Verification:
    """What was checked of a release; true if everything passed."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        lines = [f"  {'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.words}" for check in self.checks]
        return "\n".join([f"Verification({'passed' if self.passed else 'failed'})", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'ok' if check.passed else '<b>FAIL</b>'}</td>"
            f'<td style="text-align:left">{html.escape(check.name)}</td>'
            f'<td style="text-align:left">{html.escape(check.words)}</td></tr>'
            for check in self.checks
        )
        return f"<table>{rows}</table>"


def verify(
    table: Pathlike,
    certificate: Pathlike | None = None,
    *,
    totals: Pathlike | None = None,
    key: Pathlike | None = None,
    allow_seeded: bool = False,
    patient: bool = False,
) -> Verification:
    """Verify a release: schema, hash, signature, integers, domain, and every kept total recomputed.

    Where negative counts were removed, the table without them is worked out again from the unbiased one beside it.

    Parameters
    ----------
    table
        The released table, the folder of a release, or a certificate with its table beside it.
    certificate
        Its certificate; by default the one beside it.
    totals
        A file of published figures that the kept totals must agree with.
    key
        The publisher's public key. Without it a signature shows only that the certificate is unchanged.
    allow_seeded
        Accept noise that came from a seed.
    patient
        Work everything out again, however long that takes. Otherwise what takes more than about a minute is not
        checked; the release then fails, and the check says so.

    Returns
    -------
    Verification
        What was checked; it is true if everything passed.

    Notes
    -----
    Nothing is computed from a certificate whose signature is invalid, or missing where a key is given. A signature
    covers the canonical form (RFC 8785) of what is in the file, so that other programs may reformat it. What follows
    from the declarations is recomputed; what was measured or simulated must be within limits that can be computed,
    margins of error within those of another simulation where that takes little time (at an error rate of about 1e-9).
    """
    return read_verified(table, certificate, totals, key, allow_seeded, patient)[0]


def read_verified(
    table: Pathlike,
    certificate: Pathlike | None = None,
    totals: Pathlike | None = None,
    key: Pathlike | None = None,
    allow_seeded: bool = False,
    patient: bool = False,
) -> tuple[Verification, Drawn | None]:
    """What was checked of a release, and the release, if everything passed."""
    check_flag(allow_seeded, f"{arg.allow_seeded}")
    check_flag(patient, f"{arg.patient}")
    figures = None if totals is None else check_path(totals, "The file of published figures")
    files = Files.read(table, certificate)
    trusted = None if key is None else read_public_key(key)
    return _verified(files, figures, trusted, allow_seeded, patient)


def verify_files(folder: Mapping[str, bytes]) -> Verification:
    """Verify a release in memory: the contents of its files, by the names that they have in the folder of a release."""
    files = {name: Upload(name, data) for name, data in folder.items()}
    table = next((file for name, file in files.items() if is_table_of_folder(Path(name))), None)
    if table is None or "certificate.json" not in files:
        raise InputError("A release must have a table and a certificate, and one of them is not there.")
    unbiased = next((file for name, file in files.items() if Path(name).stem == "table.unbiased"), None)
    own = Files(table, files["certificate.json"], files.get("invariants.json"), unbiased)
    return _verified(own, None, None, allow_seeded=False, patient=False)[0]


def _verified(
    files: Files, figures: Path | None, trusted: Ed25519PublicKey | None, allow_seeded: bool, patient: bool
) -> tuple[Verification, Drawn | None]:
    report = _Report()
    document = report.attempt("certificate", lambda: document_of(files.certificate.data))
    if report.passed:
        record = report.attempt("certificate", lambda: CertificateRecord.from_document(document))
        if record is not None:
            report.say("certificate", True, f"follows {record.schema}, released {record.released}{_definition(record)}")
            report.attempt("signature", lambda: report.say("signature", *signature_check(record, document, trusted)))
            if report.passed:  # nothing is computed from a certificate that may be somebody else's
                with limited(None if patient else VERIFICATION):
                    _check_contents(report, record, files, figures, allow_seeded)
    return Verification(tuple(report.checks)), report.release if report.passed else None


def _definition(record: CertificateRecord) -> str:
    """By which definition one person is spoken of, where it is an earlier one."""
    if record.schema == SCHEMA:
        return ""
    return f"; for one person it is checked by the definition of that schema: {SHORTEST_CHANGE}"


def _check_contents(
    report: _Report, record: CertificateRecord, files: Files, figures: Path | None, allow_seeded: bool
) -> None:
    report.say("randomness", *randomness_check(record, allow_seeded))
    sidecar = None if files.invariants is None else files.invariants.data
    kept = report.attempt("kept totals", lambda: kept_invariants(record, sidecar))
    if kept is None:
        return
    unbiased = files.unbiased if record.postprocessing else files.table
    if unbiased is None:
        named = PurePath(files.table.name)
        missing = named.with_suffix(f".unbiased{named.suffix}").name
        report.say("unbiased table", False, f"there is no {missing!r} beside the table{STOPPED}")
        return
    table = _read_table(report, record, kept, unbiased)
    if table is None:  # what a certificate of a few lines declares can take hours to work out
        return
    released = _check_table(report, record, kept, table)
    report.release = Drawn(table, record, sidecar)
    if record.postprocessing and released is not None:
        _check_nonnegative(report, record, kept, released, files.table)
    report.attempt("statement", lambda: report.say("statement", *_statement(record, kept, released)))
    if figures is not None:
        report.say("published figures", *_published(record, kept, figures))


class _Report:
    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.release: Drawn | None = None

    @property
    def passed(self) -> bool:
        """Whether no check has failed so far."""
        return all(check.passed for check in self.checks)

    def say(self, name: str, passed: bool, result: str) -> None:
        """Add a check."""
        self.checks.append(Check(name, passed, printable(result)))  # names of axes and labels may be any text

    def attempt(self, name: str, step: Callable[[], T]) -> T | None:
        """The result of a step, or a failed check if what was published does not allow it."""
        try:
            return step()
        except UnreadableError:
            raise
        except OutOfStepsError:
            self.say(name, False, NOT_CHECKED)
        except KeepsumError as error:
            self.say(name, False, str(error))
        except (ArithmeticError, ValueError, RecursionError) as error:  # impossible numbers
            self.say(name, False, f"cannot be used: {error}")
        except MemoryError:
            self.say(name, False, "cannot be used: it would not fit in memory")
        return None


def signature_check(record: CertificateRecord, document: Any, trusted: Ed25519PublicKey | None) -> tuple[bool, str]:
    """Whether a certificate is as it was signed, and by the given key if there is one."""
    signature = record.signature
    if signature is None:
        return trusted is None, UNSIGNED if trusted is None else f"none, although a key is given{STOPPED}"
    if not is_signed_by(document, signature, trusted if trusted is not None else named_key(signature)):
        return False, f"invalid: the certificate was changed, or another key signed it{STOPPED}"
    if trusted is not None:
        return True, "valid, by the given key"
    return True, f"valid, by {signature.public_key[:16]}…; give the publisher's key to check whose it is"


def randomness_check(record: CertificateRecord, allow_seeded: bool) -> tuple[bool, str]:
    """Whether noise came from the system, or a seed is allowed."""
    return allow_seeded or record.randomness == "system", RANDOMNESS[record.randomness]


def _statement(record: CertificateRecord, kept: Invariants, released: ReleasedTable | None) -> tuple[bool, str]:
    """The facts must follow from what the certificate declares, or be plausible where they were measured."""
    wrong = contradictions(record, kept, released)
    if wrong:
        return False, f"does not follow from the kept totals and the mechanism: {', '.join(wrong)}"
    unknown = unknown_methods(record)
    if unknown:
        return False, f"not checked: this version does not know the method {unknown[0]!r}. Use a later version."
    person = PersonStatements.of(record)
    claimed = f"; {CLAIM}" if person.guarantee.mechanism.kind == "own" else ""
    bounded = record.records is not None and record.records.max_rows_per_unit is not None
    return True, f"{person.headline()}; {person.guarantee.words}{claimed}{f'; {BOUND}' if bounded else ''}"


def _read_table(
    report: _Report, record: CertificateRecord, kept: Invariants, path: File, name: str = "table"
) -> ReleasedTable | None:
    domain = kept.domain
    if domain is None:
        raise AssertionError("the totals of a certificate have its domain")
    return report.attempt(
        name,
        lambda: read_released(path, domain, record.table.count, carried_of(record, domain), record.table.attributes),
    )


def _check_table(
    report: _Report, record: CertificateRecord, kept: Invariants, released: ReleasedTable
) -> ReleasedTable | None:
    """The released table, if its totals are those of the certificate."""
    report.say("table", True, f"{released.domain.size:,} cells, each once, all integers")
    same = table_hash(released) == record.table.sha256
    report.say("hash", same, "matches the certificate" if same else "does not match the certificate")
    sums = [int(total) for total in kept.totals(released)]
    stated = zip(kept.names, kept_values(record.kept), sums, strict=True)
    differing = [_difference(name, value, total) for name, value, total in stated if value != total]
    report.say(
        "kept totals", not differing, _differing(differing) if differing else f"{len(sums):,} recomputed, all equal"
    )
    return None if differing else released


def _check_nonnegative(
    report: _Report, record: CertificateRecord, kept: Invariants, released: ReleasedTable, path: File
) -> None:
    projected = _read_table(report, record, kept, path, NON_NEGATIVE)
    if projected is None:
        return
    report.release = Drawn(projected, record, None if report.release is None else report.release.invariants, released)
    record_of_it = record.postprocessing[0]
    report.attempt(
        NON_NEGATIVE, lambda: report.say(NON_NEGATIVE, *_nonnegative(record_of_it, released, projected, kept))
    )


def _nonnegative(
    record: NonNegativeRecord, released: ReleasedTable, projected: ReleasedTable, kept: Invariants
) -> tuple[bool, str]:
    problem = problem_of(record, released, projected, decompose(kept.coefficients), kept)
    nearest = "the nearest" if record.unique else "one of the nearest"
    return problem is None, problem or f"keeps every total, and is {nearest} in {record.norm}, worked out again"


def _difference(name: str, stated: int, recomputed: int) -> str:
    """A total that differs, with both figures: both are published."""
    return f"{name} ({stated:,} in the certificate, {recomputed:,} in the table)"


def _differing(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_TOTALS:,} more" if len(names) > SHOWN_TOTALS else ""
    return f"{len(names):,} differ{'s' * (len(names) == 1)}: {'; '.join(names[:SHOWN_TOTALS])}{more}"


def _published(record: CertificateRecord, kept: Invariants, totals: Pathlike) -> tuple[bool, str]:
    figures = read_totals(totals, kept, record.table.count)
    return compare(figures, dict(enumerate(kept_values(record.kept))), kept)


def compare(figures: Mapping[int, int], values: Mapping[int, int], kept: Invariants) -> tuple[bool, str]:
    """Whether published figures equal the kept totals; names are shown, never values."""
    wrong = [kept.name(row) for row, figure in figures.items() if figure != values.get(row)]
    return not wrong, _differing(
        wrong
    ) if wrong else f"{len(figures):,} of {kept.height:,} kept totals compared, all equal"
