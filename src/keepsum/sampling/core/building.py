"""From a kernel to machine code, by numba; imported only where code has to be compiled.

numba by itself compiles every function of a kernel to machine code of its own, with wrappers for calls from Python and
from C, and copies each named tuple field by field into each function. Here

- only the kernel that Python runs becomes machine code; the functions that it calls are optimised as parts of it, once;
- a named tuple that Python passes is a pointer to its slots (``packing``), and a field is read where it is used.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.datamodel import models
from numba.core.extending import register_model, typeof_impl
from numba.core.imputils import lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from keepsum.sampling.core.kernel_functions import KernelFunction, functions_of
from keepsum.sampling.core.loading import ENTRY, Code

SLOT = 8  # bytes
# Passes of numba's for what kernels do not have: closures, with blocks, expressions of arrays, parallel loops.
NOT_NEEDED = (
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "DeadBranchPrune",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterally",
    "LiteralUnroll",
    "InlineOverloads",
    "NopythonRewrites",
    "AnnotateTypes",
    "DumpParforDiagnostics",
)


class Slots(types.Type):
    """The type of a named tuple that stands in slots: its fields, each with a type and the slot it starts at."""

    def __init__(self, cls: type, parts: list[Any]) -> None:
        starts = np.cumsum([0, *map(slots_of, parts)]).tolist()
        self.fields = dict(zip(cls._fields, zip(parts, starts, strict=False), strict=True))
        self.count = starts[-1]
        digest = sha256(repr((cls.__module__, cls.__qualname__, [str(part) for part in parts])).encode()).hexdigest()
        super().__init__(f"{cls.__name__}_{digest[:12]}")


@register_model(Slots)
class _SlotsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


def slots_of(kind: Any) -> int:
    """How many slots an argument takes."""
    if isinstance(kind, types.Array):
        return 1 + kind.ndim * (1 if kind.layout == "C" else 2)
    if isinstance(kind, types.BaseTuple):
        parts: list[Any] = list(kind.types)
        return sum(slots_of(part) for part in parts)
    return kind.count if isinstance(kind, Slots) else 1


def type_of(value: Any) -> Any:
    """The type of an argument as ``packing`` lays it out."""
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "A"
        make: Any = types.Array
        return make(from_dtype(value.dtype), value.ndim, layout, readonly=not value.flags.writeable)
    if isinstance(value, tuple):
        parts = [type_of(part) for part in value]
        return Slots(type(value), parts) if hasattr(value, "_fields") else types.Tuple(parts)
    if isinstance(value, (bool, np.bool_)):
        return types.boolean
    if isinstance(value, np.uint64):
        return types.uint64
    if isinstance(value, np.record):
        return from_dtype(value.dtype)
    return types.int64 if isinstance(value, (int, np.integer)) else types.float64


def read(context: Any, builder: Any, kind: Any, pointer: Any, start: int = 0) -> Any:
    """The argument whose slots start there."""
    if isinstance(kind, Slots):
        return builder.gep(pointer, [ir.Constant(ir.IntType(64), start)])
    if isinstance(kind, types.Array):
        return _read_array(context, builder, kind, pointer, start)
    if isinstance(kind, types.BaseTuple):
        starts = np.cumsum([0, *map(slots_of, kind.types)]).tolist()
        parts = [read(context, builder, part, pointer, start + first) for part, first in zip(kind.types, starts)]  # noqa: B905
        return context.make_tuple(builder, kind, parts)
    number = _load(builder, pointer, start)
    if isinstance(kind, types.Record):
        return builder.inttoptr(number, context.get_value_type(kind))
    if kind == types.boolean:
        return builder.icmp_signed("!=", number, ir.Constant(number.type, 0))
    return builder.bitcast(number, ir.DoubleType()) if kind == types.float64 else number


def _read_array(context: Any, builder: Any, kind: Any, pointer: Any, start: int) -> Any:
    array = make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [_load(builder, pointer, start + 1 + k) for k in range(kind.ndim)]
    if kind.layout == "C":
        strides = [ir.Constant(ir.IntType(64), size)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        strides = strides[: kind.ndim]
    else:
        strides = [_load(builder, pointer, start + 1 + kind.ndim + k) for k in range(kind.ndim)]
    populate_array(
        array,
        data=builder.inttoptr(_load(builder, pointer, start), array.data.type),
        shape=cgutils.pack_array(builder, shape, ir.IntType(64)),
        strides=cgutils.pack_array(builder, strides, ir.IntType(64)),
        itemsize=ir.Constant(ir.IntType(64), size),
        meminfo=None,
    )
    return array._getvalue()


def _load(builder: Any, pointer: Any, slot: int) -> Any:
    """A slot; none changes during a call, so that loops need not read it again."""
    loaded = builder.load(builder.gep(pointer, [ir.Constant(ir.IntType(64), slot)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@infer_getattr
class _SlotsFields(AttributeTemplate):
    key = Slots

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.fields[name][0] if name in kind.fields else None


@lower_getattr_generic(Slots)
def _field(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    field, start = kind.fields[name]
    return read(context, builder, field, pointer, start)


class _Part(JITCodeLibrary):
    """The code of one function that a kernel calls, for the kernel to take in: neither optimised nor compiled."""

    def finalize(self) -> None:
        """Leave it as it is."""
        self._finalized = True

    def parts(self) -> dict[Any, None]:
        """The code of everything that it calls, one from the other, each once, and in an order that stays the same."""
        called = dict.fromkeys(self._linking_libraries)
        for library in self._linking_libraries:
            if isinstance(library, _Part):
                called |= library.parts()
        return called


class _Whole(JITCodeLibrary):
    """The code of a kernel with everything that it calls, which is optimised together."""

    def _finalize_final_module(self) -> None:
        self._verify_declare_only_symbols()
        self._finalized = True


class _PartCompiler(Compiler):
    """numba's own compiler without what no kernel needs, which here ends before machine code."""

    def define_pipelines(self) -> Any:
        self.state.flags.no_compile = True
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        (pipeline,) = super().define_pipelines()
        needed = PassManager(pipeline.pipeline_name)
        needed.passes = [step for step in pipeline.passes if step[0].__name__ not in NOT_NEEDED]
        needed.finalize()
        return [needed]


