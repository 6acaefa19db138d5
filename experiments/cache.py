"""A cache of slow steps, so that a stopped run can be resumed and a second run is short."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import keepsum

Values = dict[str, np.ndarray]


@lru_cache(maxsize=1)
def library_version() -> str:
    """A hash of every source file of the library, since any change there may change a result."""
    digest = hashlib.sha256(np.__version__.encode())
    root = Path(keepsum.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def code_version(module: ModuleType | None) -> str:
    """A hash of the library and of the module that defines a step."""
    source = inspect.getsource(module) if module else ""
    return hashlib.sha256((library_version() + source).encode()).hexdigest()


class Cache:
    """A folder of results, one ``.npz`` file per step, named by a hash of its parameters and of the code.

    Parameters
    ----------
    folder
        The folder of the files, created with the first of them.
    say
        Called with a line about each step that is run.

    Examples
    --------
    >>> import tempfile
    >>> def double(x):
    ...     return {"y": 2 * x}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder), lambda line: None)
    ...     first = cache.step(double, x=21)
    ...     again = cache.step(double, x=21)
    >>> int(first["y"]), int(again["y"]), cache.hits
    (42, 42, 1)
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say, self.hits = folder, say, 0

    def step(self, work: Callable[..., dict[str, Any]], **parameters: Any) -> Values:
        """Run ``work(**parameters)``, or read its earlier result; ``seconds`` is how long it took."""
        name, described = work.__name__, json.dumps(parameters, sort_keys=True)
        key = hashlib.sha256(f"{name} {described} {code_version(inspect.getmodule(work))}".encode()).hexdigest()
        path = self.folder / f"{name}-{key[:24]}.npz"
        if path.exists():
            self.hits += 1
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        self.say(f"{name} {described}")
        start = time.perf_counter()
        values = {what: np.asarray(value) for what, value in work(**parameters).items()}
        values.setdefault("seconds", np.asarray(time.perf_counter() - start))
        self._save(path, values)
        return values

    def _save(self, path: Path, values: Values) -> None:
        """Write atomically: a stopped run leaves no partial file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".temporary")
        with temporary.open("wb") as file:
            np.savez_compressed(file, **values)
        temporary.replace(path)
