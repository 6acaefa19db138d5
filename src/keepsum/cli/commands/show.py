"""``keepsum show``: a certificate in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keepsum.cli.screen import show as show_sections
from keepsum.cli.screen import show_json
from keepsum.cli.terms import sections_in_shell_terms

HELP = """Show the certificate of a release in plain words: what is kept, the noise, the guarantee, and warnings.

Examples:

    keepsum show released.certificate.json

    keepsum show out/ --details

    keepsum show released.csv --json

It reads the certificate only and checks nothing; keepsum verify does.
"""
NOT_VERIFIED = ("Not verified", ["Only the certificate was read. Run keepsum verify to check it and its table."])


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", help=HELP)(show)


def show(
    release: Annotated[
        Path,
        typer.Argument(help="A certificate, the folder of a release, or a released table.", metavar="CERTIFICATE"),
    ],
    details: Annotated[
        bool,
        typer.Option("--details", help="Also show blocks, formulas, the loss per unit of distance, and software."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the facts of the certificate as JSON.")] = False,
) -> None:
    """Show a certificate."""
    from keepsum.releasing.saved import read_certificate
    from keepsum.releasing.showing import certificate_topics

    certificate = read_certificate(release)
    if json:
        show_json(certificate)
        return
    show_sections(sections_in_shell_terms(certificate_topics(certificate, NOT_VERIFIED, details=details)))
