"""What to do about what is noticed in a table: each proposal is a question and what a yes declares.

``keepsum init`` asks the questions, and the page has a button for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from keepsum.specs.spec import Spec
from keepsum.tables.axes import Label
from keepsum.tables.findings import (
    BlankTotals,
    Encoding,
    Finding,
    Following,
    Nested,
    Numbers,
    Same,
    Sheets,
    Sparse,
    Totals,
)

Declares: TypeAlias = Literal["within", "carry", "drop", "drop_rows", "dense", "axes", "sheet", "encoding"]
EVERY = "Every combination is a cell"
MOST = 12  # sheets or columns that there is a proposal for


@dataclass(frozen=True)
class Proposal:
    """A question, what a yes does in words, and what it declares: a key of a spec, and what is added to it."""

    question: str
    action: str
    declares: Declares
    value: Any
    default: bool = True


def proposals_for(finding: Finding, dropped: Mapping[str, Sequence[Label]] | None = None) -> list[Proposal]:
    """What may be declared about a finding; ``dropped`` are the rows that are left out already."""
    match finding:
        case BlankTotals():
            return proposals_for(finding.totals, dropped)
        case Totals():
            return [_without_totals(finding, dropped or {})]
        case Nested():
            child, parent = finding.parents[0]
            return [
                Proposal(f"Is {child} within {parent}?", f"Nest {child} within {parent}", "within", {child: parent}),
                _every_combination(child, parent),
            ]
        case Same() | Following():
            return [
                Proposal(
                    f"Publish {finding.code} along with {finding.axis}, as it is?",
                    f"Publish {finding.code} along with {finding.axis}",
                    "carry",
                    {finding.code: finding.axis},
                ),
                Proposal(f"Leave out {finding.code}?", f"Leave out {finding.code}", "drop", [finding.code]),
                _every_combination(finding.axis, finding.code),
            ]
        case Numbers():
            return _numbers(finding)
        case Sheets():
            return [
                Proposal(f"Read the sheet {name}?", f"Read the sheet {name}", "sheet", name)
                for name in finding.names[:MOST]
            ]
        case Encoding():
            return [
                Proposal(f"Read it as {finding.likely}?", f"Read it as {finding.likely}", "encoding", finding.likely)
            ]
        case Sparse():
            question = "Is every combination of categories a cell of the table?"
            return [Proposal(question, EVERY, "dense", value=True, default=False)]


def _every_combination(first: str, second: str) -> Proposal:
    question = f"Is every combination of {first} and {second} a cell of the table?"
    return Proposal(question, EVERY, "dense", value=True, default=False)


def _without_totals(finding: Totals, dropped: Mapping[str, Sequence[Label]]) -> Proposal:
    if finding.are_columns:
        names = [str(label) for label in finding.labels]
        which = ", ".join(names) if finding.are_nameable else f"{len(names):,} columns"
        return Proposal(f"Leave out {which}, which look like totals?", f"Leave out {which}", "drop", names)
    which = ", ".join(f"{finding.axis}={label}" for label in finding.labels)
    if not finding.are_nameable:
        several = len(finding.labels) > 1
        labels = f"{len(finding.labels):,} labels" if several else "a label"
        which = f"{labels} of {finding.axis} that {'look like totals' if several else 'looks like a total'}"
    labels_to_drop = [*dropped.get(finding.axis, []), *finding.labels]  # it replaces what was dropped before
    question = f"Leave out the rows with {which}?"
    return Proposal(question, question[:-1], "drop_rows", {finding.axis: labels_to_drop})


def _numbers(finding: Numbers) -> list[Proposal]:
    """All columns of numbers are left out, or one of them is an axis, and then the others are left out."""
    columns = finding.columns
    others = [name for name in finding.axes if name not in columns]
    which = ", ".join(columns[:MOST])
    leave = [Proposal(f"Leave out {which}?", f"Leave out {which}", "drop", list(columns))] if others else []
    proposals = []
    for column in columns[:MOST]:
        names = [name for name in finding.axes if name in (*others, column)]
        left_out = [name for name in columns if name != column]
        question = f"Is {column} an axis of the table?"
        proposals.append(Proposal(question, f"{column} is an axis", "axes", {"names": names, "drop": left_out}))
    return [*leave, *proposals]


def accepted(spec: Spec, proposal: Proposal) -> Spec:
    """The spec with what a yes declares."""
    replace = msgspec.structs.replace
    source, axes, value = spec.source, spec.axes, proposal.value
    match proposal.declares:
        case "within":
            return replace(spec, axes=replace(axes, within={**(axes.within or {}), **value}))
        case "dense":
            return replace(spec, axes=replace(axes, dense=True))
        case "axes":
            return _dropping(replace(spec, axes=replace(axes, names=value["names"])), value["drop"])
        case "drop_rows":
            return replace(spec, source=replace(source, drop_rows={**(source.drop_rows or {}), **value}))
        case "carry":
            carried = source.carry if isinstance(source.carry, dict) else {}
            return _without_axes(replace(spec, source=replace(source, carry={**carried, **value})), value)
        case "drop":
            return _dropping(_without_axes(spec, value), value)
        case "sheet":
            return replace(spec, source=replace(source, sheet=value))
        case "encoding":
            return replace(spec, source=replace(source, encoding=value))


def _without_axes(spec: Spec, columns: Collection[str]) -> Spec:
    """The spec without columns among its axes, if these are named."""
    if spec.axes.names is None:
        return spec
    names = [name for name in spec.axes.names if name not in columns]
    return msgspec.structs.replace(spec, axes=msgspec.structs.replace(spec.axes, names=names))


def _dropping(spec: Spec, columns: Sequence[str]) -> Spec:
    """The spec with columns left out: every column of a spec is an axis, the count, carried or left out."""
    dropped = spec.source.drop or []
    more = [*dropped, *(name for name in columns if name not in dropped)]
    return msgspec.structs.replace(spec, source=msgspec.structs.replace(spec.source, drop=more or None))
