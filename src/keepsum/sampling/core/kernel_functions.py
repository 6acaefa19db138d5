"""What a kernel is before it is compiled: a Python function, with what it may ask of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class KernelFunction:
    """A Python function to be compiled, with options of numba's."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func = function
        self.options = options
        self.__doc__ = function.__doc__
        self.__name__, self.__module__ = function.__name__, function.__module__

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__name__}>"


def functions_of(kernel: KernelFunction) -> set[KernelFunction]:
    """A kernel and all that it calls, one from the other: what is compiled for it."""
    called: set[KernelFunction] = set()
    waiting = [kernel]
    while waiting:
        function = waiting.pop()
        if function not in called:
            called.add(function)
            names = (function.py_func.__globals__.get(name) for name in function.py_func.__code__.co_names)
            waiting += [value for value in names if isinstance(value, KernelFunction)]
    return called
