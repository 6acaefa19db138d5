"""What to propose about a table: which column has the counts, and what to do about what is noticed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepsum._text import are_showable
from keepsum.sources.headers import Header
from keepsum.specs.options import adding, with_values
from keepsum.specs.spec import Spec
from keepsum.tables.counts import are_whole, may_be_counts
from keepsum.tables.findings import (
    BlankTotals,
    Encoding,
    Finding,
    Following,
    NestedAxes,
    Numbers,
    Same,
    Sheets,
    Sparse,
    TotalLabels,
)
from keepsum.tables.source import DEFAULT_COUNT
from keepsum.tables.total_labels import is_total

# Which column has the counts, as ``keepsum init`` and the page propose it: by names and by kinds of values.

# Names of columns of counts, the likeliest first.
NAMES = (
    "n, counts, freq, frequency, obs_value, population, pop, number, anzahl, häufigkeit, nombre, effectif, effectifs, "
    "antal, aantal, numero, número, liczba, cases, fälle, faelle, people, persons, personen, total, value"
)
FIRST_WORDS = "n, count, number, anzahl, nombre, antal, aantal, numero, número"  # Number of people
LAST_WORDS = "n, count, counts, freq, frequency"  # case_count
TOTAL_NUMBER = re.compile(r"(total|overall) (number|count|population)\b.*|(gesamt|total)(zahl|anzahl)")
# Words in the names of columns that hold whole numbers which count nothing.
NO_COUNTS = (
    "id, ids, identifier, uuid, key, index, code, codes, fips, geoid, zip, zipcode, postcode, plz, ssn, nr, year, "
    "years, month, day, date, week, quarter, time, jahr, monat, tag, datum, age, ages, alter, born, birth, dob, "
    "person, patient"
)


@dataclass(frozen=True)
class Likely:
    """What the columns of a file may be."""

    count: str | None = None  # the column to propose, if there is one
    is_named: bool = False  # whether its name says so, and not only that no other column has whole numbers
    # Several columns of whole numbers that may be the categories of one axis, and columns that by name are their
    # totals.
    wide: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()


def likely_columns(header: Header, declared: Collection[str] = ()) -> Likely:
    """What the columns may be that nobody declared; by name alone if only the header of a large file was read."""
    names = [name for name in header.names if name not in declared and not _names_no_count(name)]
    whole = [name for name in header.columns_where(are_whole) if name in names]
    categories = tuple(name for name in whole if not is_total(name, ""))
    totals = tuple(name for name in whole if is_total(name, ""))
    possible = names if header.columns is None else header.columns_where(may_be_counts)
    named = _named([name for name in names if name in possible and not (len(categories) > 1 and name in totals)])
    if named is not None:
        return Likely(named if are_showable(header.names) else None, True)
    if len(categories) > 1:
        return Likely(wide=categories, totals=totals)
    return Likely(whole[0] if len(whole) == 1 and are_showable(header.names) else None)


def _named(names: Sequence[str]) -> str | None:
    by_name = {name.casefold(): name for name in names}
    exact = next((by_name[name] for name in (DEFAULT_COUNT, *NAMES.split(", ")) if name in by_name), None)
    return exact or next((name for name in names if _names_count(name)), None)


def _names_count(name: str) -> bool:
    """Whether a name of several words says that a column has counts.

    >>> [_names_count(name) for name in ("Number of people", "case_count", "Total number", "phone number", "county")]
    [True, True, True, False, False]
    """
    words = _words(name)
    return bool(words) and (
        words[0] in FIRST_WORDS.split(", ")
        or words[-1] in LAST_WORDS.split(", ")
        or bool(TOTAL_NUMBER.fullmatch(" ".join(words)))
    )


def _names_no_count(name: str) -> bool:
    """Whether the name of a column says that its whole numbers count nothing.

    >>> [_names_no_count(name) for name in ("patient_id", "PersonID", "Date of birth", "Births", "Identity")]
    [True, True, True, False, False]
    """
    return not set(NO_COUNTS.split(", ")).isdisjoint(_words(name)) and not _names_count(name)


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())


# What to do about what is noticed in a table: each proposal is a question and what a yes declares.
#
# ``keepsum init`` asks the questions, and the page has a button for each.


EVERY = "Every combination is a cell"
MOST = 12  # sheets or columns that there is a proposal for


@dataclass(frozen=True)
class Proposal:
    """A question, what a yes does in words, and what it declares: values that are added to a spec, by their keys."""

    question: str
    action: str
    declares: Mapping[str, Any]
    default: bool = True


def proposals_for(finding: Finding, spec: Spec) -> list[Proposal]:
    """What may be declared about what was noticed in the table of a spec."""
    match finding:
        case BlankTotals():
            return proposals_for(finding.totals, spec)
        case TotalLabels():
            return [_without_totals(finding, spec)]
        case NestedAxes():
            child, parent = finding.parents[0]
            nested = {"axes.within": {child: parent}}
            return [
                Proposal(f"Is {child} within {parent}?", f"Nest {child} within {parent}", nested),
                _every_combination(f"of {child} and {parent}"),
            ]
        case Same() | Following():
            along = f"Publish {finding.code} along with {finding.axis}"
            return [
                Proposal(f"{along}, as it is?", along, {"source.carry": {finding.code: finding.axis}}),
                _left_out([finding.code], finding.code),
                _every_combination(f"of {finding.axis} and {finding.code}"),
            ]
        case Numbers():
            return _numbers(finding)
        case Sheets():
            sheets = {name: f"Read the sheet {name}" for name in finding.names[:MOST]}
            return [Proposal(f"{action}?", action, {"source.sheet": name}) for name, action in sheets.items()]
        case Encoding():
            action = f"Read it as {finding.likely}"
            return [Proposal(f"{action}?", action, {"source.encoding": finding.likely})]
        case Sparse():
            return [_every_combination("of categories")]


def _every_combination(of: str) -> Proposal:
    question = f"Is every combination {of} a cell of the table?"
    return Proposal(question, EVERY, {"axes.dense": True}, default=False)


def _left_out(columns: Sequence[str], which: str, why: str = "") -> Proposal:
    return Proposal(f"Leave out {which}{why}?", f"Leave out {which}", {"source.drop": list(columns)})


def _without_totals(finding: TotalLabels, spec: Spec) -> Proposal:
    if finding.are_columns:
        names = [str(label) for label in finding.labels]
        which = ", ".join(names) if finding.are_nameable else f"{len(names):,} columns"
        return _left_out(names, which, ", which look like totals")
    which = ", ".join(f"{finding.axis}={label}" for label in finding.labels)
    if not finding.are_nameable:
        several = len(finding.labels) > 1
        labels = f"{len(finding.labels):,} labels" if several else "a label"
        which = f"{labels} of {finding.axis} that {'look like totals' if several else 'looks like a total'}"
    before = (spec.source.drop_rows or {}).get(finding.axis, [])  # which the labels of a column replace
    dropped = [*(before if isinstance(before, list) else [before]), *finding.labels]
    action = f"Leave out the rows with {which}"
    return Proposal(f"{action}?", action, {"source.drop_rows": {finding.axis: dropped}})


def _numbers(finding: Numbers) -> list[Proposal]:
    """All columns of numbers are left out, or one of them is an axis, and then the others are left out."""
    columns = finding.columns
    others = [name for name in finding.axes if name not in columns]
    proposals = [_left_out(columns, ", ".join(columns[:MOST]))] if others else []
    for column in columns[:MOST]:
        declares = {"axes.names": [name for name in finding.axes if name in (*others, column)]}
        left_out = [name for name in columns if name != column]
        declares |= {"source.drop": left_out} if left_out else {}
        proposals.append(Proposal(f"Is {column} an axis of the table?", f"{column} is an axis", declares))
    return proposals


def accepted(spec: Spec, proposal: Proposal) -> Spec:
    """The spec with what a yes declares: a column that is left out or published along with another is no axis."""
    declares = proposal.declares
    if spec.axes.names is not None:
        no_axes = {*declares.get("source.drop", ()), *declares.get("source.carry", ())}
        axes = declares.get("axes.names", [name for name in spec.axes.names if name not in no_axes])
        spec = with_values(spec, {"axes.names": axes})
    return adding(spec, declares)
