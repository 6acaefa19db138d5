"""A ledger in plain words, in sections: what ``keepsum ledger show`` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from keepsum._saying import Text
from keepsum._text import how_many
from keepsum.accounting.total import Total
from keepsum.errors import InputError, PlanError
from keepsum.ledger.assessment import standing
from keepsum.ledger.entries import KeptMargin, TableEntry
from keepsum.ledger.person import by_attribute, newly_fixed_in
from keepsum.ledger.state import Dataset, Outcome, Spend
from keepsum.planning.distances import AttributeDistance
from keepsum.privacy.numbers import Loss, shown_briefly
from keepsum.releasing.codec import domain_of, stated_mechanism
from keepsum.tables.invariants import ROWS

SHOWN_SPENDS = 20  # the last ones
SHOWN_FACTOR = 7  # epsilon, up to which e^epsilon is a number that says something
OUTCOMES: dict[Outcome, str] = {
    "released": "released",
    "imported": "imported",
    "failed": "failed, stays charged",
    "unknown": "no output known, stays charged",
}


def dataset_topics(dataset: Dataset, all_releases: bool = False) -> list[tuple[str, list[str]]]:
    """A dataset in sections: its budgets, what is spent and by which releases, and what that means for one person."""
    now = standing(dataset)
    sections = [("Dataset", [dataset.name]), ("Budget", _budgets(dataset)), ("Spent", [str(now)])]
    total = dataset.total()
    if total is None:
        return sections
    sections += [
        ("One person", _person(dataset, total)),
        ("Together", [f"{sentence}." for sentence in total.words.rstrip(".").split(". ")]),
        ("Tables", [f"{number:>6,}  {_table(table)}" for number, table in dataset.tables.items()]),
        ("Releases", _spends(list(dataset.spends.values()), all_releases)),
    ]
    lost = [spend for spend in dataset.spends.values() if spend.outcome in ("failed", "unknown")]
    if lost:
        numbers = ", ".join(f"{spend.number:,}" for spend in lost[:SHOWN_SPENDS])
        more = f" and {len(lost) - SHOWN_SPENDS:,} more" if len(lost) > SHOWN_SPENDS else ""
        several = how_many(len(lost), "release")
        sections.append(("Without output", [f"{several} charged without a known output: entries {numbers}{more}."]))
    warnings = [*newly_fixed_in(dataset), *now.warnings, *now.notes, *_earlier(dataset)]
    return sections + [("Warning", [sentence]) for sentence in warnings]


def _budgets(dataset: Dataset) -> list[str]:
    *earlier, last = dataset.budgets
    lines = [f"{last.budget}" + ("" if last.note is None else f" ({last.note})")]
    note = "" if dataset.cells_note is None else f" ({dataset.cells_note})"
    if dataset.domain is not None:
        lines.append(f"for tables of {repr(dataset.domain)[7:-1]}{note}")
    elif dataset.same_people:
        lines.append(f"for tables that count the same people{note}")
    if earlier:
        lines[0] += f", since {last.time} (entry {last.number:,})"
    lines += [
        f"before: {old.budget}, from {old.time}" + ("" if old.note is None else f" ({old.note})")
        for old in reversed(earlier)
    ]
    return lines


def _person(dataset: Dataset, total: Total) -> list[str]:
    try:
        attributes = by_attribute(dataset, total)
    except (PlanError, InputError) as error:
        reason = f"{error:marked}"
        return [Text(f"not stated: {reason[0].lower()}{reason[1:]}")]
    delta = dataset.budget.delta if total.rho else None
    lines = []
    for found_for in attributes:
        attribute, counted = found_for.attribute, found_for.counted
        if attribute.any_value is None:
            known = "not protected; no change of it keeps the totals"
            lines.append(f"{attribute.axis}: {'not known for these totals' if attribute.unknown else known}")
            continue
        loss = total.at(counted.at, delta) if counted.total is None else counted.total.at(counted.at, delta)
        found = counted.distance
        distance = f"({found.norm} distance {found}){_except(attribute)}{found.not_against}"
        lines.append(f"a change of {attribute.axis}: {loss}{_factor(loss)} {distance}")
    return lines or ["not stated: no attribute has more than one category"]


def _except(attribute: AttributeDistance) -> str:
    """What the kept totals of all releases leave unprotected."""
    cells, values = attribute.unprotected + attribute.unknown, attribute.fixed_values
    parts = [f"in {how_many(cells, 'cell')} not to every value"] if cells else []
    parts += [f"{how_many(values, 'value')} fixed"] if values else []
    return f"; not protected: {', '.join(parts)}" if parts else ""


def _factor(loss: Loss) -> str:
    """What epsilon means: how many times as likely any conclusion can be."""
    if loss.epsilon is None or loss.epsilon > SHOWN_FACTOR:
        return ""
    factor = math.ceil(math.exp(float(loss.epsilon)) * 100 * (1 + 1e-12)) / 100
    words = f", so that nothing is more than {factor:.2f} times as likely as it would be otherwise"
    return words if loss.delta is None else f"{words}, up to a probability of {shown_briefly(loss.delta)}"


def _table(table: TableEntry) -> str:
    domain = domain_of(table.domain)
    kept = []
    for part in table.kept:
        if isinstance(part, KeptMargin):
            kept.append(" × ".join(part.axes) or "the grand total")
        else:
            names = part.rows.names
            kept.append(f"{len(names):,} {ROWS[part.rows.kind][len(names) != 1]}")
    text = f"{repr(domain)[7:-1]}; kept exactly: {', '.join(kept) or 'nothing'}"
    records = table.records
    if records is None:
        return text
    if records.max_rows_per_unit is None:
        return f"{text}; counted from records, any number per person"
    declared = " as declared" if records.unit is None else f" of {records.unit!r}"
    return f"{text}; counted from records, at most {records.max_rows_per_unit:,} per person{declared}"


def _spends(spends: Sequence[Spend], everything: bool) -> list[str]:
    shown = spends if everything else spends[-SHOWN_SPENDS:]
    lines = [
        f"{spend.number:>6,}  {_time(spend)}  table {spend.entry.table:,}  {_noise(spend)}  {_outcome(spend)}"
        for spend in shown
    ]
    left_out = len(spends) - len(shown)
    return ([f"{left_out:,} earlier ones, and"] if left_out else []) + lines


def _time(spend: Spend) -> str:
    return spend.time if spend.entry.imported is None else spend.entry.imported.released


def _outcome(spend: Spend) -> str:
    words = OUTCOMES[spend.outcome]
    if spend.entry.imported is not None and not spend.entry.imported.verified:
        words += ", not verified"
    if spend.withdrawn is not None:
        note = "" if spend.withdrawn.note is None else f" ({spend.withdrawn.note})"
        words += f", withdrawn on {spend.withdrawn.time}{note}, stays charged"
    return words + (", from a seed: not for publication" if spend.entry.seeded else "")


def _noise(spend: Spend) -> str:
    try:
        return repr(stated_mechanism(spend.entry.mechanism))
    except InputError:
        return spend.entry.mechanism.name


def _earlier(dataset: Dataset) -> list[str]:
    """Releases with a focus whose entries are older than the shares of a cost, if there are any."""
    spends = dataset.spends.values()
    numbers = [spend.number for spend in spends if spend.entry.mechanism.focus and not spend.entry.cost.levels]
    if not numbers or not dataset.budget.per_person:
        return []
    first = ", ".join(f"{number:,}" for number in numbers[:SHOWN_SPENDS])
    more = f" and {len(numbers) - SHOWN_SPENDS:,} more" if len(numbers) > SHOWN_SPENDS else ""
    return [
        f"Charged more than the certificate states for one person: entries {first}{more}, which do not say how much of "
        f"their loss is for the totals of a focus, so that all of it counts at the largest distance."
    ]


def dataset_facts(dataset: Dataset) -> dict[str, object]:
    """A dataset as data, for ``--json``; quotients are exact."""
    now = standing(dataset)
    total = dataset.total()
    topics = dict(dataset_topics(dataset))

    def number(value: Fraction | None) -> str | None:
        return None if value is None else str(value)

    return {
        "dataset": dataset.name,
        "budgets": [
            {
                "entry": decided.number,
                "time": decided.time,
                "epsilon": number(decided.budget.epsilon),
                "delta": number(decided.budget.delta),
                "rho": number(decided.budget.rho),
                "per_person": decided.budget.per_person,
                "note": decided.note,
            }
            for decided in dataset.budgets
        ],
        "spent": None if now.spent is None else str(dataset.budget.amount(now.spent)),
        "left": str(now.left),
        "words": str(now),
        "total": None if total is None else total.words,
        "person": topics.get("One person"),
        "same_people": dataset.same_people,
        "joint_pinning_checked": not now.unchecked,
        "warnings": [*newly_fixed_in(dataset), *now.warnings, *now.notes, *_earlier(dataset)],
        "tables": {str(number): _table(table) for number, table in dataset.tables.items()},
        "releases": [
            {
                "entry": spend.number,
                "time": _time(spend),
                "table": spend.entry.table,
                "mechanism": spend.entry.mechanism,
                "outcome": spend.outcome,
                "verified": None if spend.entry.imported is None else spend.entry.imported.verified,
                "seeded": spend.entry.seeded,
                "withdrawn": None if spend.withdrawn is None else spend.withdrawn.time,
                "sha256": spend.sha256,
            }
            for spend in dataset.spends.values()
        ],
    }
