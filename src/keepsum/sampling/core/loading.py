"""Compiled code on disk and in memory: files that are whole or not used, and functions that Python calls.

Only llvmlite is needed to put code into memory, not numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

ENTRY = "keepsum_kernel"  # the name of the function in compiled code
DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Code:
    """An object file, the functions outside that it calls, and what it returns: "int", "float" or "none"."""

    binary: bytes
    outside: tuple[str, ...]
    returns: str


@dataclass(frozen=True)
class Loaded:
    """Compiled code in memory, to be called with the slots of its arguments; ctypes frees the interpreter's lock."""

    function: Any
    returns: str
    engine: Any  # owns the memory

    def __call__(self, *slots: bytes) -> int | float | None:
        """Run it."""
        if self.returns == "float":
            real = ctypes.c_double()
            status = self.function(ctypes.byref(real), *slots)
            result: int | float | None = real.value
        else:
            integer = ctypes.c_int64()
            status = self.function(ctypes.byref(integer), *slots)
            result = integer.value if self.returns == "int" else None
        if status:
            raise AssertionError("a compiled kernel ended with an error: it divided by zero, or an array went missing")
        return result


@lru_cache(maxsize=1)
def machine() -> str:
    """What compiled code depends on but for its text and its arguments: versions, processor, settings of numba."""
    import llvmlite
    import llvmlite.binding as llvm

    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and "CACHE" not in item[0])
    with suppress(OSError):
        settings.append(("file", Path(".numba_config.yaml").read_text(encoding="utf-8", errors="replace")))
    processor = (llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return repr((_numba(), llvmlite.__version__, np.__version__, processor, settings))


def _numba() -> str:
    """The version of numba, without importing it: a digest of the file that states it."""
    found = find_spec("numba")
    stated = None if found is None or found.origin is None else Path(found.origin).with_name("_version.py")
    if stated is not None and stated.is_file():
        return hashlib.sha256(stated.read_bytes()).hexdigest()
    from importlib.metadata import version  # takes longer to import than all else here

    return version("numba")


def keep(path: Path, code: Code) -> None:
    """Write code to a file, at once or not at all; a full disk, or a folder that is gone, keeps nothing."""
    head = json.dumps({"outside": code.outside, "returns": code.returns}).encode()
    content = head + b"\n" + code.binary
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{uuid4().hex}")
    with suppress(OSError):
        try:
            unfinished.write_bytes(hashlib.sha256(content).digest() + content)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def kept(path: Path) -> Code | None:
    """The code in a file; None if it is missing, cut off or changed, or if this process lacks what it calls."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, content = content[:DIGEST], content[DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    head, _, binary = content.partition(b"\n")
    facts = json.loads(head)
    code = Code(binary, tuple(facts["outside"]), facts["returns"])
    return code if is_complete(code) else None


def is_complete(code: Code) -> bool:
    """Whether this process has all functions that the code calls: LLVM would end it if one were missing."""
    import llvmlite.binding as llvm

    _engine()  # LLVM looks for functions in this process from its first engine on
    return all(llvm.address_of_symbol(name) for name in code.outside)


def load(code: Code) -> Loaded:
    """Put code into memory."""
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.binary))
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address(ENTRY))
    return Loaded(function, code.returns, engine)


def _engine() -> Any:
    """A new place for code in memory."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), host)
