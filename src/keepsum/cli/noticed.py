"""What is noticed in a table, as questions: each answer changes the declaration by what an option would say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from keepsum.cli.categories import parse_categories, parse_names
from keepsum.cli.declaration import Declaration
from keepsum.cli.more_options import with_options
from keepsum.cli.questions import ask_until, chosen, confirm, nestings, shown_list
from keepsum.cli.screen import note
from keepsum.errors import InputError
from keepsum.specs.proposals import Proposal, proposals_for
from keepsum.specs.quoting import joined, listed, pair
from keepsum.tables.findings import (
    BlankTotals,
    Encoding,
    Finding,
    Following,
    Numbers,
    Same,
    Sheets,
    Sparse,
    Totals,
)

Problem: TypeAlias = Callable[[Declaration], str | None]  # what stops a declaration, but for what is noticed
SAME_CELL = "are the same cell"  # of two rows that a column distinguished
AXIS, CODE, OUT, DENSE = "axis", "code", "out", "dense"


def settle(finding: Finding, declared: Declaration, problem_of: Problem) -> Declaration | None:
    """Ask about what was noticed; None if no answer settles it."""
    if isinstance(finding, BlankTotals):
        finding = finding.totals
    if isinstance(finding, (Sheets, Encoding, Sparse)):
        return _text(finding, declared, problem_of)
    if isinstance(finding, Numbers):
        return _numbers(finding, declared, problem_of)
    dropped = parse_categories(declared.drop_rows or [], {}, "--drop-rows")
    for proposal in proposals_for(finding, dropped):
        if not confirm(proposal.question, proposal.default):
            continue
        changed = with_options(declared, _options(proposal))
        if isinstance(finding, (Same, Following)) and declared.axes:
            others = [name for name in parse_names(declared.axes, "Option --axes") if name != finding.code]
            changed = replace(changed, axes=[listed(others)])
        problem = problem_of(changed)
        if problem is None or _is_of_data(problem, finding, declared, problem_of):
            return changed
        note(problem)
    return None


def _is_of_data(problem: str, finding: Finding, declared: Declaration, problem_of: Problem) -> bool:
    """Whether a problem is not that of an answer: then the answer stays, and the problem is another question.

    Rows and columns that look like totals can always be left out. Otherwise the problem is one of the data if it is
    the same however the finding is answered.
    """
    return isinstance(finding, Totals) or problem == problem_of(replace(declared, dense=True))


def _options(proposal: Proposal) -> list[str]:
    """What a yes declares, as options."""
    value = proposal.value
    match proposal.declares:
        case "within" | "carry":
            return [f"--{proposal.declares}={joined(*one)}" for one in value.items()]
        case "drop":
            return [f"--drop={listed(value)}"]
        case "drop_rows":
            return [f"--drop-rows={pair(axis, labels)}" for axis, labels in value.items()]
    return ["--dense"]


def _text(finding: Sheets | Encoding | Sparse, declared: Declaration, problem_of: Problem) -> Declaration:
    """Ask for a text until the table can be read with it."""

    def changed_by(answer: str) -> Declaration:
        if isinstance(finding, Sheets):
            return replace(declared, sheet=answer)
        if isinstance(finding, Encoding):
            return replace(declared, encoding=answer)
        if answer == DENSE:
            return replace(declared, dense=True)
        return with_options(declared, [f"--within={joined(*one)}" for one in nestings(answer, finding.axes)])

    def read(answer: str) -> Declaration:
        changed = changed_by(answer)
        problem = problem_of(changed)
        if problem is not None and not _is_settled(finding, answer, problem):
            raise InputError(problem)
        return changed

    if isinstance(finding, Sheets):
        return ask_until(f"Which sheet? ({shown_list(finding.names)})", None, read)
    if isinstance(finding, Encoding):
        note(f"File {finding.file!r} is not UTF-8 text.")
        return ask_until("In which encoding is it?", finding.likely, read)
    note(f"Most of the {finding.cells:,} combinations of categories have no row. Axes: {shown_list(finding.axes)}.")
    example = joined(finding.axes[-1], finding.axes[0])
    several = f"such as {example}, several with a blank between; {DENSE} if every combination is a cell"
    return ask_until(f"Which axis is within which? ({several})", None, read)


def _is_settled(finding: Sheets | Encoding | Sparse, answer: str, problem: str) -> bool:
    """Whether an answer does, although the table has another problem, which is another question."""
    if isinstance(finding, Sheets):
        return answer in finding.names
    return isinstance(finding, Encoding) and not any(word in problem for word in ("encoding", "UTF-8"))


def _numbers(finding: Numbers, declared: Declaration, problem_of: Problem) -> Declaration:
    """Columns of numbers: all are asked about before any is an axis, because axes are then named."""
    while True:
        changed, others = declared, [name for name in finding.axes if name not in finding.columns]
        axes = list(finding.axes)
        for column in finding.columns:
            meaning = _meaning(column, bool(others))
            if meaning == AXIS:
                continue
            axes.remove(column)
            options = [f"--drop={listed([column])}"]
            if meaning == CODE:
                options = [f"--carry={joined(column, _axis_of(column, finding.axes, others))}"]
            changed = with_options(changed, options)
        if set(axes) & set(finding.columns):
            changed = replace(changed, axes=[listed(axes)])
        problem = problem_of(changed)
        if problem is None or not (SAME_CELL in problem or any(repr(column) in problem for column in finding.columns)):
            return changed  # another problem is another question
        note(problem)


def _axis_of(column: str, axes: Sequence[str], others: Sequence[str]) -> str:
    """The axis that a code follows from; by default the one before it."""
    before = [name for name in axes[: axes.index(column)] if name in others]
    question = f"Which axis does {column} follow from? ({shown_list(others)})"
    return ask_until(question, before[-1] if before else others[0], chosen("The axis", others))


def _meaning(column: str, has_others: bool) -> str:
    choices = [AXIS, *([CODE] if has_others else []), OUT]
    code = f"{CODE} of an axis, to be published as it is, " if has_others else ""
    question = (
        f"{column} has numbers: is it an {AXIS} of the table, a {code}or to be left {OUT}? ({', '.join(choices)})"
    )
    return ask_until(question, OUT, chosen("The answer", choices))
