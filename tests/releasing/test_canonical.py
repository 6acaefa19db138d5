"""RFC 8785: its own examples, and what its subset of JSON leaves out."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsum.releasing.canonical import LARGEST_INTEGER, canonical, number_text, parse

# Appendix B: the bits of a number and its text; minus zero apart, which we refuse.
NUMBERS = {
    "0000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def of_bits(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits))[0]


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_of_appendix_b(bits, text):
    assert number_text(of_bits(bits)) == text


def test_the_example_of_section_3_2_2():
    given = rb"""{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"""
    assert canonical(parse(given)) == bytes.fromhex(
        "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e33333333"
        "3333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c"
        "5c5c5c5c222f227d"
    )


def test_the_order_of_keys_of_section_3_2_3():
    """By UTF-16 code units: the emoji, a surrogate pair, comes before a character that is smaller by its number."""
    names = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(names))) == order
    assert sorted(names) != order


def test_strings_are_escaped_as_little_as_possible():
    text = "".join(map(chr, range(0x80))) + "\u2028\u20ac\U0001f600"
    short = {8: r"\b", 9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r", 0x22: r"\"", 0x5C: r"\\"}
    expected = "".join(short.get(k, f"\\u{k:04x}" if k < 0x20 else chr(k)) for k in range(0x80))
    assert canonical(text).decode() == f'"{expected}\u2028\u20ac\U0001f600"'


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": 1, "\\u0061": 2}',
        b'[{"b": {"c": 0, "c": 0}}]',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e309",
        b"-0",
        b"-0.0",
        b"-0e5",
        b"-1e-400",
        b"9007199254740992",
        b"-9007199254740992",
        b"1" * 5000,
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"\\udfff": 1}',
        b'"\xed\xa0\x80"',
        b"\xff",
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"[1,]",
        b"{'a': 1}",
        b"[01]",
        b"[+1]",
        b"[.5]",
        b'"a\nb"',
        b"[1] [2]",
        b"[1]\0",
        b"",
        b"[1]\xc2\xa0",
        "[１]".encode(),
    ],
)
def test_json_with_more_than_one_meaning_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        parse(data)


def test_other_spellings_of_the_same_values_are_one():
    spellings = [b'{"a": 16, "b": 0.5}', b'{"b":5e-1,"a":16.0}', b' {\n"\\u0061" : 1.6e1,\t"b": 0.50}\r\n']
    assert {canonical(parse(data)) for data in spellings} == {b'{"a":16,"b":0.5}'}
    assert all(type(parse(data)["a"]) is int for data in spellings)
    assert parse(b"9007199254740991") == LARGEST_INTEGER


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -0.0, 2**53, -(2**53), "\ud800", {"\udc00": 1}, b"bytes", {1, 2}, [object()]],
)
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        canonical(value)


def test_deep_nesting_ends():
    with pytest.raises(RecursionError):
        parse(b"[" * 100_000 + b"]" * 100_000)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0 or math.copysign(1, x) > 0)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(VALUES)
def test_the_canonical_form_reads_back_and_is_its_own(value):
    data = canonical(value)
    assert json.loads(data, parse_int=float) == value
    # A whole number beyond 2^53 - 1 may be a float; parse reads only those that every parser reads exactly.
    if all(abs(number) <= LARGEST_INTEGER or number != int(number) for number in numbers(value)):
        assert canonical(parse(data)) == data


def numbers(value):
    if isinstance(value, dict):
        return [number for inner in value.values() for number in numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []
