"""Ed25519 signatures of certificates, with keys in PEM files, as made by openssl."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from keepsum._arguments import check_flag, check_path
from keepsum.errors import InputError
from keepsum.releasing.canonical import canonical
from keepsum.releasing.facts import ReleaseFacts, SignatureRecord
from keepsum.sources.atomic import check_new, write_keys
from keepsum.sources.special_files import refuse_special

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
        check_new(path, check_flag(force, "force="))
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
        raise InputError(f"Key {str(path)!r} {problem}.")
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"Key {str(path)!r} must be an Ed25519 key, got another kind. Make one with keepsum keygen.")
    if os.name == "posix" and mode & 0o077:  # as ssh has it
        raise InputError(
            f"Private key {str(path)!r} must be readable by its owner only, got mode {mode:04o}. "
            f"Run chmod 600, or make a new key if anybody else may have read it."
        )
    return key


def read_public_key(path: str | PathLike[str]) -> Ed25519PublicKey:
    """The public key of a PEM file."""
    data, _ = _read(path)
    key = None
    with contextlib.suppress(ValueError, UnsupportedAlgorithm):
        key = serialization.load_pem_public_key(data)
    if key is None:
        raise InputError(f"Key {str(path)!r} must be a public key in PEM format, as made by keepsum keygen.")
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"Key {str(path)!r} must be an Ed25519 key, got another kind.")
    return key


def _read(path: str | PathLike[str]) -> tuple[bytes, int]:
    """The file of a key, and who may read it."""
    name = check_path(path, "The key")
    refuse_special(name, "Key")
    try:
        with name.open("rb") as file:
            return file.read(LONGEST_KEY), os.fstat(file.fileno()).st_mode & 0o777
    except OSError as error:
        raise InputError(f"Key {str(path)!r} must be readable, but: {error.strerror or error}.") from None


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
