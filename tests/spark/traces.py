"""Where a secret stands in texts and files, in any of the forms that bytes take there."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path


def forms(secret: bytes) -> list[bytes]:
    """The ways in which bytes get into texts; base64 at each of its three offsets."""
    texts = [secret, secret.hex().encode(), secret.hex().upper().encode(), repr(secret)[2:-1].encode()]
    texts += [str(int.from_bytes(secret, order)).encode() for order in ("big", "little")]
    for values in (list(secret), [byte - 256 * (byte > 127) for byte in secret]):
        texts += [", ".join(map(str, values)).encode(), ",".join(map(str, values)).encode()]
    texts += [base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)]
    return texts


def in_text(secret: bytes, text: bytes) -> bool:
    return any(form in text for form in forms(secret))


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
