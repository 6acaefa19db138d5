"""The command line. A leaf: nothing imports it but ``keepsum_shell``, which starts it."""

from __future__ import annotations


def main() -> None:
    """Run ``keepsum``."""
    from keepsum_shell import main

    main()
