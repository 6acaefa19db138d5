"""``keepsum postprocess``: a release without negative counts, from what is published alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import keepsum as ks
from keepsum._saying import arg
from keepsum.cli.declaration import AllowSeeded, AsJson, Force, Patient
from keepsum.cli.screen import (
    STANDARD_OUTPUT,
    check_free,
    deliver_release,
    destination,
    progress,
    record_release,
    show_json,
    shown,
    warning,
)
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.releasing.destination import Destination

HELP = """Remove negative counts from a release, with every kept total unchanged.

Examples:

    keepsum postprocess out/ --nonnegative

    keepsum postprocess released.csv --nonnegative --output nonnegative/ --sign key.pem

It verifies the release, then reads the released table and its certificate alone, so it costs no privacy. The published
table becomes the nearest one without negative counts, the unbiased one is kept beside it (table.unbiased.csv), and the
certificate says what changed. A report of the release that is replaced is removed. A signature does not cover the new
certificate: sign that with --sign.
"""

WITH_FORCE = "Run the command again with --force: it costs no privacy."


def postprocess(
    release: Annotated[str, typer.Argument(help="The released table, or the folder of a release.", metavar="RELEASE")],
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="Publish the nearest table without negative counts.")
    ] = False,
    nonnegative_norm: Annotated[
        str | None,
        typer.Option("--nonnegative-norm", help="In which it is nearest: l1 (default) or l2.", metavar="NORM"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PLACE",
            help="Another place to write to, - for standard output; by default the release is replaced.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", help="With --output -, the file of the new certificate (.json).", metavar="FILE"),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the new certificate with this key.", metavar="FILE")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The publisher's public key (PEM).", metavar="FILE")] = None,
    allow_seeded: AllowSeeded = False,
    patient: Patient = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Make something of a release."""
    from keepsum.cli.releases import norm_of
    from keepsum.cli.reporting import report
    from keepsum.releasing.canonical import read_private_key
    from keepsum.releasing.destination import Destination, put
    from keepsum.releasing.wording import nonnegative as what_changed
    from keepsum.sources.writing import own_kind

    norm = norm_of(nonnegative, nonnegative_norm)
    if norm is None:
        raise InputError(f"{arg.nonnegative} must be given: nothing else can be made of a release yet.")
    if output == STANDARD_OUTPUT or certificate is not None:
        check_free(json, destination(output or release, certificate).files)
    private = None if sign is None else read_private_key(sign)
    with progress() as step:
        step("verifying the release")
        before = ks.read_release(release, key=key, allow_seeded=allow_seeded, patient=patient)
        kind = own_kind(before.table)
        place = destination(release if output is None else output, certificate, kind)
        old = Destination.at(release, kind)
        replaces = place.key.resolve() == old.key.resolve()
        if place.is_stream and {file.resolve() for file in place.files} & {file.resolve() for file in old.files}:
            raise InputError("The new certificate must not replace that of the release. Choose another name.")
        _check_signature(place, sign)
        force = force or output is None
        place.check(force)
        step("looking for the nearest table without negative counts")
        after = ks.postprocess.nonnegative(before, norm)._record
    with place.claimed(force) as orphan:
        _check_signature(place, sign)
        if replaces:
            _check_unchanged(before, place)
        described = [path for path in place.about if path.is_file()]
        file = put(after, place, private, force, orphan)
        record_release(place, cost=WITH_FORCE)
    deliver_release(place, file)
    if before.certificate.signature is not None and sign is None:
        warning("The new certificate is not signed: the signature is of the certificate of the unbiased table alone.")
    gone = [path for path in described if not path.exists()]
    if gone:
        warning(
            f"Removed with the release that {'it' if len(gone) == 1 else 'they'} described: "
            f"{', '.join(shown(path) for path in gone)}. Make a report of the new one: keepsum report."
        )
    record = after.certificate.postprocessing[0]
    if json:
        names = {"table": place.table, "unbiased": place.unbiased, "certificate": place.certificate}
        files = {name: shown(path) for name, path in names.items()}
        show_json({**files, "postprocessing": record, "warnings": after.certificate.warnings})
    else:
        report(place, after)
        typer.echo(f"Changed      {what_changed(record, after.certificate.table.cells)}")


def _check_signature(place: Destination, sign: Path | None) -> None:
    """A signed certificate, also that of another release, is not replaced by one that nobody has signed."""
    if sign is None and place.certificate.is_file() and _is_signed(place.certificate):
        raise InputError(
            f"A signed release must be replaced by a signed one: sign the new certificate {arg.sign:with}, or write "
            f"to another place {arg.output:with}."
        )


def _is_signed(certificate: Path) -> bool:
    from keepsum.releasing.certificate import document_of
    from keepsum.releasing.destination import read_bytes

    data = read_bytes(certificate)
    try:
        document = document_of(data)
    except InputError:
        return False
    return isinstance(document, dict) and document.get("signature") is not None


def _check_unchanged(before: ks.Release, place: Destination) -> None:
    """The release that is replaced must be the one that was read, whatever other processes did meanwhile."""
    problem = "it is not there any more"
    if place.certificate.is_file():
        now = ks.Certificate.from_json(place.certificate.read_bytes())
        problem = "" if now == before.certificate else "it is another one now"
    if problem:
        raise InputError(f"The release at {shown(place.table)!r} must stay as it was read, but {problem}. Try again.")
