"""How kernels are compiled, and where the result is kept.

A kernel is a plain Python function. Its first call looks for compiled code of its arguments' kinds in the cache, and
only where there is none imports numba and compiles it (``building``): a process that finds everything there needs
neither numba nor its second of imports, only llvmlite, which puts code into memory (``loading``).

The folder of the cache is named after the text of every file with a kernel and of all that such files import
(``kernel_sources``): another text, another folder. Where the package's own folder cannot be written to, the user's
cache folder serves, beside what was compiled when the package was installed; and where that cannot be written to
either, kernels are compiled in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from keepsum._cache import is_writable, user_cache
from keepsum._signals import held_back
from keepsum.errors import InputError
from keepsum.sampling.core.forking import ProcessLock
from keepsum.sampling.core.kernel_functions import KernelFunction, digest_of
from keepsum.sampling.core.loading import Code, Loaded, keep, kept, load, machine
from keepsum.sampling.core.packing import Packed, pack


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop at its first call: without the interpreter's lock, exactly as written, kept for later runs.

    It makes no array.
    """
    return Kernel(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of those that call it: a call with tables takes longer than some of them run."""
    return Kernel(function, forceinline=True)


def loose_kernel(function: Callable[..., Any]) -> Any:
    """A kernel of sums of floats that may be taken in any order: several at a time, and so in other last digits."""
    return Kernel(function, fastmath={"reassoc", "contract"}, error_model="numpy")


class Kernel(KernelFunction):
    """A function that is compiled for each kind of arguments that it is called with.

    Other kernels that it calls become part of its code. They are compiled on their own only if Python calls them.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._loaded: dict[tuple[str, ...], Loaded] = {}
        self._one_at_a_time = ProcessLock()

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arrays are changed in place."""
        return self.run(*map(pack, arguments))

    def run(self, *arguments: Packed) -> Any:
        """Run it on packed arguments."""
        loaded = self._loaded.get(tuple([argument.kind for argument in arguments]))
        if loaded is None:
            loaded = self._load(arguments)
        return loaded(*[argument.slots for argument in arguments])

    def _load(self, arguments: tuple[Packed, ...]) -> Loaded:
        kinds = tuple([argument.kind for argument in arguments])
        with self._one_at_a_time.here():
            if kinds not in self._loaded:
                paths = self._paths(kinds)
                code = next((code for path in paths if (code := kept(path)) is not None), None)
                if code is None:
                    code = self._compile([argument.value for argument in arguments])
                    for path in paths[:1]:
                        keep(path, code)
                self._loaded[kinds] = load(code)
            return self._loaded[kinds]

    def _paths(self, kinds: tuple[str, ...]) -> list[Path]:
        """Where its code for such arguments may be kept, on this machine and with these versions."""
        folders = cache_folders()
        if not folders:
            return []
        told = (self.__module__, kinds, machine(), digest_of(self))
        key = hashlib.sha256(repr(told).encode()).hexdigest()[:32]
        return [folder / f"{self.__name__}-{key}.code" for folder in folders]

    def _compile(self, values: list[Any]) -> Code:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            raise InputError("Samplers must be compiled: unset NUMBA_DISABLE_JIT.")
        with held_back():  # numba, interrupted, is not usable any more
            from keepsum.sampling.core.building import build  # brings numba

            code: Code = build(self, values, _Watch.tell or _print_once)
        return code


Tell: TypeAlias = Callable[[int, int], None]  # how many functions of a kernel are compiled, and of how many


class _Watch:
    """Who is told that kernels are compiled, and whether a terminal was."""

    tell: Tell | None = None
    printed = False


def _print_once(done: int, total: int) -> None:
    """Say on a terminal, if there is one, what takes seconds."""
    if not _Watch.printed and _is_terminal(sys.stderr):
        _Watch.printed = True
        print("keepsum: compiling samplers, a few seconds the first time", file=sys.stderr)


def _is_terminal(stream: Any) -> bool:
    """Whether a stream, if it is one and open, is a terminal."""
    with suppress(AttributeError, ValueError):
        return bool(stream.isatty())
    return False


@contextmanager
def compiling_shown(tell: Tell) -> Iterator[None]:
    """Tell somebody how far compilation is, instead of printing a line."""
    before, _Watch.tell = _Watch.tell, tell
    try:
        yield
    finally:
        _Watch.tell = before


PACKAGE = Path(__file__).parents[2]
_CORE = Path(__file__).parent.relative_to(PACKAGE)
_COMPILER = ("building.py", "packing.py")  # what code is made with, whatever kernels import
UNREAD = "unread-"  # what the name of a text that cannot be read begins with
_DECORATED = re.compile(rb"@(?:\w+\.)*(?:loose_|inner_)?kernel\b")
_IMPORTED = re.compile(rb"\b(?:from|import)[ \t]+keepsum\.([\w.]+)(?:[ \t]+import[ \t]+(\([^)]*\)|.*))?")


def kernel_sources(package: Path = PACKAGE) -> dict[Path, bytes]:
    """The text of every file of the package with a kernel, and of all that these import, one from the other.

    Compiled code may hold what any of them defines: functions, constants, the fields of its arguments. They are found
    by decorators and import statements, which takes milliseconds; parsing every file would take half a second.
    """
    texts = dict(_texts(package))
    sources: dict[Path, bytes] = {}
    waiting = [path for path, text in texts.items() if _DECORATED.search(text)]
    waiting += [package / _CORE / name for name in _COMPILER]
    while waiting:
        path = waiting.pop()
        if path in texts and path not in sources:
            sources[path] = texts[path]
            if path != package / _CORE / "compiling.py":  # where compiled code is kept does not change it
                waiting += _imports(texts[path], package)
    return dict(sorted(sources.items()))


def _texts(package: Path) -> Iterator[tuple[Path, bytes]]:
    """The files that can be read: an editor may leave links that lead nowhere."""
    for path in package.rglob("*.py"):
        with suppress(OSError):
            yield path, path.read_bytes()


def _imports(text: bytes, package: Path) -> Iterator[Path]:
    """The files of the modules that a file may import, whether they exist or not."""
    for module, names in _IMPORTED.findall(text):
        folder = package.joinpath(*module.decode().split("."))
        yield folder.with_suffix(".py")
        yield folder / "__init__.py"
        yield from (folder / f"{name.decode()}.py" for name in re.findall(rb"\w+", names))


@lru_cache(maxsize=1)
def text_of_kernels(package: Path = PACKAGE) -> str:
    """A name for the text of all kernels and of what they are compiled with.

    Where there is none to be read, as in a zip file, it is a name that nothing else has.
    """
    sources = kernel_sources(package)
    if not sources:
        return f"{UNREAD}{uuid4().hex[:16]}"
    return f"kernels-{hashlib.sha256(b''.join(sources.values())).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def cache_folders() -> tuple[Path, ...]:
    """Where compiled kernels of this very text are: first where they are kept, then where others may have kept them.

    The package's own folder, if it can be written to, else the user's, and then what whoever installed the package has
    left in the former is read.
    """
    name, user = text_of_kernels(), user_cache()
    if name.startswith(UNREAD):
        return ()
    folders = [base / name for base in (Path(__file__).parent / "__pycache__", user) if base is not None]
    own = next(((folder,) for folder in folders if is_writable(folder)), ())
    return (*own, *(folder for folder in folders[:1] if folder not in own))
