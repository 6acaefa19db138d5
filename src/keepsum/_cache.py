"""The cache folder for results that can be recomputed: meeting times of coupled chains, outcomes of pilots.

The cache is a convenience. Without a home folder, without write access or with a full disk everything still works,
only slower.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

from keepsum._signals import held_back


def user_cache() -> Path | None:
    """The folder of all our caches: ``KEEPSUM_CACHE``, or the user's cache folder; None for a user without a home.

    It may not exist or not be writable.
    """
    chosen = os.environ.get("KEEPSUM_CACHE")
    try:
        if chosen:
            return Path(chosen).expanduser()  # a shell leaves the tilde of "KEEPSUM_CACHE=~/x" in quotes as it is
        folder = user_cache_path("keepsum", appauthor=False)
    except RuntimeError:  # neither HOME nor an entry in the user database
        return None
    return folder if folder.is_absolute() else None  # older versions of platformdirs leave "~" in the path


class CacheFile:
    """A text in the cache folder that is read and replaced as a whole; where there is no room for it, none is kept.

    Parameters
    ----------
    folder, name
        Its folder within the cache, and its name there.
    """

    def __init__(self, folder: str, name: str) -> None:
        cache = user_cache()
        self._path = None if cache is None else cache / folder / name

    def read(self) -> str | None:
        """The text; None if the file is missing or cannot be read."""
        if self._path is None:
            return None
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def remove(self) -> None:
        """Remove the file, if it is there."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Replace the file atomically; where the folder cannot be written to, nothing is stored."""
        if self._path is None:
            return
        with held_back(), suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                Path(name).replace(self._path)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
