"""Exact integer algebra: no floats, no tables, no people.

``Lattice`` is the lattice of all noise that keeps some totals; ``structure.decompose`` divides a matrix of totals
into regions and blocks (``Structure``); ``shortest``, ``opposite`` and ``graver`` measure how far apart tables must
be.
"""

from keepsum.lattice.lattice import Lattice, Smith

__all__ = ["Lattice", "Smith"]
