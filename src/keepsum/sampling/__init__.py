"""Exact random draws: no tables, no people, no confidential count."""

from keepsum.sampling.rng import Rng, rng

__all__ = ["Rng", "rng"]
