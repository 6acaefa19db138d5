"""What ``keepsum accuracy`` finds and shows of one release."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from keepsum._saying import arg
from keepsum._text import percent
from keepsum.accuracy.choose import AccuracyCurve, Answer, Candidates, CurvePoint, curve_of
from keepsum.accuracy.levels import AxisTotals, axis_totals
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.shares import BudgetShares, SharedBudget
from keepsum.cli.reporting import worries
from keepsum.cli.screen import shown as shown_path
from keepsum.errors import InputError
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import TO, Neighbours
from keepsum.privacy.families import MechanismFamily
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.numbers import shown
from keepsum.privacy.profile import RULE
from keepsum.releasing.explain import person_statements
from keepsum.releasing.wording import guarantee_lines, margin_lines, unit_topic
from keepsum.specs.job import Job
from keepsum.specs.option import listed
from keepsum.specs.spec import NoiseSpec, Spec
from keepsum.specs.writing import arguments_of
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable, fresh_name
from keepsum.tables.table import Table


@dataclass(frozen=True)
class MarginTarget:
    """The margin of error to reach, of a typical cell or of the one where it is largest."""

    margin: int
    of: str


@dataclass(frozen=True)
class Result:
    """The noise that was declared or found, with its margins and those of others around it."""

    job: Job
    plan: CompiledPlan
    family: MechanismFamily
    accuracy: Accuracy
    totals: list[AxisTotals]
    curve: AccuracyCurve
    target: MarginTarget | None
    answer: Answer | None
    shares: BudgetShares | None = None

    @property
    def point(self) -> CurvePoint:
        """The noise that was declared or found."""
        return next(point for point in self.curve.points if point.value == self.family.value)

    def margins_table(self) -> ReleasedTable:
        """The margin of every cell, as a table: none of it comes from a count."""
        domain = self.plan.invariants.domain
        if domain is None:
            raise AssertionError("what a shell declares has names")
        return ReleasedTable(domain, self.accuracy.margins, fresh_name("margin", domain.axes))


def check_shared(job: Job, target: MarginTarget | None) -> Laplace:
    """The noise whose budget is to be shared; refuse any other."""
    request = job.noise()
    if target is not None:
        raise InputError(f"{arg.share_budget} must not be combined {arg.target_moe:with}. Give {arg.epsilon} instead.")
    if not isinstance(request, Laplace):
        raise InputError(f"{arg.share_budget} requires l1 Laplace noise. {arg.mechanism:Leave out} gaussian.")
    if request.neighbours is None or not request.focus:
        raise InputError(
            f"{arg.share_budget} requires {arg.epsilon} without {arg.per_unit}, and a {arg.focus} for each level, "
            f"such as {arg.focus({'county': 4})}, whose value is a weight."
        )
    if job.spec.mechanism.focus_files or job.spec.mechanism.subset:
        raise InputError(f"{arg.share_budget} requires levels that are totals of axes. {arg.focus_file:Leave out}.")
    if request.neighbours != Neighbours():
        raise InputError(f"{arg.share_budget} must not be combined {arg.attributes:with} or {arg.to}. Leave these out.")
    return request


def result_of(
    job: Job, kept: Invariants, table: Table, level: float, target: MarginTarget | None, share_budget: bool = False
) -> Result:
    """Work out margins of error, at the declared loss, or at the least one that reaches a target.

    With ``share_budget``, at the shares with the least error.
    """
    shares = None
    if share_budget:  # the shares that were declared are weights
        request = check_shared(job, target)
        axes = tuple(level.axes for level in request.focus)
        shares = BudgetShares(SharedBudget(kept, table.records, axes, request.epsilon, request.weights))
    candidates = Candidates.of(kept, job.noise(table) if shares is None else shares.mechanism, table.records, level)
    answer = None
    if target is not None:
        answer = candidates.least_loss(target.margin, target.of)
        candidates = candidates.around(answer.value)
    found = candidates.accuracy(candidates.first)
    totals = axis_totals(candidates.first, level)
    curve = curve_of(candidates)
    return Result(job, candidates.first, candidates.family, found, totals, curve, target, answer, shares)


def sections_of(result: Result) -> list[tuple[str, list[str]]]:
    """What is shown on a terminal."""
    plan, statements = result.plan, person_statements(result.plan)
    shares: list[tuple[str, list[str]]] = []
    if result.shares is not None:
        use = f"pass {options_of(result.family)} to keepsum plan or keepsum release"
        shares = [("Shares", result.shares.lines()), ("To use them", [use])]
    return [
        *unit_topic(plan.records),
        *([] if result.job.name is None else [("Release", [result.job.name])]),
        *_found(result),
        *shares,
        (statements.title, [statements.headline()]),
        ("Each count", [str(result.accuracy), *margin_lines(plan.records)]),
        *([("Totals", [str(totals) for totals in result.totals])] if result.totals else []),
        ("Compared", result.curve.lines(result.family.value)),
        ("Noise", [repr(plan.mechanism)]),
        ("Guarantee", guarantee_lines(plan.guarantee)),
        *(("Warning", [sentence]) for sentence in worries(plan)),
    ]


def _found(result: Result) -> list[tuple[str, list[str]]]:
    if result.target is None or result.answer is None:
        return []
    name, value = result.family.parameter, shown(result.answer.value)
    before, margin = result.answer.before
    least = "largest" if name == "sigma" else "smallest"
    if margin is None:  # noise that wide cannot be drawn
        reached = result.point.margin(result.target.of)
        why = f"the {least} of three digits at which noise can be drawn; its margin is ±{reached:,}"
    else:
        why = f"the {least} of three digits that reaches it; at {shown(before)} the margin is ±{margin:,}"
    words = [f"{value}{result.curve.heading.removeprefix(name)}: {why}"]
    if result.accuracy.draws:
        words.append("Margins are simulated here, so a step more or less may do as well.")
    level = percent(result.accuracy.level)
    return [
        ("Target", [f"a {result.target.of} {level} margin of error of at most ±{result.target.margin:,} per cell"]),
        (name.capitalize(), words),
        ("To use it", [_use(result)]),
    ]


def _use(result: Result) -> str:
    """What to pass to other commands, or to write into the spec if that alone says what is found."""
    job, family = result.job, result.family
    if job.lines is None:
        return f"pass {options_of(family)} to keepsum plan or keepsum release, in place of --target-moe"
    if job.options.mechanism != NoiseSpec():
        return f"pass {_passed(result)} to keepsum plan or keepsum release, in place of --target-moe"
    table = "" if job.name is None else f" for table {job.name!r}"
    spec = shown_path(job.lines.name)
    if result.plan.mechanism.focus and not family.per_person:
        return f"pass {_passed(result)}, or set these in [mechanism] of {spec}{table}"
    return f"set {family.parameter} = {shown(family.value)} in [mechanism] of {spec}{table}, or pass {_passed(result)}"


def _passed(result: Result) -> str:
    """The options that request this noise: over a spec those that were given, with the loss and its unit."""
    job, family = result.job, result.family
    if job.lines is None:
        return options_of(family)
    typed = job.options.mechanism
    begin = [] if job.name is None else ["--only", job.name]
    begin += ["--mechanism", "laplace"] if typed.kind == "laplace" else []
    if result.plan.mechanism.focus and not family.per_person:  # its values have changed with the loss
        return f"{shlex.join(begin)} {options_of(family)}".strip()
    found: dict[str, Any] = {family.parameter: shown(family.value)}
    if not family.per_person and family.parameter != "sigma":
        found["per_unit"] = True
        found["delta"] = job.spec.mechanism.delta if typed.delta is None else typed.delta
    given = arguments_of(Spec(mechanism=msgspec.structs.replace(typed, **found)))
    return shlex.join([*begin, *(word for option in given for word in option)])


def options_of(family: MechanismFamily) -> str:
    """The options that request this noise.

    >>> from keepsum.privacy import Gaussian, Laplace
    >>> from keepsum.privacy.families import MechanismFamily
    >>> options_of(MechanismFamily(Laplace("0.5", "l2", attributes=["age group"])))
    "--epsilon 0.5 --norm l2 --attributes 'age group'"
    >>> options_of(MechanismFamily(Gaussian.per_unit("0.5", "1e-6")))
    '--mechanism gaussian --epsilon 0.5 --delta 1e-6 --per-unit'
    """
    member, neighbours = family.member, family.member.neighbours
    options = ["--mechanism gaussian"] if isinstance(member, Gaussian) else []
    options.append(f"--{family.parameter} {shown(family.value)}")
    if isinstance(member, Gaussian):
        options += [] if member.delta is None else [f"--delta {shown(member.delta)}"]
        options += [] if member.calibration == RULE else [f"--calibration {member.calibration}"]
    elif member.norm != "l1":
        options.append(f"--norm {member.norm}")
    options += ["--per-unit"] if neighbours is None and family.parameter != "sigma" else []
    for level in member.focus:
        key = f"{listed(level.axes if level.subsets is None else level.subsets.names)}={shown(level.weight)}"
        options.append(f"--focus {shlex.quote(key)}")
    if neighbours is not None and member.cell_share not in (None, 1):
        options.append(f"--cell-share {shown(member.cell_share)}")
    if neighbours is not None and neighbours.attributes is not None:
        options.append(f"--attributes {shlex.quote(listed(neighbours.attributes))}")
    if neighbours is not None and neighbours.to != TO[0]:
        options.append(f"--to {shlex.quote(neighbours.to)}")
    return " ".join(options)


def as_json(result: Result, margins: Path | None, plot: Path | None) -> dict[str, Any]:
    """What is found, as JSON."""
    point, answer, columns = result.point, result.answer, result.curve.to_dict()
    statements = person_statements(result.plan)
    found = None
    if result.target is not None and answer is not None:
        before, margin = answer.before
        found = {
            "margin": result.target.margin,
            "of": result.target.of,
            result.family.parameter: shown(answer.value),
            "options": _passed(result),
            "one_step_before": {result.family.parameter: shown(before), "margin": margin},
        }
    return {
        **({} if result.job.name is None else {"name": result.job.name}),
        "cells": result.plan.size,
        "level": result.accuracy.level,
        "target": found,
        **({} if result.shares is None else {"shares": _shares_as_json(result)}),
        "parameter": result.family.parameter,
        "unit": statements.subject,
        "per_person": result.family.per_person and statements.subject != "record",
        "mechanism": repr(result.plan.mechanism),
        "per_unit": result.plan.guarantee.words,
        "person": statements.headline(),
        "margin_of_error": {
            "typical": point.typical,
            "smallest": point.smallest,
            "largest": point.largest,
            "simulated_draws": point.draws,
        },
        "totals": [
            {
                "axes": list(totals.axes),
                **({"subsets": list(totals.subsets)} if totals.subsets else {}),
                "totals": totals.totals,
                "exact": totals.exact,
                "counts": totals.counts,
                "typical": totals.margin,
                "basis": totals.basis,
                "simulated_draws": totals.draws,
                **({} if totals.own is None else {totals.own[0]: shown(totals.own[1])}),
            }
            for totals in result.totals
        ],
        "curve": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "margins": None if margins is None else shown_path(margins),
        "plot": None if plot is None else shown_path(plot),
        "warnings": worries(result.plan),
    }


def _shares_as_json(result: Result) -> dict[str, Any]:
    """The shares that were found, level by level, cells without axes."""
    levels = () if result.shares is None else result.shares.levels
    keys = [
        None if level.key is None else [level.key] if isinstance(level.key, str) else list(level.key)
        for level in levels
    ]
    return {
        "options": options_of(result.family),
        "levels": [
            {"axes": key, "weight": shown(level.weight), "share": shown(level.share), "rmse": level.rmse}
            for key, level in zip(keys, levels, strict=True)
        ],
    }
