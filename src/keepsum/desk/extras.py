"""What the page is made with: the extra ``keepsum[web]``."""

from __future__ import annotations

from importlib.util import find_spec

from keepsum.errors import InputError

NEEDED = ("fastapi", "uvicorn", "jinja2", "matplotlib")


def check_installed() -> None:
    """Refuse to open the page, before anything else is done for it, if what it needs is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(
            f"The page needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
            f"Install {'it' if len(missing) == 1 else 'them'} with: pip install 'keepsum[web]'"
        )
