"""How kernels are compiled, and where the result is kept.

numba keeps compiled code beside the source and compares the date of one file only, so that a change to a kernel that
another file calls would go unseen. Here the folder is named after the text of all kernels and of the tables that they
read: another text, another folder. Where the package's own folder cannot be written to, the user's cache folder serves,
and where that cannot either, kernels are compiled in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache

from keepsum._cache import is_writable, user_cache


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop at its first call: without the interpreter's lock, exactly as written, kept for later runs."""
    return _kept(function)


def loose_kernel(function: Callable[..., Any]) -> Any:
    """The same for sums of floats that may be taken in any order: several at a time, and so in other last digits."""
    return _kept(function, fastmath={"reassoc", "contract"}, error_model="numpy")


def _kept(function: Callable[..., Any], **options: Any) -> Any:
    compiled = njit(nogil=True, **options)(function)
    folder = cache_folder()
    if folder is None:
        return compiled
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)
    try:
        compiled._cache = _Shelf(function)  # type: ignore[no-untyped-call]
    finally:
        settings.CACHE_DIR = before
    return compiled


class _Shelf(FunctionCache):
    """What numba keeps on disk of a kernel; a disk that is full, or a folder that is gone, keeps nothing."""

    def save_overload(self, signature: Any, compiled: Any) -> None:
        with suppress(OSError):
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1)
def text_of_kernels() -> str:
    """A name for the text of all kernels and of the tables that they read."""
    folder = Path(__file__).parents[2]
    text = b"".join(path.read_bytes() for path in sorted(folder.rglob("*kernel*.py")))
    return f"kernels-{hashlib.sha256(text).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Where compiled kernels of this very text are kept; None where they are compiled anew in each process."""
    user = user_cache()
    folders = [Path(__file__).parent / "__pycache__", *([] if user is None else [user])]
    return next((folder / text_of_kernels() for folder in folders if is_writable(folder / text_of_kernels())), None)
