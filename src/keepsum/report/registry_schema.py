"""The form of an entry of the registry of deployments, and which of its fields a certificate cannot know.

The fields, their order and their choices are those of ``schemas/deployments-schema.yaml`` of the registry's data
(``SOURCE``), written down anew. ``registry.schema.json`` beside this file is made from these classes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

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
    {
        "url_slug",
        "basic.name",
        "basic.data_curators",
        "basic.intended_use",
        "basic.data_product_region",
        "administrative.registry_authors",
    }
)
REPLACEABLE = frozenset({"basic.description", "basic.publication_date"})  # the publisher may know better


def json_schema() -> bytes:
    """The JSON Schema of entries, as kept beside this module."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Entry)), indent=2) + b"\n"
