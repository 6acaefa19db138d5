"""How many threads work: one for each core that this process may use, in Python and in the shell alike."""

from __future__ import annotations

import os
from typing import Any


def cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return max(1, len(affinity(0)) if affinity else os.cpu_count() or 1)


def threads_of(threads: Any) -> int:
    """The number of threads that is asked for; by default one for each core. It changes nothing but time.

    >>> threads_of(3)
    3
    >>> threads_of(None) == cores()
    True
    """
    if threads is None:
        return cores()
    from keepsum._arguments import check_whole  # NumPy, which the shell does without until it computes

    return check_whole(threads, "The number of threads", 1)
