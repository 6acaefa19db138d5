"""Arguments of kernels as plain memory: what a kernel is called with, and a text that says what that is.

An argument becomes 8-byte slots: a number is one, an array its address and its shape, a tuple its parts one behind the
other. That is the memory of the struct of the same name in C. The text names everything that the layout depends on:
kernels take only what is laid out as they declare it (``kernel``, ``layouts``).
"""

from __future__ import annotations

import ctypes
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Packed:
    """An argument in slots; ``value`` keeps alive what these point to."""

    kind: str
    slots: bytes
    value: Any

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has its own slots: those of another process point nowhere."""
        return pack, (self.value,)


def pack(value: Any) -> Packed:
    """The slots of an argument.

    >>> pack((1, 2.5)).kind
    '(int,float)'
    >>> pack(np.zeros((2, 3))).kind
    'C2:float64'
    """
    numbers: list[int] = []
    kind = _flatten(value, numbers)
    with suppress(struct.error):
        return Packed(kind, struct.pack(f"={len(numbers)}q", *numbers), value)
    raise OverflowError("a kernel takes integers of 64 bits")


def _flatten(value: Any, numbers: list[int]) -> str:
    """Append the slots of an argument as integers, and return its kind; the commonest types come first."""
    kind: Any = type(value)
    if kind is np.ndarray:
        return _flatten_array(value, numbers)
    if kind is int:
        numbers.append(value)
        return "int"
    if isinstance(value, tuple):
        return f"{class_name(kind)}({','.join([_flatten(part, numbers) for part in value])})"
    if isinstance(value, (float, np.float64)):
        numbers.extend(_INTEGER.unpack(_REAL.pack(value)))
        return "float"
    return _flatten_other(value, numbers)


def _flatten_other(value: Any, numbers: list[int]) -> str:
    if isinstance(value, (bool, np.bool_)):
        numbers.append(int(value))
        return "bool"
    if isinstance(value, np.uint64):
        numbers.append(int(value.view(np.int64)))
        return "word"
    if isinstance(value, (int, np.integer)):
        numbers.append(int(value))
        return "int"
    raise TypeError(f"a kernel takes arrays, numbers and tuples of these, got {type(value).__qualname__}")


class _Interface(ctypes.Structure):
    """NumPy's ``__array_struct__``: where an array is, which ``ndarray.ctypes`` takes four times as long to say."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("size", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400  # NumPy's flags
_INTEGER, _REAL = struct.Struct("=q"), struct.Struct("=d")
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _address(array: np.ndarray[Any, Any]) -> int:
    if array.dtype.names is not None:  # a description of each field would be made
        return array.ctypes.data
    capsule = array.__array_struct__  # owns the memory that is read here
    return _Interface.from_address(_pointer(capsule, None)).data or 0


def _flatten_array(array: np.ndarray[Any, Any], numbers: list[int]) -> str:
    flags = array.flags.num
    if not flags & _ALIGNED:
        raise TypeError("a kernel takes aligned arrays")
    numbers.append(_address(array))
    numbers.extend(array.shape)
    order = "C" if flags & _CONTIGUOUS else "A"  # which no kernel takes
    return f"{order if flags & _WRITEABLE else order.lower()}{array.ndim}:{type_name(array.dtype)}"


@lru_cache(maxsize=256)
def type_name(dtype: np.dtype[Any]) -> str:
    """What stands in an array: numbers, or the fields of records and where they are."""
    if not dtype.isnative:
        raise TypeError("a kernel takes numbers in the byte order of this machine")
    if dtype.fields is None:
        return dtype.name
    fields = ";".join(f"{name}@{field[1]}={field[0].name}" for name, field in dtype.fields.items())
    return f"{dtype.itemsize}:{fields}"


@lru_cache(maxsize=256)
def class_name(kind: type) -> str:
    """The name of a class of named tuples; none for a plain tuple."""
    return "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}"
