"""``keepsum verify``: check a published table against its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import keepsum as ks
from keepsum.cli.screen import FailedError, done, progress, show_checks, show_json

HELP = """Verify a release: schema, signature, hash, integers, cells, and every kept total recomputed.

Examples:

    keepsum verify released.csv released.certificate.json

    keepsum verify out/ --key key.pub.pem

    keepsum verify released.csv --totals published.csv

Where negative counts were removed, the table without them is worked out again from the unbiased table beside it.

If the signature is invalid, or missing where --key is given, nothing else is checked.

The file of --totals has the table's axes and count column; an empty axis means all categories. The exit status is 0 if
every check passed, 1 if one failed.
"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify", help=HELP)(verify)


def verify(
    table: Annotated[Path, typer.Argument(help="The released table, or the folder of a release.", metavar="RELEASE")],
    certificate: Annotated[
        Path | None,
        typer.Argument(
            help="Its certificate; by default the one beside it.", metavar="CERTIFICATE", show_default=False
        ),
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(
            "--totals", help="Published figures that the kept totals must equal.", metavar="FILE", show_default=False
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The publisher's public key (PEM).", metavar="KEY", show_default=False)
    ] = None,
    allow_seeded: Annotated[bool, typer.Option("--allow-seeded", help="Accept seeded noise, for tests.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check a release."""
    with progress() as step:
        step("checking the release")
        verification = ks.verify(table, certificate, totals=totals, key=key, allow_seeded=allow_seeded)
    names = ", ".join(check.name for check in verification.checks if not check.passed)
    failed = f"The release does not verify: {names}."
    if verification:
        done("The release verifies: every check passed.")
    else:
        done(failed, status=1)
    if json:
        checks = [{"check": c.name, "passed": c.passed, "words": c.words} for c in verification.checks]
        show_json({"passed": verification.passed, "checks": checks})
    else:
        show_checks((check.name, check.passed, check.words) for check in verification.checks)
    if not verification:
        raise FailedError(failed)