class _PartDispatcher(CPUDispatcher):
    """A function that kernels call and Python does not."""

    def add_overload(self, result: Any) -> None:
        """Let kernels call what was compiled; numba knows it by an object of its own, not by a pointer to code."""
        result = result._replace(entry_point=object())
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result
        _COMPILED.append(self)
        _TELL[-1]()


_COMPILED: list[_PartDispatcher] = []  # in this process, for each kind of arguments
_TELL: list[Callable[[], None]] = [lambda: None]


@contextmanager
def _counted(total: int, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell how many functions are compiled, at the start and after each."""
    before = len(_COMPILED)
    _TELL.append(lambda: tell(min(len(_COMPILED) - before, total), total))
    try:
        _TELL[-1]()
        yield
    finally:
        _TELL.pop()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without collecting garbage, which takes a tenth of the time: nearly all that numba makes stays in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


OPTIONS = {"nopython": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
_DISPATCHERS: dict[KernelFunction, _PartDispatcher] = {}


def dispatcher_of(kernel: KernelFunction) -> _PartDispatcher:
    """What numba compiles of a kernel."""
    if kernel not in _DISPATCHERS:
        options = {**OPTIONS, **kernel.options}
        _DISPATCHERS[kernel] = _PartDispatcher(kernel.py_func, targetoptions=options, pipeline_class=_PartCompiler)
    return _DISPATCHERS[kernel]


@typeof_impl.register(KernelFunction)
def _type_of_kernel(kernel: KernelFunction, _: Any) -> Any:
    return types.Dispatcher(dispatcher_of(kernel))


@global_compiler_lock
def build(kernel: KernelFunction, values: list[Any], tell: Callable[[int, int], None]) -> Code:
    """The machine code of a kernel for such arguments; ``tell`` hears how many of its functions are compiled."""
    kinds = tuple(map(type_of, values))
    dispatcher = dispatcher_of(kernel)
    with _counted(len(functions_of(kernel)), tell), _no_collection():
        dispatcher.compile(kinds)
    result = dispatcher.overloads[kinds]
    context = result.target_context
    library = _Whole(context.codegen(), ENTRY)
    library.add_ir_module(_entry(context, result, kinds))
    for part in {result.library: None} | result.library.parts():
        library.add_linking_library(part)
    library.finalize()
    outside = sorted(f.name for f in library._final_module.functions if f.is_declaration)
    returned = result.signature.return_type
    return Code(
        library._codegen._tm.emit_object(library._final_module),
        tuple(name for name in outside if not name.startswith("llvm.")),
        "none" if returned == types.none else "float" if returned == types.float64 else "int",
    )


def _entry(context: Any, result: Any, kinds: tuple[Any, ...]) -> Any:
    """The function that ctypes calls: a pointer to the result, then one to the slots of each argument."""
    word = ir.IntType(64)
    module = context.create_module(ENTRY)
    function = ir.Function(module, ir.FunctionType(word, [word.as_pointer()] * (1 + len(kinds))), name=ENTRY)
    builder = ir.IRBuilder(function.append_basic_block())
    arguments = [read(context, builder, kind, slots) for kind, slots in zip(kinds, function.args[1:], strict=True)]
    inner = context.declare_function(module, result.fndesc)
    returned = result.signature.return_type
    status, value = context.call_conv.call_function(builder, inner, returned, result.fndesc.argtypes, arguments)
    if returned != types.none:
        kind = types.float64 if returned == types.float64 else types.int64
        value = context.cast(builder, value, returned, kind)
        builder.store(value, builder.bitcast(function.args[0], value.type.as_pointer()))
    builder.ret(builder.zext(status.is_error, word))
    return module
