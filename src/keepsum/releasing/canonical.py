"""JSON in canonical form (RFC 8785), a parser that accepts nothing ambiguous, and Ed25519 signatures of it."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from decimal import Decimal
from os import PathLike
from typing import Any, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from keepsum._arguments import check_flag, check_path
from keepsum._saying import arg, the
from keepsum.errors import InputError, UnreachableError
from keepsum.releasing.facts import ReleaseFacts, SignatureRecord
from keepsum.sources.atomic import check_new, write_keys
from keepsum.sources.uploads import refuse_special

# JSON in canonical form (RFC 8785, JCS), and a strict parser that accepts only unambiguous JSON.
#
# A signature covers the canonical form of what is in a file, less the signature itself: key order, white space and
# the spelling of numbers and escapes do not matter, everything else does. Any implementation of RFC 8785 can check
# it.
#
# Only what every JSON parser reads the same way is allowed (RFC 7493, I-JSON): no duplicate keys, no number beyond
# float64, no integer beyond 2^53 - 1, no lone surrogate. Minus zero is refused too, because RFC 8785 writes it as 0.

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


# Ed25519 signatures of certificates, with keys in PEM files, as made by openssl.

# Encodings of the points of order 1, 2, 4 and 8, which are not valid keys, with either sign.
_SMALL = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)
Facts = TypeVar("Facts", bound=ReleaseFacts)
LONGEST_KEY = 2**20  # bytes of a file that may hold a key
SMALL_ORDER = frozenset(_SMALL) | {code[:62] + f"{int(code[62:], 16) | 128:02x}" for code in _SMALL}


def make_keys(private: str | PathLike[str], public: str | PathLike[str], force: bool = False) -> str:
    """Write a new private key, readable by its owner alone, and its public key, which is returned in hex."""
    secret, open_to_all = check_path(private, "The private key"), check_path(public, "The public key")
    if secret.resolve() == open_to_all.resolve():
        raise InputError("The private and the public key must be two files, got the same name for both.")
    for path in (secret, open_to_all):
        check_new(path, check_flag(force, f"{arg.force}"))
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write_keys(secret, pem, open_to_all, shown, force)
    return public_hex(key.public_key())


def read_private_key(path: str | PathLike[str]) -> Ed25519PrivateKey:
    """The key of a PEM file."""
    data, mode = _read(path)
    problem, key = "", None
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except TypeError:
        problem = "must not be encrypted with a passphrase. Decrypt it first"
    except (ValueError, UnsupportedAlgorithm):
        problem = "must be a private key in PEM format. Make one with keepsum keygen"
    if problem:
        raise InputError(f"Key {the.file(path)} {problem}.")
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"Key {the.file(path)} must be an Ed25519 key, got another kind. Make one with keepsum keygen."
        )
    if os.name == "posix" and mode & 0o077:  # as ssh has it
        raise InputError(
            f"Private key {the.file(path)} must be readable by its owner only, got mode {mode:04o}. Run chmod 600, or "
            "make a new key if anybody else may have read it."
        )
    return key


def read_public_key(path: str | PathLike[str]) -> Ed25519PublicKey:
    """The public key of a PEM file."""
    data, _ = _read(path)
    key = None
    with contextlib.suppress(ValueError, UnsupportedAlgorithm):
        key = serialization.load_pem_public_key(data)
    if key is None:
        raise InputError(f"Key {the.file(path)} must be a public key in PEM format, as made by keepsum keygen.")
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"Key {the.file(path)} must be an Ed25519 key, got another kind.")
    return key


def _read(path: str | PathLike[str]) -> tuple[bytes, int]:
    name = check_path(path, "The key")
    refuse_special(name, "Key")
    try:
        with name.open("rb") as file:
            return file.read(LONGEST_KEY), os.fstat(file.fileno()).st_mode & 0o777
    except OSError as error:
        raise UnreachableError(f"Key {the.file(path)} must be readable, but: {error.strerror or error}.") from None


def public_hex(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key, in hex."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature covers: the canonical form (RFC 8785) of what is in the file, less ``signature``."""
    return canonical({name: value for name, value in document.items() if name != "signature"})


def sign(certificate: Facts, key: Ed25519PrivateKey) -> Facts:
    """The certificate with a signature."""
    signature = SignatureRecord(
        algorithm="Ed25519",
        public_key=public_hex(key.public_key()),
        value=key.sign(signed_bytes(msgspec.to_builtins(certificate))).hex(),
    )
    return msgspec.structs.replace(certificate, signature=signature)


def is_signed_by(document: Mapping[str, Any], signature: SignatureRecord, key: Ed25519PublicKey) -> bool:
    """Whether a document, as it is in its file, was signed with that key."""
    if signature.public_key != public_hex(key):
        return False
    if public_hex(key) in SMALL_ORDER:  # anything verifies under such a key
        return False
    try:
        key.verify(bytes.fromhex(signature.value), signed_bytes(document))
    except InvalidSignature:
        return False
    return True


def named_key(signature: SignatureRecord) -> Ed25519PublicKey:
    """The key that a signature names; only the reader can know whether it is the publisher's."""
    with contextlib.suppress(ValueError):
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    raise InputError("The public key in the certificate must be an Ed25519 key, and it is not.")
