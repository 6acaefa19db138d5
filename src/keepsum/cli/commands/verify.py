"""``keepsum verify``: check a published table against its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import keepsum as ks
from keepsum.cli.declaration import AllowSeeded, CertificatePath, Patient
from keepsum.cli.screen import done, progress, show_checks, show_json
from keepsum.errors import FailedCheckError
from keepsum.specs.faces import in_shell

HELP = """Verify a release: schema, signature, hash, integers, cells, and every kept total recomputed.

Examples:

    keepsum verify released.csv released.certificate.json

    keepsum verify released.csv --key key.pub.pem

    keepsum verify out/

    keepsum verify released.csv --totals published.csv

Where negative counts were removed, the table without them is worked out again from the unbiased table beside it.

If the signature is invalid, or missing where --key is given, nothing else is checked.

With --ledger, that ledger must have the release as it is, and not as withdrawn.

The file of --totals has the table's axes and count column; an empty axis means all categories. The exit status is 0 if
every check passed, 1 if one failed.
"""


def verify(
    table: Annotated[
        Path, typer.Argument(help="A released table, the folder of a release, or a certificate.", metavar="RELEASE")
    ],
    certificate: CertificatePath = None,
    totals: Annotated[
        Path | None, typer.Option("--totals", help="Published figures that the kept totals must equal.", metavar="FILE")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The publisher's public key (PEM).", metavar="KEY")] = None,
    allow_seeded: AllowSeeded = False,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger that must have it, not withdrawn.", metavar="LEDGER")
    ] = None,
    patient: Patient = False,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check a release."""
    with progress() as step:
        step("checking the release")
        verification = ks.verify(table, certificate, totals=totals, key=key, allow_seeded=allow_seeded, patient=patient)
    checks = [(c.name, c.passed, c.words if c.passed else in_shell(c.words)) for c in verification.checks]
    if ledger is not None and verification:
        checks.append(_told_by(ledger, table if certificate is None else certificate))
    passed = all(each for _, each, _ in checks)
    names = ", ".join(name for name, each, _ in checks if not each)
    failed = f"The release does not verify: {names}."
    if passed:
        done("The release verifies: every check passed.")
    else:
        done(failed, status=1)
    if json:
        results = [{"check": name, "passed": each, "words": words} for name, each, words in checks]
        show_json({"passed": passed, "checks": results})
    else:
        show_checks(checks)
    if not passed:
        raise FailedCheckError(failed)


def _told_by(ledger: Path, release: Path) -> tuple[str, bool, str]:
    """What a ledger says of a release, as a check."""
    from keepsum.ledger.importing import told_of
    from keepsum.ledger.store import Store
    from keepsum.releasing.destination import read_certificate

    passed, words = told_of(read_certificate(release), Store(ledger))
    return "ledger", passed, in_shell(words)
