"""What is wrong with a certificate, in words: which field, and what it must be."""

from __future__ import annotations

import re

# What the patterns of ``facts.py`` allow, by the field that has them.
EXPECTED = {
    "sha256": "64 hexadecimal digits in small letters",
    "public_key": "64 hexadecimal digits in small letters",
    "value": "128 hexadecimal digits in small letters, or a whole number of a kept total as text",
    "released": "a time such as 2026-01-31T12:00:00Z",
    "epsilon": "a decimal number as text",
    "delta": "a decimal number as text",
    "rho": "a decimal number as text",
    "parameters": "quotients such as 1/4, or a name in small letters",
    "name": "a name in small letters",
    "method": "a name in small letters, digits and underscores",
}
_PATTERN = re.compile(r"Expected `\w+` matching regex .* - at `\$\.?(?P<place>.*)`$", re.DOTALL)


def in_words(problem: str) -> str:
    """A problem that the schema has with a document; patterns are replaced by what they allow.

    >>> in_words(r"Expected `str` matching regex '^[0-9a-f]{64}$' - at `$.table.sha256`")
    "field 'table.sha256' must be 64 hexadecimal digits in small letters"
    >>> in_words("Expected `int`, got `str` - at `$.table.cells`")
    'Expected `int`, got `str` - at `$.table.cells`'
    """
    match = _PATTERN.search(problem)
    if match is None:
        return "field 'released' must be a time that exists" if "time data" in problem else problem
    place = match["place"]
    fields = re.findall(r"[a-z_0-9]+", place)
    known = next((EXPECTED[field] for field in reversed(fields) if field in EXPECTED), "text of another form")
    return f"field {place!r} must be {known}"
