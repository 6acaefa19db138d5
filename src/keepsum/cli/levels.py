"""The level of margins of error, as options give it."""

from __future__ import annotations

import re

from keepsum._text import given
from keepsum.errors import InputError


def parse_level(text: str) -> float:
    """A probability between 0 and 1, as digits after a decimal point."""
    level = float(text) if re.fullmatch(r"0?\.[0-9]+", text) else 0.0
    if not 0 < level < 1:
        raise InputError(f"Option --level must lie between 0 and 1, such as 0.95, got {given(text)}.")
    return level
