"""How an argument of a kernel is laid out in memory, as its annotation says it.

Kernels are C. What Python passes is memory (``packing``), and an argument that is not laid out as its kernel expects
would be read as something else. So every kernel declares the kind of each argument by an annotation, which gives both
the struct that its C code is compiled with (``scripts/write_structs.py``) and what Python checks (``kernel``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from keepsum.sampling.core.packing import class_name, type_name


@dataclass(frozen=True)
class Form:
    """The number of dimensions of an array, and whether kernels write to it."""

    dimensions: int = 1
    written: bool = False


READ, OUT, MATRIX, OUT_MATRIX = Form(), Form(written=True), Form(2), Form(2, written=True)
OUT_CUBE = Form(3, written=True)


@dataclass(frozen=True)
class Number:
    """A slot: "int", "float", "bool" (0 or 1), or "word" (without a sign)."""

    kind: str


@dataclass(frozen=True)
class Array:
    """A contiguous array: its address and its shape. Its elements may be records."""

    dtype: np.dtype[Any]
    form: Form


@dataclass(frozen=True)
class Fields:
    """A named tuple, field by field."""

    cls: type
    fields: tuple[tuple[str, Layout], ...]


Layout: TypeAlias = Number | Array | Fields

_NUMBERS = {int: "int", float: "float", bool: "bool", np.uint64: "word"}
EMPTY = Fields(tuple, ())


@lru_cache(maxsize=1024)
def layout_of(annotation: Any) -> Layout:
    """What an annotation means: a number, an array, a type of records (an array of these), or a named tuple.

    ``Annotated[Task, Room]`` is a task whose room is of that kind; without it, its room is empty.

    >>> layout_of(np.uint64)
    Number(kind='word')
    >>> layout_of(np.typing.NDArray[np.int64])
    Array(dtype=dtype('int64'), form=Form(dimensions=1, written=False))
    """
    notes: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        notes = tuple(rest)
    alias = getattr(get_origin(annotation), "__value__", None)
    if alias is not None:  # NDArray, in newer versions of NumPy
        annotation = alias[get_args(annotation)]
    if isinstance(annotation, np.dtype):
        return Array(annotation, OUT)
    if get_origin(annotation) is np.ndarray:
        (element,) = get_args(get_args(annotation)[1])
        return Array(np.dtype(element), notes[-1] if notes else READ)
    if annotation in _NUMBERS:
        return Number(_NUMBERS[annotation])
    if not hasattr(annotation, "_fields"):
        raise TypeError(f"no kernel takes {annotation!r}")
    room = layout_of(notes[-1]) if notes else EMPTY
    hints = get_type_hints(annotation, include_extras=True)
    return Fields(annotation, tuple((name, room if hint is Any else layout_of(hint)) for name, hint in hints.items()))


def pattern_of(layout: Layout) -> str:
    """A regular expression for the kinds that ``packing`` gives arguments of such a layout."""
    if isinstance(layout, Number):
        return layout.kind
    if isinstance(layout, Array):
        order = "C" if layout.form.written else "[Cc]"
        return f"{order}{layout.form.dimensions}:{re.escape(type_name(layout.dtype))}"
    parts = ",".join(pattern_of(part) for _, part in layout.fields)
    return re.escape(class_name(layout.cls)) + rf"\({parts}\)"


def described(layout: Layout) -> str:
    """What a kernel expects, in words."""
    if isinstance(layout, Number):
        return {"word": "a 64-bit word"}.get(layout.kind, f"a number ({layout.kind})")
    if isinstance(layout, Array):
        kind = "records" if layout.dtype.names else layout.dtype.name
        written = " that can be written to" if layout.form.written else ""
        return f"a contiguous array of {kind} with {layout.form.dimensions} dimension(s){written}"
    return f"a {layout.cls.__name__}" if layout.fields else "nothing"
