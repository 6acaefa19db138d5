"""Kernels: functions of the native library, which Python calls with arguments of declared kinds."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from keepsum.sampling.core.layouts import Fields, Layout, described, layout_of, pattern_of
from keepsum.sampling.core.library import library
from keepsum.sampling.core.packing import Packed, pack


class Kernel:
    """A function of the native library (``sampling/native``).

    Parameters
    ----------
    name
        Its name in C.
    *arguments
        The kind of each argument (``layouts.layout_of``): a named tuple, an array, a type of records, a number.
    returns
        What it returns: an integer or a float.

    A call with anything else than what is declared is refused: C would read it as if it were that. The interpreter's
    lock is free while a kernel runs.
    """

    def __init__(self, name: str, *arguments: Any, returns: type[int] | type[float] = int) -> None:
        self.__name__ = name
        self.arguments = arguments
        self._returns = returns
        self._function: Any = None
        self._accepted: set[tuple[str, ...]] = set()

    def __repr__(self) -> str:
        return f"Kernel({self.__name__!r})"

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arrays are changed in place."""
        return self.run(*map(pack, arguments))

    def run(self, *arguments: Packed) -> Any:
        """Run it on packed arguments."""
        if tuple([argument.kind for argument in arguments]) not in self._accepted:
            self._accept(arguments)
        return self._function(*[argument.slots for argument in arguments])

    def _accept(self, arguments: tuple[Packed, ...]) -> None:
        """Remember that arguments of these kinds are as declared, or refuse them."""
        if len(arguments) != len(self.arguments):
            raise TypeError(f"{self.__name__} takes {len(self.arguments)} arguments, got {len(arguments)}")
        for place, (argument, declared) in enumerate(zip(arguments, self.arguments, strict=True)):
            layout = layout_of(declared)
            if not re.fullmatch(pattern_of(layout), argument.kind):
                raise TypeError(f"{self.__name__}: {mismatch(layout, argument.value, f'argument {place + 1}')}")
        if self._function is None:
            function = getattr(library(), self.__name__)
            function.restype = ctypes.c_int64 if self._returns is int else ctypes.c_double
            self._function = function
        self._accepted.add(tuple([argument.kind for argument in arguments]))


def mismatch(layout: Layout, value: Any, place: str) -> str:
    """Where a value is not laid out as it must be, and how."""
    kind = pack(value).kind
    if isinstance(layout, Fields) and type(value) is layout.cls:
        for name, part in layout.fields:
            inner = getattr(value, name)
            if not re.fullmatch(pattern_of(part), pack(inner).kind):
                return mismatch(part, inner, f"{layout.cls.__name__}.{name}")
    return f"{place} must be {described(layout)}, got {kind.partition('(')[0]}"
