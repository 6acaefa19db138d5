"""``keepsum show``: a certificate in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keepsum._progress import doing
from keepsum.cli.screen import show as show_sections
from keepsum.cli.screen import show_json
from keepsum.specs.faces import SHELL, sections_in

HELP = """Show the certificate of a release in plain words: what is kept, the noise, the guarantee, and warnings.

Examples:

    keepsum show released.certificate.json

    keepsum show out/ --details

    keepsum show released.csv --json

It reads the certificate only and checks nothing; keepsum verify does.
"""
NOT_VERIFIED = ("Not verified", ["Only the certificate was read. Run keepsum verify to check it and its table."])


def show(
    release: Annotated[
        Path, typer.Argument(help="A certificate, the folder of a release, or a released table.", metavar="CERTIFICATE")
    ],
    details: Annotated[
        bool, typer.Option("--details", help="Also show blocks, formulas, the loss per unit of distance, and software.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the facts of the certificate as JSON.")] = False,
) -> None:
    """Show a certificate."""
    from keepsum.releasing.certificate import certificate_topics
    from keepsum.releasing.destination import read_certificate

    doing("reading the certificate")
    certificate = read_certificate(release)
    if json:
        show_json(certificate)
        return
    show_sections(sections_in(SHELL, certificate_topics(certificate, NOT_VERIFIED, details=details)))
