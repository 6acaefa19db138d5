"""The command line. A leaf: nothing imports it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``keepsum``; the shell needs typer and rich, which the library does not."""
    try:
        from keepsum.cli.app import run
    except KeyboardInterrupt:
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(
            f"keepsum: the command line needs {error.name}, which is not installed. "
            f"Install it with: pip install 'keepsum[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))
