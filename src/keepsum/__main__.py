"""``python -m keepsum``: the same as the command ``keepsum``."""

from __future__ import annotations

from keepsum_shell import main

if __name__ == "__main__":
    main()
