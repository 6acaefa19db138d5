r"""JSON in canonical form (RFC 8785, JCS), and a strict parser that accepts only unambiguous JSON.

A signature covers the canonical form of what is in a file, less the signature itself: key order, white space and the
spelling of numbers and escapes do not matter, everything else does. Any implementation of RFC 8785 can check it.

Only what every JSON parser reads the same way is allowed (RFC 7493, I-JSON): no duplicate keys, no number beyond
float64, no integer beyond 2^53 - 1, no lone surrogate. Minus zero is refused too, because RFC 8785 writes it as 0.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

LARGEST_INTEGER = 2**53 - 1  # the largest integer that every JSON parser reads exactly
POSITIONAL, SMALLEST_POSITIONAL = 21, -6  # powers of ten between which ECMAScript writes a number without an exponent


def parse(data: bytes) -> Any:
    r"""JSON text as Python values.

    Raises
    ------
    ValueError
        If it is not JSON in UTF-8, or is ambiguous.
    RecursionError
        If it is nested too deeply.

    Examples
    --------
    >>> parse(b'{"b": 1.0, "a": [2e1, "\\u00e9"]}')
    {'b': 1, 'a': [20, 'é']}
    >>> parse(b'{"a": 1, "\\u0061": 2}')
    Traceback (most recent call last):
    ValueError: a key occurs twice in one object
    """
    text = data.decode("utf-8")  # a byte order mark stays in, and is not JSON
    value = json.loads(
        text, object_pairs_hook=_members, parse_int=_integer, parse_float=_number, parse_constant=_no_constant
    )
    if "\\u" in text:  # the only way to write a lone surrogate in UTF-8
        canonical(value)
    return value


def canonical(value: Any) -> bytes:
    r"""The canonical form of JSON values (RFC 8785): dicts, lists, texts, numbers, booleans and None.

    Raises
    ------
    ValueError
        If a value is not valid JSON, or not every parser would read it the same way.

    Examples
    --------
    >>> canonical({"b": [1e21, 0.002, 20.0], "a": "€\n"}).decode()
    '{"a":"€\\n","b":[1e+21,0.002,20]}'
    """
    return _written(value).encode("utf-8")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return members


def _integer(text: str) -> int:
    if text == "-0":
        raise ValueError("a number is minus zero")
    if len(text) > len(str(-LARGEST_INTEGER)) or abs(int(text)) > LARGEST_INTEGER:
        raise ValueError("an integer is beyond 2^53 - 1")
    return int(text)


def _number(text: str) -> int | float:
    """A number with a fraction or an exponent, as an int if it is an integer."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    if number == 0 and text.startswith("-"):
        raise ValueError("a number is minus zero")
    return int(number) if number.is_integer() and abs(number) <= LARGEST_INTEGER else number


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise ValueError("an integer is beyond 2^53 - 1")
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, dict):
        # Keys in the order of their UTF-16 code units, not of their characters.
        members = sorted((key.encode("utf-16-be", "surrogatepass"), key) for key in value)
        return f"{{{','.join(f'{_text(key)}:{_written(value[key])}' for _, key in members)}}}"
    raise ValueError(f"JSON cannot hold a value of type {type(value).__name__!r}")


def _text(text: str) -> str:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a text has a lone surrogate")
    return json.dumps(text, ensure_ascii=False)  # escapes the quote, the backslash and control characters only


def number_text(number: float) -> str:
    """A number as ECMAScript writes it: the shortest digits that read back as the same number.

    >>> number_text(1e-7), number_text(0.000001), number_text(333333333.33333329), number_text(1e21)
    ('1e-7', '0.000001', '333333333.3333333', '1e+21')
    """
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    if number == 0:
        if math.copysign(1, number) < 0:
            raise ValueError("a number is minus zero")
        return "0"
    # Python's repr has the shortest digits too, in another layout.
    sign, places, exponent = Decimal(repr(number)).normalize().as_tuple()
    digits = "".join(map(str, places))
    point = len(digits) + int(exponent)  # the value is 0.digits times ten to this power
    return "-" * sign + _laid_out(digits, point)


def _laid_out(digits: str, point: int) -> str:
    """Digits with their decimal point, as in section 6.1.6.1.20 of ECMA-262."""
    if len(digits) <= point <= POSITIONAL:
        return digits + "0" * (point - len(digits))
    if 0 < point <= POSITIONAL:
        return f"{digits[:point]}.{digits[point:]}"
    if SMALLEST_POSITIONAL < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
