"""The native library: which of its builds this processor runs, and whether it is that of the sources at hand."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from keepsum.errors import InstallationError
from keepsum.sampling.native.build import FOLDER, LEVELS, digest_of, library_path, stated_digest

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
