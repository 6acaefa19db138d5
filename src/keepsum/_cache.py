"""The cache folder for results that can be recomputed: compiled kernels, and meeting times of coupled chains.

The cache is a convenience. Without a home folder, without write access or with a full disk everything still works,
only slower.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from platformdirs import user_cache_path


def user_cache() -> Path | None:
    """The folder of all our caches: ``KEEPSUM_CACHE``, or the user's cache folder; None for a user without a home.

    It may not exist or not be writable.
    """
    chosen = os.environ.get("KEEPSUM_CACHE")
    if chosen:
        return Path(chosen)
    try:
        folder = user_cache_path("keepsum", appauthor=False)
    except RuntimeError:  # neither HOME nor an entry in the user database
        return None
    return folder if folder.is_absolute() else None  # older versions of platformdirs leave "~" in the path


def is_writable(folder: Path) -> bool:
    """Whether files can be created in a folder; the folder is created if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return os.access(folder, os.R_OK | os.X_OK)
    except OSError:
        return False
