"""Floating-point draws for kernels of users, from the one door to randomness."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from keepsum._arguments import check_whole
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.sampling.core.rng import Stream

MOST_NUMBERS = 2**32  # in one call


class Draws:
    """Uniform and normal numbers from a stream of words, under the names that numpy's ``Generator`` has.

    What kernels get as ``rng``. Floats: 53 bits a draw, and normal numbers by inversion.

    Examples
    --------
    >>> import keepsum as ks
    >>> rng = ks.mcmc.Draws(ks.rng(seed=1).stream())
    >>> 0 < rng.random() < 1, rng.normal(size=3).shape
    (True, (3,))
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise InputError(f"Draws must come from a stream, got {type_of(stream)}. Use ks.rng().stream().")
        self.stream = stream

    def random(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Uniform numbers strictly between 0 and 1."""
        if size is None:
            return ((self.stream.word() >> 11) + 0.5) * 2.0**-53
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(check_whole(length, "The size", 0) for length in sizes)
        check_whole(math.prod(shape), "The size", 0, MOST_NUMBERS)
        words = self.stream.take(math.prod(shape))
        return (((words >> np.uint64(11)) + 0.5) * 2.0**-53).reshape(shape)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: int | tuple[int, ...] | None = None) -> Any:
        """Normal numbers."""
        return loc + scale * ndtri(self.random(size))

    def exponential(self, scale: Any = 1.0, size: int | tuple[int, ...] | None = None) -> Any:
        """Exponential numbers."""
        return -scale * np.log(self.random(size))
