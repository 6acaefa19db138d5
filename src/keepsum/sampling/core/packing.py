"""Arguments of kernels as plain memory: what a compiled kernel is called with, and a text that says what that is.

An argument becomes 8-byte slots: a number is one, a record its address, an array its address and its shape (and its
strides unless they follow from that), a tuple its parts one behind the other. Compiled code reads the slots
(``building``). The text names everything that the layout depends on, so that equal texts mean that the same compiled
code serves.
"""

from __future__ import annotations

import ctypes
import struct
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
    return Packed(kind, struct.pack(f"={len(numbers)}q", *numbers), value)


def _flatten(value: Any, numbers: list[int]) -> str:
    """Append the slots of an argument as integers, and return its kind; the commonest types come first."""
    kind: Any = type(value)
    if kind is np.ndarray:
        return _flatten_array(value, numbers)
    if kind is int:
        numbers.append(value)
        return "int"
    if isinstance(value, tuple):
        return f"{_class_name(kind)}({','.join([_flatten(part, numbers) for part in value])})"
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
    if isinstance(value, np.record):
        numbers.append(np.asarray(value).ctypes.data)  # shares the memory of the array that the record is in
        return f"record:{_type_name(value.dtype)}"
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
    order = "C"
    if not flags & _CONTIGUOUS:
        numbers.extend(array.strides)
        order = "A"
    return f"{order if flags & _WRITEABLE else order.lower()}{array.ndim}:{_type_name(array.dtype)}"


@lru_cache(maxsize=256)
def _type_name(dtype: np.dtype[Any]) -> str:
    if not dtype.isnative:
        raise TypeError("a kernel takes numbers in the byte order of this machine")
    if dtype.fields is None:
        return dtype.name
    fields = ";".join(f"{name}@{field[1]}={field[0].name}" for name, field in dtype.fields.items())
    return f"{dtype.itemsize}:{fields}"


@lru_cache(maxsize=256)
def _class_name(kind: type) -> str:
    return "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}"
