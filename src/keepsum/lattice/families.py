"""TEMPORARY."""
from dataclasses import dataclass
from keepsum._arrays import IntArray
@dataclass(frozen=True, eq=False)
class Collapse:
    """One family of totals, summed out."""
    row: IntArray
    column: IntArray
    component: IntArray
