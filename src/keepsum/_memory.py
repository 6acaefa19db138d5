"""Whether a table fits in memory, found out before the machine does."""

from __future__ import annotations

from pathlib import Path

from keepsum.errors import DataError

BYTES_A_CELL = 200  # from counts to a released table, measured at ten million cells under three levels of totals
BYTES_A_BYTE = 12  # of a text file, as rows of Python's own texts


def check_room(size: int, what: str, bytes_each: int) -> None:
    """Refuse what would need more memory than this process may use."""
    room, own = available(), _process()
    need = size * bytes_each
    if room is not None and need > room:
        larger = "use a larger machine" if own is None or need <= own else "raise the limit of this shell (ulimit -v)"
        raise DataError(
            f"{what} must fit in memory: it needs about {_shown(need)}, and {_shown(room)} can be had. "
            f"Drop an axis, merge categories, or {larger}."
        )


def available() -> int | None:
    """The bytes that this process may still take, as far as the system tells."""
    limits = [limit for limit in (_machine(), _container(), _process()) if limit is not None]
    return min(limits) if limits else None


def limited() -> bool:
    """Whether this process was given a limit of its own (ulimit -v)."""
    return _process() is not None


def ran_out() -> str:
    """What to say when memory ran out, whatever it was that needed it."""
    left = _process()
    if left is None:
        return "Memory ran out. Drop an axis, merge categories, or use a larger machine."
    return f"Memory ran out: of what this shell allows {_shown(left)} can be had. Raise its limit (ulimit -v)."


def _machine() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container() -> int | None:
    most = _lines("/sys/fs/cgroup/memory.max")
    used = _lines("/sys/fs/cgroup/memory.current")
    if not most or not used or not most[0].isdigit():
        return None
    return max(0, int(most[0]) - int(used[0]))


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


def _shown(size: int) -> str:
    """A number of bytes for people.

    >>> _shown(2_500_000_000), _shown(40_000_000)
    ('2.5 GB', '40 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{max(1, size // 10**6):,} MB"
