"""Where a secret stands in files: as it is, in hexadecimal, in base64, as a number, and as Python or JSON shows it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path


def forms(secret: bytes) -> list[bytes]:
    """What the secret looks like when somebody writes it down."""
    words = base64.b64encode(secret).rstrip(b"="), base64.urlsafe_b64encode(secret).rstrip(b"=")
    numbers = [str(int.from_bytes(secret, order)).encode() for order in ("big", "little")]
    listed = [", ".join(map(str, secret)).encode(), ",".join(map(str, secret)).encode()]
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), *words, *numbers, *listed]


def in_text(secret: bytes, text: bytes) -> bool:
    return any(form in text for form in forms(secret)) or repr(secret)[2:-1].encode() in text


def traces(secret: bytes, folders: Iterable[Path]) -> list[str]:
    """The files in some folders that have it; those that vanish meanwhile have been deleted."""
    found = []
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        try:
            text = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue
        if in_text(secret, text):
            found.append(str(path))
    return found
