"""Exact integer algebra: no floats, no tables, no people."""

from keepsum.lattice.lattice import Lattice, Smith

__all__ = ["Lattice", "Smith"]
