"""The certificate: the public document of a release, which anybody can check."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Self, TypeAlias

import msgspec

from keepsum._holding import Holding
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.releasing.canonical import parse
from keepsum.releasing.facts import EARLIER, SCHEMA, ReleaseFacts
from keepsum.releasing.schema_errors import in_words
from keepsum.releasing.sections import as_html
from keepsum.releasing.showing import certificate_topics
from keepsum.releasing.statements import warnings_of

FAMILY = "keepsum.certificate/"
UNPUBLISHED = "keepsum.certificate/1"


class CertificateRecord(ReleaseFacts, frozen=True):
    """What is public about a release.

    It holds facts only; sentences are made from them when it is shown.
    """

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a certificate strictly: no unknown field, no missing field, no duplicate key."""
        if not isinstance(data, (bytes, str)):
            raise InputError(f"A certificate must be read from bytes or text, got {type_of(data)}.")
        return cls.from_document(document_of(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data))

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The certificate in a parsed JSON document, which is what a signature covers."""
        _check_schema(document)
        certificate, problem = None, ""
        try:
            certificate = msgspec.convert(document, cls)
            datetime.strptime(certificate.released, "%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            problem = in_words(str(error))
        if "unknown field" in problem:
            raise InputError(
                f"The certificate must follow the schema {SCHEMA} as this version knows it, but: {problem}. If a later "
                f"version of Keepsum wrote it, update Keepsum."
            )
        if certificate is None or problem:
            raise InputError(f"The certificate must follow the schema {SCHEMA}, but: {problem}.")
        return certificate

    def to_json(self) -> bytes:
        """The certificate as a file for people and machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @property
    def warnings(self) -> list[str]:
        """What every reader must know."""
        return warnings_of(self)

    def _repr_html_(self) -> str:
        return as_html(certificate_topics(self))


AnyCertificate: TypeAlias = CertificateRecord | Holding[CertificateRecord]  # as the layers hold it, or as users do


def document_of(data: bytes) -> Any:
    """The JSON document in a file, which must be unambiguous."""
    document, problem = None, ""
    try:
        document = parse(data)
    except (ValueError, RecursionError) as error:
        problem = "it is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
    if problem:
        raise InputError(f"The certificate must follow the schema {SCHEMA}, but {problem}.")
    return document


def _check_schema(document: Any) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == UNPUBLISHED:
        raise InputError(
            f"The certificate must follow the schema {SCHEMA}, got {UNPUBLISHED}, which was never published. "
            f"Release the table again."
        )
    if isinstance(schema, str) and schema.startswith(FAMILY) and schema not in (EARLIER, SCHEMA):
        raise InputError(
            f"The certificate must follow the schema {SCHEMA}, got another. If a later version of Keepsum wrote it, "
            f"update Keepsum."
        )


def json_schema() -> bytes:
    """The JSON Schema of certificates, as kept beside this module."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(CertificateRecord)), indent=2) + b"\n"
