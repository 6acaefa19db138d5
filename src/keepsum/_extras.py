"""The extras: which packages each needs, and the one sentence about a package that is not installed.

Keepsum is on no package index yet, so an extra is installed from a clone.
"""

from __future__ import annotations

from importlib.util import find_spec

from keepsum.errors import InputError

PACKAGES = {
    "accounting": ("dp_accounting",),
    "report": ("jinja2", "matplotlib"),
    "sql": ("ibis", "duckdb", "pyarrow"),
    "web": ("starlette", "uvicorn", "jinja2", "matplotlib"),
}


def missing(what: str, extra: str, *packages: str, instead: str = "") -> str:
    """What to say where packages of an extra are not installed; ``instead`` is a way to do without them."""
    one = len(packages) == 1
    return (
        f"{what} needs {' and '.join(packages)}, which {'is' if one else 'are'} not installed. "
        f"{f'{instead}, or run' if instead else 'Run'} in a clone of Keepsum: pip install '.[{extra}]'"
    )


def check_installed(what: str, extra: str) -> None:
    """Refuse to go on, before anything else is done, if packages of an extra are not installed."""
    absent = [name for name in PACKAGES[extra] if find_spec(name) is None]
    if absent:
        raise InputError(missing(what, extra, *absent))
