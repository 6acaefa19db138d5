"""Seeded draws with NumPy's functions of floats off in their last digits, as JSON; run by ``test_processors.py``.

``KEEPSUM_OTHER`` is the number of the processor: 0 is this one, and each other number errs in its own way, one unit in
the last place, or for transforms and products of matrices one of the largest entry. ``KEEPSUM_DRAWS`` may name a wrong
sampler that does depend on the processor.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

TESTS = Path(__file__).parent
NUMBER = int(os.environ.get("KEEPSUM_OTHER", "0"))
UNIT = 2.0**-52
ELEMENTWISE = {np: ["exp", "log", "log1p", "expm1", "log2", "cos", "sin", "logaddexp", "convolve"]}
BY_LARGEST = {np.fft: ["rfft", "irfft"], np.linalg: ["cholesky", "solve", "pinv"]}


def signs(values: Any) -> Any:
    """-1, 0 or 1 for each number, as its bits say."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    bits = bits ^ np.uint64(NUMBER * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((bits ^ (bits >> np.uint64(29))) % np.uint64(3)).astype(np.float64) - 1.0


def replace(module: ModuleType, name: str, off: Callable[[Any, Any], Any]) -> None:
    """Let a function of a module err."""
    right = getattr(module, name)

    def other(*arguments: Any, **options: Any) -> Any:
        result = right(*arguments, **options)
        if "out" in options or getattr(result, "dtype", None) not in (np.float64, np.complex128) or result.size == 0:
            return result
        with np.errstate(all="ignore"):
            wrong = off(np.asarray(result), signs(np.real(result)).reshape(np.shape(result)))
        return wrong if isinstance(result, np.ndarray) else type(result)(wrong)

    for method in ("reduce", "at", "outer"):
        if hasattr(right, method):
            setattr(other, method, getattr(right, method))
    setattr(module, name, other)


def become_another() -> None:
    """Replace NumPy's functions."""

    def last_digit(values: Any, sign: Any) -> Any:
        return np.where(np.isfinite(values) & (values != np.rint(values)), values * (1.0 + sign * UNIT), values)

    for module, names in ELEMENTWISE.items():
        for name in names:
            replace(module, name, last_digit)
    for module, names in BY_LARGEST.items():
        for name in names:
            replace(module, name, lambda values, sign: values + sign * (np.abs(values).max() * UNIT))


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS), str(TESTS / "statistical")]
    if NUMBER:
        become_another()
    import test_seeded_draws as seeded

    if "last digit" in os.environ.get("KEEPSUM_DRAWS", ""):
        from keepsum.sampling.l1.splitting import packing

        packing.first_digits = lambda values: values
    names = [name for name, (exactness, _) in seeded.recorded().items() if exactness == "exact"]
    hashes = {}
    for name in names:
        exactness, data = seeded.DRAWS[name]()
        hashes[name] = [exactness, hashlib.sha256(data).hexdigest()]
    print(json.dumps(hashes))
