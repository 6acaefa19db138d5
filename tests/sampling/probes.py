"""Functions of the kernels that Python does not call, compiled for tests that call them."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.native import build
from support import HANG

HERE = Path(__file__).parent


@lru_cache
def probe(name: str, *sources: str) -> ctypes.CDLL:
    """The library of a file of this folder, with those of the package that it needs."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"{name}.so"
        files = [HERE / f"{name}.c", *(build.FOLDER / source for source in sources)]
        command = [*(build.compiler() or build.zig()), *build.FLAGS, f"-I{build.FOLDER}", *files, "-o", library]
        subprocess.run(list(map(str, command)), check=True, timeout=HANG)
        return ctypes.CDLL(str(library))


class Probe(Kernel):
    """A function of such a library, called as kernels are."""

    def __init__(self, library: tuple[str, ...], name: str, *arguments: object) -> None:
        super().__init__(name, *arguments)
        self.library = library

    def __call__(self, *arguments: object) -> int:
        """Compile it where that is not done, and run it."""
        if self._function is None:
            self._function = getattr(probe(*self.library), self.__name__)
            self._function.restype = ctypes.c_int64
        return super().__call__(*arguments)
