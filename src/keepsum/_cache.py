"""Where things are kept that can be worked out again: compiled kernels, and meeting times of chains.

A cache is a convenience. Without a home, without a folder that can be written to, or with a full disk everything works
as well, only slower.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from platformdirs import user_cache_path


def user_cache() -> Path | None:
    """The folder of all our caches: ``KEEPSUM_CACHE``, or the user's cache folder; None for a user who has no home.

    It need not exist, nor be writable.
    """
    chosen = os.environ.get("KEEPSUM_CACHE")
    if chosen:
        return Path(chosen)
    try:
        folder = user_cache_path("keepsum", appauthor=False)
    except RuntimeError:  # neither HOME nor an entry in the list of users
        return None
    return folder if folder.is_absolute() else None  # older versions leave "~" as it is


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return os.access(folder, os.R_OK | os.X_OK)
    except OSError:
        return False
