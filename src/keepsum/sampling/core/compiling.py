"""How kernels are compiled, and where the result is kept.

numba keeps compiled code beside the source and compares the date of one file only, so that a change to a kernel that
another file calls would go unseen. Here the folder is named after the text of every file with a kernel and of all that
such files import (``kernel_sources``): another text, another folder. Where the package's own folder cannot be written
to, the user's cache folder serves, and where that cannot either, kernels are compiled in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache

from keepsum._cache import is_writable, user_cache


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop at its first call: without the interpreter's lock, exactly as written, kept for later runs.

    It makes no array. So nothing has to count who refers to its arguments, which at calls with tuples of arrays takes
    more time than many of the calls.
    """
    return _kept(function, _nrt=False)


def allocating_kernel(function: Callable[..., Any]) -> Any:
    """The same for a function that makes arrays of its own."""
    return _kept(function, _nrt=True)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of those that call it: a call with tables takes longer than some of them run."""
    return _kept(function, _nrt=False, forceinline=True)


def loose_kernel(function: Callable[..., Any]) -> Any:
    """A kernel of sums of floats that may be taken in any order: several at a time, and so in other last digits."""
    return _kept(function, _nrt=False, fastmath={"reassoc", "contract"}, error_model="numpy")


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


PACKAGE = Path(__file__).parents[2]
_THIS = Path(__file__).relative_to(PACKAGE)
_DECORATED = re.compile(rb"@(?:\w+\.)*(?:loose_|allocating_|inner_)?kernel\b")
_IMPORTED = re.compile(rb"\b(?:from|import)[ \t]+keepsum\.([\w.]+)(?:[ \t]+import[ \t]+(\([^)]*\)|.*))?")


def kernel_sources(package: Path = PACKAGE) -> dict[Path, bytes]:
    """The text of every file of the package with a kernel, and of all that these import, one from the other.

    Compiled code may hold what any of them defines: functions, constants, the fields of its arguments. They are found
    by decorators and import statements, which takes milliseconds; parsing every file would take half a second.
    """
    texts = {path: path.read_bytes() for path in package.rglob("*.py")}
    sources: dict[Path, bytes] = {}
    waiting = [path for path, text in texts.items() if _DECORATED.search(text)]
    while waiting:
        path = waiting.pop()
        if path in texts and path not in sources:
            sources[path] = texts[path]
            if path != package / _THIS:  # where compiled code is kept does not change it
                waiting += _imports(texts[path], package)
    return dict(sorted(sources.items()))


def _imports(text: bytes, package: Path) -> Iterator[Path]:
    """The files of the modules that a file may import, whether they exist or not."""
    for module, names in _IMPORTED.findall(text):
        folder = package.joinpath(*module.decode().split("."))
        yield folder.with_suffix(".py")
        yield folder / "__init__.py"
        yield from (folder / f"{name.decode()}.py" for name in re.findall(rb"\w+", names))


@lru_cache(maxsize=1)
def text_of_kernels(package: Path = PACKAGE) -> str:
    """A name for the text of all kernels and of what they are compiled with."""
    return f"kernels-{hashlib.sha256(b''.join(kernel_sources(package).values())).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Where compiled kernels of this very text are kept; None where they are compiled anew in each process."""
    user = user_cache()
    folders = [Path(__file__).parent / "__pycache__", *([] if user is None else [user])]
    return next((folder / text_of_kernels() for folder in folders if is_writable(folder / text_of_kernels())), None)
