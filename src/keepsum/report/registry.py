"""An entry for the public registry of deployments of differential privacy, from a certificate.

The form is that of the registry's own JSON Schema (``registry_schema.SOURCE``: OpenDP's ``deployments-registry-data``,
``schemas/deployments-schema.yaml`` at commit 057e5d8, read 2026-11-17), which goes back to arXiv 2509.13509. The copy
that was read does not date its commits; an entry of that form in the same repository is for data published on
2026-09-01. The paper's own list of fields was not at hand, so nothing here is taken from it.

What only the publisher knows is null where the registry requires it and left out where it does not; both are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

import msgspec

from keepsum._holding import record_in
from keepsum._text import given, type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import decimal_text
from keepsum.releasing.certificate import AnyCertificate, CertificateRecord
from keepsum.report import registry_words as words
from keepsum.report.claims import Claim, claim_of
from keepsum.report.markdown import marked
from keepsum.report.registry_schema import PUBLISHER, REPLACEABLE, REQUIRED, SOURCE, Entry


def registry_entry(certificate: AnyCertificate, publisher: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An entry of the registry for a release, and what is missing from it.

    Parameters
    ----------
    certificate
        The certificate of the release.
    publisher
        What only the publisher knows, in the form of the entry: ``{"basic": {"name": "Counties"}, "url_slug": "..."}``.

    Returns
    -------
    dict
        ``schema``: the version of the registry's schema. ``fill_in``: the fields that the publisher has yet to fill
        in, ``required`` (null in the entry) and ``optional`` (not in it). ``entry``: the entry, as the registry wants
        it once nothing required is missing. Its texts are Markdown.

    Raises
    ------
    InputError
        If the publisher sets a field that does not exist, that the certificate answers, or to a wrong value.
    """
    certificate = record_in(certificate, CertificateRecord)
    if not isinstance(certificate, CertificateRecord):
        raise InputError(f"An entry of the registry must be made from a certificate, got {type_of(certificate)}.")
    told = _told(publisher)
    entry = _with(_answered(certificate), told)
    missing = [field for field in PUBLISHER if field not in told]
    tiers = [PUBLISHER[field] for field in missing]
    entry["deployment"]["administrative"]["tier"] = max(1, min(tiers, default=4) - 1)
    _check(entry)
    return {
        "schema": dict(SOURCE),
        "fill_in": {
            "required": [field for field in missing if field in REQUIRED],
            "optional": [field for field in missing if field not in REQUIRED],
        },
        "entry": entry,
    }


def as_json(document: Mapping[str, Any]) -> bytes:
    """What :func:`registry_entry` returns, as a file."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def filled_in(data: bytes) -> dict[str, Any]:
    """What a publisher has filled in in a file of :func:`as_json`, for :func:`registry_entry`.

    Raises
    ------
    InputError
        If it is no such file.
    """
    document: Any = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = msgspec.json.decode(data)
    entry = document.get("entry") if isinstance(document, dict) else None
    deployment = entry.get("deployment") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(deployment, dict):
        raise InputError("The entry of the registry must be a file that keepsum report wrote.")
    told: dict[str, Any] = {} if entry.get("url_slug") is None else {"url_slug": entry["url_slug"]}
    for field in PUBLISHER:
        section, _, name = field.partition(".")
        content = deployment.get(section)
        value = content.get(name) if name and isinstance(content, dict) else None
        if value is not None:
            told.setdefault(section, {})[name] = value
    return told


def _answered(certificate: CertificateRecord) -> dict[str, Any]:
    """The entry in the order of the registry's schema; None for what only the publisher knows."""
    facts, claim = marked(certificate), claim_of(certificate)
    return {
        "url_slug": None,
        "deployment": {
            "basic": {
                "name": None,
                "data_curators": None,
                "description": words.description(facts),
                "intended_use": None,
                "data_product_type": "Summary statistics",
                "data_product_region": None,
                "data_product_sector": None,
                "publication_date": certificate.released[:10],
            },
            "dp_variant": {
                "variant_name": claim.variant,
                "data_domain": words.data_domain(facts),
                "unprotected_quantities": words.unprotected_quantities(facts),
            },
            "privacy_loss": {
                "privacy_unit": claim.subject[0].upper() + claim.subject[1:],
                "privacy_unit_details": words.privacy_unit_details(facts, claim),
                "number_of_privacy_units": None,
                "privacy_parameters": _parameters(claim),
                "privacy_parameters_details": words.privacy_parameters_details(facts, claim),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The publisher holds the confidential counts, adds the noise and is trusted.",
                "trust_assumptions": None,
                "actors": None,
                "release_type": None,
                "release_type_details": None,
                "data_source_type": None,
                "data_source_type_details": None,
                "access_type": "Non-interactive",
                "access_type_details": "A table is published; nobody can query the confidential data.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": None,
                "mechanisms": words.mechanisms(facts),
                "composition": words.composition(facts),
                "post_processing": words.post_processing(facts),
                "justification": None,
                "utility": words.utility(facts),
                "additional_information": words.additional_information(facts),
            },
            "administrative": {
                "evidence_sources": None,
                "status": "Draft",
                "registry_authors": None,
                "tier": 1,
            },
        },
    }


def _parameters(claim: Claim) -> dict[str, float]:
    """The loss of one unit; the digits are those of the certificate, or rounded up."""
    loss = {"epsilon": claim.epsilon, "delta": claim.delta, "rho": claim.rho}
    return {name: float(decimal_text(value)) for name, value in loss.items() if value is not None}


# -- what the publisher tells -----------------------------------------------------------------------


def _told(publisher: Mapping[str, Any] | None) -> dict[str, Any]:
    """The publisher's fields by their names, such as 'basic.name'."""
    told = dict(_fields({} if publisher is None else publisher))
    for field in told:
        if field not in PUBLISHER and field not in REPLACEABLE:
            raise InputError(
                f"publisher= must only set what a certificate does not answer, got {given(field)}. "
                f"Set {', '.join(PUBLISHER)}, {' or '.join(sorted(REPLACEABLE))}."
            )
    return told


def _fields(publisher: Any) -> Iterator[tuple[str, Any]]:
    problem = "publisher= must be a mapping such as {'basic': {'name': 'Counties'}}"
    if not isinstance(publisher, Mapping):
        raise InputError(f"{problem}, got {type_of(publisher)}.")
    for section, content in publisher.items():
        if not isinstance(section, str):
            raise InputError(f"{problem}, got a key that is {type_of(section)}.")
        if section == "url_slug":
            yield section, content
        elif isinstance(content, Mapping):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            raise InputError(f"{problem}, got {type_of(content)} for {given(section)}.")


def _with(entry: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with what the publisher told, without optional fields that nobody filled in."""
    deployment = {
        section: {
            name: told.get(f"{section}.{name}", value)
            for name, value in content.items()
            if f"{section}.{name}" in told or f"{section}.{name}" in REQUIRED or value is not None
        }
        for section, content in entry["deployment"].items()
    }
    return {"url_slug": told.get("url_slug"), "deployment": deployment}


def _check(entry: dict[str, Any]) -> None:
    problem = ""
    try:
        made = msgspec.convert(entry, Entry)
        date.fromisoformat(made.deployment.basic.publication_date)
    except msgspec.ValidationError as error:
        problem = str(error).replace("$.deployment.", "").replace("$.", "")
    except ValueError:
        problem = "`basic.publication_date` is not a day that exists"
    if problem:
        raise InputError(f"publisher= must follow the schema of the registry, but: {problem}.")
