"""What a kernel is before it is compiled: a Python function, with what it may ask of compiled code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import CodeType, ModuleType
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


def digest_of(kernel: KernelFunction) -> str:
    """A hash of what is compiled for a kernel, as it stands in memory: code, options and constants of all functions.

    The files on disk may be others by now: a package can be replaced while a process runs.
    """
    told = sorted(repr((f.__module__, f.__name__, _options(f), _content(f))) for f in functions_of(kernel))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _options(function: KernelFunction) -> list[tuple[str, Any]]:
    return sorted(
        (name, sorted(value) if isinstance(value, set) else value) for name, value in function.options.items()
    )


def _content(function: KernelFunction) -> tuple[Any, ...]:
    code = function.py_func.__code__
    names = {name: function.py_func.__globals__[name] for name in code.co_names if name in function.py_func.__globals__}
    return _of_code(code), {name: _of_global(value) for name, value in sorted(names.items())}


def _of_code(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_of_code(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames


def _of_global(value: Any) -> str:
    """A constant by its value, everything else by its name."""
    if isinstance(value, (KernelFunction, ModuleType)):
        return value.__name__
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else repr(value)
