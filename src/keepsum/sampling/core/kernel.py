"""Kernels: functions of the native library, which Python calls with arguments of declared kinds."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from keepsum.errors import InstallationError
from keepsum.sampling.native.build import FOLDER, LEVELS, digest_of, library_path, stated_digest

# The native library: which of its builds this processor runs, and whether it is that of the sources at hand.


# A build by name (baseline, v3), or a file with another one of the same sources. Their hash guards against mistakes,
# not against whoever sets the variables of a process: they choose what runs in it anyway (PYTHONPATH, LD_PRELOAD).
CHOICE = "KEEPSUM_KERNELS"
REMEDY = "Run make in a clone, or python -m keepsum.sampling.native.build, or install Keepsum again."


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The library, loaded: the build that was chosen, else the fastest that this processor runs."""
    chosen = os.environ.get(CHOICE, "")
    if chosen:
        return load(library_path(chosen) if chosen in LEVELS else Path(chosen).absolute())
    baseline = load(library_path("baseline"))
    fastest = library_path("v3")
    return load(fastest) if baseline.keepsum_runs_v3() and fastest.is_file() else baseline


def load(path: Path) -> ctypes.CDLL:
    """A library, if it is there, whole, for this machine, and made of the sources as they are."""
    if not path.is_file():
        raise InstallationError(f"The samplers must be compiled, and {path} is missing. {REMEDY}")
    stated = stated_digest(path)
    if stated is None:
        raise InstallationError(f"{path} is not a library of kernels for this machine, or only a part of one. {REMEDY}")
    if stated != text_of_kernels():
        raise InstallationError(f"{path} must be made from the C files of the package, which have changed. {REMEDY}")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise InstallationError(f"The system does not load {path}: {error}. {REMEDY}") from error


@lru_cache(maxsize=1)
def text_of_kernels(folder: Path = FOLDER) -> str:
    """A name for the text of all kernels: other kernels may make other draws of the same words."""
    return digest_of(folder)


@lru_cache(maxsize=1)
def machine() -> str:
    """What floats depend on but for the text of the package: NumPy, the system's libm, the kind of processor."""
    loops: Any = import_module("numpy._core._multiarray_umath")
    features = sorted(name for name, there in loops.__cpu_features__.items() if there)
    return repr((np.__version__, platform.machine(), platform.libc_ver(), features))


# Arguments of kernels as plain memory: what a kernel is called with, and a text that says what that is.
#
# An argument becomes 8-byte slots: a number is one, an array its address and its shape, a tuple its parts one behind
# the other. That is the memory of the struct of the same name in C. The text names everything that the layout depends
# on: kernels take only what is laid out as they declare it (``kernel``, ``layouts``).


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
    slots: bytes | None
    try:
        slots = struct.pack(f"={len(numbers)}q", *numbers)
    except struct.error:
        slots = None
    if slots is None:
        raise OverflowError("a kernel takes integers of 64 bits")
    return Packed(kind, slots, value)


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


# How an argument of a kernel is laid out in memory, as its annotation says it.
#
# Kernels are C. What Python passes is memory (``packing``), and an argument that is not laid out as its kernel
# expects would be read as something else. So every kernel declares the kind of each argument by an annotation, which
# gives both the struct that its C code is compiled with (``scripts/write_structs.py``) and what Python checks
# (``kernel``).


@dataclass(frozen=True)
class ArrayForm:
    """The number of dimensions of an array, and whether kernels write to it."""

    dimensions: int = 1
    written: bool = False


READ, OUT, MATRIX, OUT_MATRIX = ArrayForm(), ArrayForm(written=True), ArrayForm(2), ArrayForm(2, written=True)
OUT_CUBE = ArrayForm(3, written=True)


@dataclass(frozen=True)
class Number:
    """A slot: "int", "float", "bool" (0 or 1), or "word" (without a sign)."""

    kind: str


@dataclass(frozen=True)
class Array:
    """A contiguous array: its address and its shape. Its elements may be records."""

    dtype: np.dtype[Any]
    form: ArrayForm


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
    Array(dtype=dtype('int64'), form=ArrayForm(dimensions=1, written=False))
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


class Kernel:
    """A function of the native library (``sampling/native``).

    Parameters
    ----------
    name
        Its name in C.
    *arguments
        The kind of each argument (``layout_of``): a named tuple, an array, a type of records, a number.
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
