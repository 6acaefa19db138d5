"""How kernels are compiled, and where the result is kept.

numba keeps compiled code beside the source and compares the date of one file only, so that a change to a kernel that
another file calls would go unseen. Here the folder is named after the text of all kernels and of the tables that they
read: another text, another folder. Where the package's own folder cannot be written to, the user's cache folder serves.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop at its first call: without the interpreter's lock, exactly as written, kept for later runs."""
    return _kept(function)


def loose_kernel(function: Callable[..., Any]) -> Any:
    """The same for sums of floats that may be taken in any order: several at a time, and so in other last digits."""
    return _kept(function, fastmath={"reassoc", "contract"}, error_model="numpy")


def _kept(function: Callable[..., Any], **options: Any) -> Any:
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder())
    try:
        return njit(nogil=True, cache=True, **options)(function)
    finally:
        settings.CACHE_DIR = before


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Where compiled kernels of this very text are kept."""
    here = Path(__file__).parent
    text = b"".join(path.read_bytes() for path in sorted(here.parent.glob("*/*kernel*.py")))
    name = f"kernels-{hashlib.sha256(text).hexdigest()[:16]}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for folder in (here / "__pycache__" / name, user / "keepsum" / name):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return user / "keepsum" / name
