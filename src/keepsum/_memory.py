"""Whether a table fits in memory, checked before the memory is taken."""

from __future__ import annotations

from pathlib import Path

from keepsum.errors import TooMuchWorkError

BYTES_A_CELL = 200  # from counts to a released table, measured at ten million cells under three levels of totals
BYTES_A_BYTE = 12  # per byte of a text file, once its rows are Python strings


def check_room(size: int, what: str, bytes_each: int) -> None:
    """Refuse what needs more memory than this process can use."""
    free, free_under_limit = available(), _process()
    needed = size * bytes_each
    if free is not None and needed > free:
        by_ulimit = free_under_limit is not None and needed > free_under_limit
        remedy = "raise the memory limit of this shell (ulimit -v)" if by_ulimit else "use a larger machine"
        raise TooMuchWorkError(
            f"{what} must fit in memory: it needs about {readable(needed)}, and {readable(free)} is available. "
            f"Drop an axis, merge categories, or {remedy}."
        )


def available() -> int | None:
    """The bytes that this process can still allocate, as far as the system reports them."""
    limits = [limit for limit in (_machine(), _container(), _process()) if limit is not None]
    return min(limits) if limits else None


def resident() -> int | None:
    """The bytes that this process has in memory, if the system reports them."""
    pages = _lines("/proc/self/statm")
    if not pages:
        return None
    import resource

    return int(pages[0].split()[1]) * resource.getpagesize()


def limited() -> bool:
    """Whether this process has a memory limit of its own (ulimit -v)."""
    return _process() is not None


def ran_out() -> str:
    """The error message when memory runs out, wherever that happens."""
    free_under_limit = _process()
    if free_under_limit is None:
        return "Memory ran out. Drop an axis, merge categories, or use a larger machine."
    return (
        f"Memory ran out: {readable(free_under_limit)} of what this shell allows is left. Raise its limit (ulimit -v)."
    )


def _machine() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container() -> int | None:
    limit = _lines("/sys/fs/cgroup/memory.max")
    used = _lines("/sys/fs/cgroup/memory.current")
    if not limit or not used or not limit[0].isdigit():
        return None
    return max(0, int(limit[0]) - int(used[0]))


def _process() -> int | None:
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _lines("/proc/self/statm")
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return max(0, limit - int(pages[0].split()[0]) * resource.getpagesize())


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def readable(size: int) -> str:
    """A number of bytes in a human-readable unit.

    >>> readable(2_500_000_000), readable(40_000_000)
    ('2.5 GB', '40 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{max(1, size // 10**6):,} MB"
