"""A ledger in plain words, in sections: what ``keepsum ledger show`` prints, and a notebook shows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from keepsum.accounting.total import Total
from keepsum.errors import InputError, PlanError
from keepsum.ledger.assessment import UNCHECKED, joint, standing
from keepsum.ledger.state import Dataset, Outcome, Spend
from keepsum.releasing.codec import domain_of, stated_mechanism

SHOWN_SPENDS = 20  # the last ones
OUTCOMES: dict[Outcome, str] = {
    "released": "released",
    "imported": "imported",
    "failed": "failed, stays charged",
    "unknown": "no output known, stays charged",
}


def dataset_topics(dataset: Dataset, all_releases: bool = False) -> list[tuple[str, list[str]]]:
    """A dataset in sections: its budget, what is spent and by which releases, and what that means for one person."""
    now = standing(dataset)
    budget = [str(dataset.budget)]
    if dataset.domain is not None:
        budget.append(f"tables of {repr(dataset.domain)[7:-1]}")
    sections = [("Dataset", [dataset.name]), ("Budget", budget), ("Spent", [str(now)])]
    total = dataset.total(same_table=dataset.is_one_table())
    if total is None:
        return sections
    sections.append(("Together", [f"{sentence}." for sentence in total.words.rstrip(".").split(". ")]))
    sections.append(("Per person", _person(dataset, total)))
    sections.append(("Releases", _spends(list(dataset.spends.values()), all_releases)))
    lost = [spend for spend in dataset.spends.values() if spend.outcome in ("failed", "unknown")]
    if lost:
        numbers = ", ".join(f"{spend.number:,}" for spend in lost[:SHOWN_SPENDS])
        more = f" and {len(lost) - SHOWN_SPENDS:,} more" if len(lost) > SHOWN_SPENDS else ""
        several = f"{len(lost):,} release{'s' * (len(lost) != 1)}"
        sections.append(("Without output", [f"{several} charged without a known output: entries {numbers}{more}."]))
    return sections + ([("Warning", [UNCHECKED])] if now.unchecked else [])


def _person(dataset: Dataset, total: Total) -> list[str]:
    """What all releases tell about a change of one person, by attribute."""
    try:
        distances = joint(dataset, total.norm)
        attributes = distances.by_attribute
    except (PlanError, InputError) as error:
        return [f"not stated: {str(error)[0].lower()}{str(error)[1:]}"]
    delta = dataset.budget.delta if total.rho else None
    lines = []
    for attribute in attributes:
        if attribute.any_value is None:
            lines.append(f"{attribute.axis}: no change is protected, or its distance is not known")
            continue
        loss = total.at(attribute.any_value, delta)
        lines.append(f"{attribute.axis}: {loss} ({total.norm} distance {attribute.any_value})")
    return lines or ["not stated: no attribute has more than one category"]


def _spends(spends: Sequence[Spend], everything: bool) -> list[str]:
    shown = spends if everything else spends[-SHOWN_SPENDS:]
    lines = [f"{spend.number:>6,}  {spend.time}  {_noise(spend)}  {OUTCOMES[spend.outcome]}" for spend in shown]
    left_out = len(spends) - len(shown)
    return ([f"{left_out:,} earlier ones, and"] if left_out else []) + lines


def _noise(spend: Spend) -> str:
    try:
        return repr(stated_mechanism(spend.entry.mechanism))
    except InputError:
        return spend.entry.mechanism.name


def dataset_facts(dataset: Dataset) -> dict[str, object]:
    """A dataset as data, for ``--json``."""
    now = standing(dataset)
    total = dataset.total(same_table=dataset.is_one_table())

    def number(value: Fraction | None) -> str | None:
        return None if value is None else str(value)

    return {
        "dataset": dataset.name,
        "budget": {
            "epsilon": number(dataset.budget.epsilon),
            "delta": number(dataset.budget.delta),
            "rho": number(dataset.budget.rho),
            "per_person": dataset.budget.per_person,
        },
        "spent": None if now.spent is None else str(dataset.budget.amount(now.spent)),
        "left": str(now.left),
        "total": None if total is None else total.words,
        "joint_pinning_checked": not now.unchecked,
        "releases": [
            {
                "entry": spend.number,
                "time": spend.time,
                "cells": domain_of(dataset.tables[spend.entry.table].domain).size,
                "mechanism": spend.entry.mechanism,
                "outcome": spend.outcome,
                "sha256": spend.sha256,
            }
            for spend in dataset.spends.values()
        ],
    }
