"""Exact random draws: no tables, no people, no confidential count."""

from keepsum.sampling.core.rng import Rng, rng

__all__ = ["Rng", "rng"]
