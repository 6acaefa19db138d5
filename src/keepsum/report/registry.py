"""An entry for the public registry of deployments of differential privacy, from a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from keepsum._holding import record_in
from keepsum._saying import arg
from keepsum._text import given, type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import decimal_text
from keepsum.releasing.certificate import AnyCertificate, CertificateRecord
from keepsum.releasing.codec import json_file, records_of
from keepsum.releasing.wording import (
    RANDOMNESS,
    PersonStatements,
    block_lines,
    guarantee_lines,
    kept_totals,
    ledger_words,
    loss_concern,
    noise,
    nonnegative,
    records_concern,
    warnings_of,
)
from keepsum.report.claims import FLOATING_POINT, ReleaseClaim, claim_of, margin, marked, unprotected, weak_reading

# The form of an entry of the registry of deployments, and which of its fields a certificate cannot know.
#
# The fields, their order and their choices are those of ``schemas/deployments-schema.yaml`` of the registry's data
# (``SOURCE``), written down anew. ``schema.json`` beside this file is made from these classes.

SOURCE = {
    "registry": "Differential Privacy Deployments Registry (OpenDP)",
    "repository": "https://github.com/opendp/deployments-registry-data",
    "schema": "schemas/deployments-schema.yaml",
    "commit": "057e5d81cf60150dd3307e0cf4504b957802fb3b",
    "read": "2026-11-17",
    "paper": "https://arxiv.org/abs/2509.13509",
}

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Missing: TypeAlias = Text | None  # null until the publisher fills it in
Optional: TypeAlias = Text | UnsetType


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of an entry: no unknown field."""


class Curator(Section, frozen=True, kw_only=True):
    """Who publishes the data."""

    data_curator_name: Text
    data_curator_type: Literal["Government", "Industry", "Nonprofit"]


class Basic(Section, frozen=True, kw_only=True):
    """What was published, by whom and for what."""

    name: Missing
    data_curators: Annotated[list[Curator], Meta(min_length=1)] | None
    description: Text
    intended_use: Missing
    data_product_type: Literal["Summary statistics"]
    data_product_region: Missing
    data_product_sector: (
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | UnsetType
    ) = UNSET
    publication_date: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?!\n)$")]


