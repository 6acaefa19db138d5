"""Arguments of kernels as plain memory: what a compiled kernel is called with, and a text that says what that is.

An argument becomes 8-byte slots: a number is one, a record its address, an array its address and its shape (and its
strides unless they follow from that), a tuple its parts one behind the other. Compiled code reads the slots
(``building``). The text names everything that the layout depends on, so that equal texts mean that the same compiled
code serves.
"""

from __future__ import annotations

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


def pack(value: Any) -> Packed:
    """The slots of an argument.

    >>> pack((1, 2.5)).kind
    '(int,float)'
    >>> pack(np.zeros((2, 3))).kind
    'C2:float64'
    """
    numbers: list[Any] = []
    kind = _flatten(value, numbers)
    return Packed(kind, struct.pack(f"={''.join('d' if type(x) is float else 'q' for x in numbers)}", *numbers), value)


def _flatten(value: Any, numbers: list[Any]) -> str:
    """Append an argument's numbers, and return its kind."""
    if isinstance(value, np.ndarray):
        return _flatten_array(value, numbers)
    if isinstance(value, tuple):
        return f"{_class_name(type(value))}({','.join([_flatten(part, numbers) for part in value])})"
    if isinstance(value, (bool, np.bool_)):
        numbers.append(int(value))
        return "bool"
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.uint64):
        numbers.append(int(value))
        return "int"
    if isinstance(value, (float, np.float64)):
        numbers.append(float(value))
        return "float"
    if isinstance(value, np.uint64):
        numbers.append(int(value.view(np.int64)))
        return "word"
    if isinstance(value, np.record):
        numbers.append(np.asarray(value).ctypes.data)  # shares the memory of the array that the record is in
        return f"record:{_type_name(value.dtype)}"
    raise TypeError(f"a kernel takes arrays, numbers and tuples of these, got {type(value)}")


def _flatten_array(array: np.ndarray[Any, Any], numbers: list[Any]) -> str:
    flags = array.flags
    numbers.append(array.ctypes.data)
    numbers.extend(array.shape)
    order = "C"
    if not flags.c_contiguous:
        numbers.extend(array.strides)
        order = "A"
    if not flags.aligned:
        raise TypeError("a kernel takes aligned arrays")
    return f"{order if flags.writeable else order.lower()}{array.ndim}:{_type_name(array.dtype)}"


@lru_cache(maxsize=256)
def _type_name(dtype: np.dtype[Any]) -> str:
    if dtype.fields is None:
        return dtype.name
    return ";".join(f"{name}@{field[1]}={field[0].name}" for name, field in dtype.fields.items())


@lru_cache(maxsize=256)
def _class_name(kind: type) -> str:
    return "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}"
