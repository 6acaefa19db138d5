"""``keepsum keygen``: a pair of keys for signing certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keepsum._progress import doing
from keepsum._signals import held_back
from keepsum.cli.declaration import AsJson
from keepsum.cli.screen import done, show_json, shown
from keepsum.errors import InputError

HELP = """Make an Ed25519 key pair: a private key to sign certificates, a public key to verify them.

Examples:

    keepsum keygen key.pem

    keepsum release counts.csv --count n --keep county --epsilon 0.25 --output released.csv --sign key.pem

    keepsum verify released.csv --key key.pub.pem

Keep key.pem secret; publish key.pub.pem where readers trust it. The private key has no passphrase, and is refused if
others can read it.
"""


def keygen(
    private: Annotated[Path, typer.Argument(help="The file for the private key.", metavar="KEY")],
    public: Annotated[
        Path | None,
        typer.Option(
            "--public", help="The file for the public key; by default key.pub.pem for key.pem.", metavar="FILE"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing keys.")] = False,
    json: AsJson = False,
) -> None:
    """Make keys."""
    from keepsum.releasing.canonical import make_keys

    if not private.name:
        raise InputError(f"The private key must be the name of a file, got {str(private)!r}.")
    beside = public if public is not None else private.with_name(f"{private.stem}.pub{private.suffix or '.pem'}")
    doing("making the keys")
    with held_back():
        fingerprint = make_keys(private, beside, force)
        done(f"The keys are written: private {str(private)!r} (keep it secret), public {str(beside)!r}.")
    if json:
        show_json({"private": shown(private), "public": shown(beside), "public_key": fingerprint})
        return
    typer.echo(f"Private key  {shown(private)} (keep it secret)")
    typer.echo(f"Public key   {shown(beside)}")
