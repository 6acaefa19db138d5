"""How cells are shaded: by the size of the count, or by the margin of error beside it; the script does the same."""

from __future__ import annotations

import math

STEPS = 6
# The upper ends of relative margins, of all steps but the last.
RELATIVE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def count_step(count: int, largest: int) -> int:
    """The step of a count on a logarithmic scale from 0 to the largest one; 0 for counts that are not above 0.

    >>> [count_step(count, 1000) for count in (-5, 0, 1, 10, 100, 1000)]
    [0, 0, 1, 3, 5, 6]
    """
    if count <= 0:
        return 0
    return min(STEPS, math.ceil(STEPS * math.log1p(count) / math.log1p(largest) - 1e-9))


def relative_step(count: int, margin: int) -> int:
    """The step of a relative margin: the last one if it is larger than the count.

    >>> [relative_step(100, margin) for margin in (0, 1, 10, 30, 100, 200)]
    [0, 0, 2, 4, 5, 6]
    """
    if margin == 0:
        return 0
    if count <= 0:
        return STEPS
    return next((step for step, end in enumerate(RELATIVE) if margin <= end * count), STEPS)