class DpVariant(Section, frozen=True, kw_only=True):
    """The variant of differential privacy, and what it leaves out."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Custom"]
    data_domain: Text
    unprotected_quantities: Text


class PrivacyParameters(Section, frozen=True, kw_only=True):
    """The loss of one privacy unit."""

    epsilon: float | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    rho: float | UnsetType = UNSET


class PrivacyLoss(Section, frozen=True, kw_only=True):
    """Whom the loss concerns, and how large it is."""

    privacy_unit: Text
    privacy_unit_details: Text
    number_of_privacy_units: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    privacy_parameters: PrivacyParameters
    privacy_parameters_details: Text


class DeploymentModel(Section, frozen=True, kw_only=True):
    """Who is trusted, and how the data are published."""

    model_name: Literal["Central"]
    model_name_details: Text
    trust_assumptions: Optional = UNSET
    actors: Optional = UNSET
    release_type: Literal["One release", "Many releases"] | UnsetType = UNSET
    release_type_details: Optional = UNSET
    data_source_type: Literal["Static", "Dynamic"] | UnsetType = UNSET
    data_source_type_details: Optional = UNSET
    access_type: Literal["Non-interactive"]
    access_type_details: Text


class Implementation(Section, frozen=True, kw_only=True):
    """How it was done."""

    preprocessing_and_hyperparameter_tuning: Optional = UNSET
    mechanisms: Text
    composition: Text
    post_processing: Text
    justification: Optional = UNSET
    utility: Text
    additional_information: Text


class Administrative(Section, frozen=True, kw_only=True):
    """The entry itself."""

    evidence_sources: dict[str, dict[str, Any]] | UnsetType = UNSET
    status: Literal["Draft"]
    registry_authors: Annotated[list[Text], Meta(min_length=1)] | None
    tier: Literal[1, 2, 3]


class Deployment(Section, frozen=True, kw_only=True):
    """All of it."""

    basic: Basic
    dp_variant: DpVariant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    implementation: Implementation
    administrative: Administrative


class Entry(Section, frozen=True, kw_only=True):
    """An entry of the registry; null stands for what only the publisher knows."""

    url_slug: Missing
    deployment: Deployment


# What only the publisher knows, with the tier of the registry that a field belongs to.
PUBLISHER: dict[str, int] = {
    "url_slug": 1,
    "basic.name": 1, "basic.data_curators": 1, "basic.intended_use": 1, "basic.data_product_region": 1,
    "administrative.registry_authors": 1,
    "basic.data_product_sector": 1, "administrative.evidence_sources": 1,
    "deployment_model.release_type": 2, "deployment_model.data_source_type": 2,
    "deployment_model.data_source_type_details": 2,
    "privacy_loss.number_of_privacy_units": 3,
    "deployment_model.trust_assumptions": 3, "deployment_model.actors": 3,
    "deployment_model.release_type_details": 3,
    "implementation.preprocessing_and_hyperparameter_tuning": 3, "implementation.justification": 3,
}  # fmt: skip
REQUIRED = frozenset(
    {"url_slug", "administrative.registry_authors"}
    | {f"basic.{name}" for name in ("name", "data_curators", "intended_use", "data_product_region")}
)
REPLACEABLE = frozenset({"basic.description", "basic.publication_date"})  # the publisher may know better


def json_schema() -> bytes:
    """The JSON Schema of entries, as kept beside this module."""
    return json_file(msgspec.json.schema(Entry))


# The fields of an entry of the registry that a certificate answers, in words.
#
# Each function takes the certificate with its names marked for Markdown (``claims.marked``), and says no more than
# the certificate does.


def description(facts: CertificateRecord) -> str:
    """What was published."""
    return (
        f"A table of counts by {_axes(facts)}: {facts.table.cells:,} cells with random noise. "
        f"Kept exactly: {kept_totals(facts.kept, facts.domain)}."
    )


def data_domain(facts: CertificateRecord) -> str:
    """The tables among which the guarantee holds."""
    zeros = len(facts.domain.structural_zeros)
    less = f", less {zeros:,} that are declared impossible" if zeros else ""
    totals = " with the same kept totals" if facts.kept.parts else ""
    return f"All tables of whole counts over the {facts.table.cells:,} combinations of {_axes(facts)}{less}{totals}."


def unprotected_quantities(facts: CertificateRecord) -> str:
    """Whatever is published without noise, or follows from what is."""
    return _bullets(sentence for _, sentence in unprotected(facts)) or "None."


def privacy_unit_details(facts: CertificateRecord, claim: ReleaseClaim) -> str:
    """Which tables are adjacent, and what the loss is for each attribute."""
    person = PersonStatements.of(facts)
    same = " and have the same kept totals" if facts.kept.parts else ""
    lines = [
        f"Adjacent tables differ by a change of one {person.subject}'s value of one attribute{same}"
        f"{_others(person, facts)}."
        if claim.unit != "change"
        else f"Adjacent tables are at distance 1{same}.",
        *(_losses(person) if claim.guaranteed else ["Nothing is guaranteed for such a change."]),
        *records_concern(person.records),
    ]
    if not claim.whole and claim.unit != "change":
        lines.append(f"The loss for a change of several attributes of one {person.subject} at once may be larger.")
    if not person.all_exact():
        lines.append("A distance given as 'at most' is an upper bound: the true loss is this or smaller.")
    if claim.unit == "counted person":
        lines.append("The table was given as counts: whether every person is counted once is not known.")
    return _bullets(lines)


def _losses(person: PersonStatements) -> list[str]:
    attributes = [person.attribute(attribute) for attribute in person.person.attributes]
    return [f"{loss}." for loss in (person.headline(), *attributes)]


def _others(person: PersonStatements, facts: CertificateRecord) -> str:
    several = facts.kept.parts and person.several_change
    return ", for which other counts may have to change too" if several else ""


def privacy_parameters_details(facts: CertificateRecord, claim: ReleaseClaim) -> str:
    """What the numbers are, and where they come from."""
    person, records = PersonStatements.of(facts), records_of(facts.records)
    guarantee = person.guarantee
    per_distance, sampling = guarantee_lines(guarantee)
    if not claim.guaranteed:
        return _bullets([*claim.reasons, "So nothing is guaranteed, and no parameters are stated."])
    against = [f"The loss is for {claim.subject}. {sentence}" for sentence in weak_reading(person)]
    loss = [f"{per_distance}.", sampling, *loss_concern(guarantee, records)]
    return _bullets([*claim.reasons, *against, *loss])


def mechanisms(facts: CertificateRecord) -> str:
    """The noise, how it was drawn and by what."""
    mechanism = PersonStatements.of(facts).guarantee.mechanism
    return _bullets(
        [
            f"{mechanism!r}: {noise(mechanism)}.",
            *(f"Drawn as {line}." for line in block_lines(facts.guarantee.blocks)),
            f"Randomness: {RANDOMNESS[facts.randomness]}.",
            f"Floating point: {FLOATING_POINT[facts.guarantee.sampling.exactness]}",
            f"Software: {', '.join(f'{name} {version}' for name, version in facts.software.items())}.",
            "How the confidential data are secured is not known from the certificate.",
        ]
    )


def composition(facts: CertificateRecord) -> str:
    """Whether the loss is added to those of other releases."""
    return f"The whole table is one release of one mechanism. {ledger_words(facts.ledger)}"


def post_processing(facts: CertificateRecord) -> str:
    """What was made of the released counts."""
    return " ".join(nonnegative(record, facts.table.cells) for record in facts.postprocessing) or "None."


def utility(facts: CertificateRecord) -> str:
    """The margin of error."""
    return " ".join(margin(facts))


def additional_information(facts: CertificateRecord) -> str:
    """Where it comes from, how to check it, and what every reader must know."""
    published = [f"SHA-256 of the published table: {record.sha256}." for record in facts.postprocessing]
    return _bullets(
        [
            f"Made from the certificate of the release ({facts.schema}, {facts.released}); `keepsum verify` checks the "
            f"table and the certificate against each other.",
            f"SHA-256 of the released table as plain CSV: {facts.table.sha256}.",
            *published,
            "The certificate is not signed." if facts.signature is None else f"Signed by {facts.signature.public_key}.",
            *warnings_of(facts),
            f"This entry follows {SOURCE['schema']} of the registry's data at commit {SOURCE['commit']}.",
        ]
    )


def _axes(facts: CertificateRecord) -> str:
    return ", ".join(axis.name for axis in facts.domain.axes)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# The form is that of the registry's own JSON Schema (``SOURCE``: OpenDP's
# ``deployments-registry-data``, ``schemas/deployments-schema.yaml`` at commit 057e5d8, read 2026-11-17), which goes
# back to arXiv 2509.13509. The copy that was read does not date its commits; an entry of that form in the same
# repository is for data published on 2026-09-01. The paper's own list of fields was not at hand, so nothing here is
# taken from it.
#
# What only the publisher knows is null where the registry requires it and left out where it does not; both are
# listed.


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
    problem = ""
    try:
        made = msgspec.convert(entry, Entry)
        date.fromisoformat(made.deployment.basic.publication_date)
    except msgspec.ValidationError as error:
        problem = str(error).replace("$.deployment.", "").replace("$.", "")
    except ValueError:
        problem = "`basic.publication_date` is not a day that exists"
    if problem:
        raise InputError(f"{arg.publisher} must follow the schema of the registry, but: {problem}.")
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
    return json_file(document)


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
    """The fields of the entry that the certificate answers, by section."""
    facts, claim = marked(certificate), claim_of(certificate)
    return {
        "basic": {
            "description": description(facts),
            "data_product_type": "Summary statistics",
            "publication_date": certificate.released[:10],
        },
        "dp_variant": {
            "variant_name": claim.variant,
            "data_domain": data_domain(facts),
            "unprotected_quantities": unprotected_quantities(facts),
        },
        "privacy_loss": {
            "privacy_unit": claim.subject[0].upper() + claim.subject[1:],
            "privacy_unit_details": privacy_unit_details(facts, claim),
            "privacy_parameters": _parameters(claim),
            "privacy_parameters_details": privacy_parameters_details(facts, claim),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "The publisher holds the confidential counts, adds the noise and is trusted.",
            "access_type": "Non-interactive",
            "access_type_details": "A table is published; nobody can query the confidential data.",
        },
        "implementation": {
            "mechanisms": mechanisms(facts),
            "composition": composition(facts),
            "post_processing": post_processing(facts),
            "utility": utility(facts),
            "additional_information": additional_information(facts),
        },
        "administrative": {"status": "Draft", "tier": 1},
    }


def _parameters(claim: ReleaseClaim) -> dict[str, float]:
    loss = {"epsilon": claim.epsilon, "delta": claim.delta, "rho": claim.rho}
    return {name: float(decimal_text(value)) for name, value in loss.items() if value is not None}


# -- what the publisher tells -----------------------------------------------------------------------


def _told(publisher: Mapping[str, Any] | None) -> dict[str, Any]:
    """The publisher's fields by their names, such as 'basic.name'."""
    told = dict(_fields({} if publisher is None else publisher))
    for field in told:
        if field not in PUBLISHER and field not in REPLACEABLE:
            raise InputError(
                f"{arg.publisher} must only set what a certificate does not answer, got {given(field)}. Set "
                f"{', '.join(PUBLISHER)}, {' or '.join(sorted(REPLACEABLE))}."
            )
    return told


def _fields(publisher: Any) -> Iterator[tuple[str, Any]]:
    problem = f"{arg.publisher} must be a mapping such as {{'basic': {{'name': 'Counties'}}}}"
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


def _with(answered: Mapping[str, Mapping[str, Any]], told: Mapping[str, Any]) -> dict[str, Any]:
    """The entry in the order of the registry's schema: what is answered or told, and null for what is still missing."""
    deployment = {
        section.name: {
            field.name: told.get(f"{section.name}.{field.name}", answered[section.name].get(field.name))
            for field in msgspec.structs.fields(section.type)
            if field.name in answered[section.name] or f"{section.name}.{field.name}" in {*told, *REQUIRED}
        }
        for section in msgspec.structs.fields(Deployment)
    }
    return {"url_slug": told.get("url_slug"), "deployment": deployment}
