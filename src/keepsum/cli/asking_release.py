"""What ``keepsum init`` asks about the release: the totals to keep, the noise, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import keepsum as ks
from keepsum._text import MAX_NAMES
from keepsum.cli import questions
from keepsum.cli.asking_source import problem_of
from keepsum.cli.declaration import Declaration
from keepsum.cli.more_options import split, with_options
from keepsum.cli.noticed import settle
from keepsum.cli.screen import note, progress
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError, PlanError
from keepsum.tables.findings import Finding, UndeclaredError
from keepsum.tables.records import subject_of

OUTPUT_FOLDER = "out/"


@dataclass(frozen=True)
class Wanted:
    """What is to be released: a declaration, and what else a spec says."""

    declared: Declaration
    output: str | None = None
    nonnegative: bool = False
    write_categories: bool = False
    accept_pinned: tuple[str, ...] = ()


# -- the table --------------------------------------------------------------------------------------


def cells_of(declared: Declaration) -> ks.Table:
    """The table, or the cells of records, which are not read for it."""
    from keepsum.specs.building import table_of

    return table_of(declared.options(), counted=False)


def read_asking(declared: Declaration) -> tuple[Declaration, ks.Table]:
    """The table, and the declaration with what was answered about its problems."""
    earlier: list[Declaration] = []  # before each answer in the form of options
    asked: set[Finding] = set()
    while True:
        finding = None
        try:
            return declared, _several_cells(declared)
        except UndeclaredError as error:
            finding, problem = error.finding, str(error)
        except KeepsumError as error:
            problem = str(error)
        if finding is not None and finding not in asked:
            asked.add(finding)
            settled = settle(finding, declared, _problem_of_cells)
            if settled is not None:
                declared = settled
                continue
        declared = _asked_for_options(declared, in_shell_terms(problem), earlier)


def _problem_of_cells(declared: Declaration) -> str | None:
    return problem_of(declared, _several_cells)


def _several_cells(declared: Declaration) -> ks.Table:
    """The table, if there is an answer to which totals are kept: those of a single cell would determine it."""
    table = cells_of(declared)
    if table.domain.size == 1:
        raise InputError(
            "A table must have more than one cell, because any kept total determines a single one. Declare more "
            "categories with --categories, or another axis."
        )
    return table


def _asked_for_options(declared: Declaration, problem: str, earlier: list[Declaration]) -> Declaration:
    """The declaration with more options.

    If the same problem stays, it was made by the options before: then the new ones replace those, and otherwise nothing
    is added. An empty answer takes the last ones back.
    """
    note(problem)
    question = "Options to add (Enter: take the last ones back)" if earlier else "Options to add"

    def read(answer: str) -> Declaration:
        if not answer and earlier:
            return earlier.pop()
        if not answer:
            raise InputError(f"{problem} Type the options, as in a shell. {questions.LEAVING}")
        options = split(answer)
        together = with_options(declared, options)
        if _problem_of_cells(together) != problem:
            earlier.append(declared)
            return together
        if earlier:
            instead = with_options(earlier[-1], options)
            if _problem_of_cells(instead) != problem:
                return instead
        raise InputError(problem)

    return questions.ask_until(question, "", read)


# -- the release ------------------------------------------------------------------------------------


def asked_about_release(wanted: Wanted, table: ks.Table) -> Wanted:
    """Ask for what must be known to release the table, as far as no option says it."""
    declared, accepted = _asked_about_totals_and_noise(wanted.declared, table)
    wanted = replace(wanted, declared=declared, accept_pinned=accepted)
    if table.undeclared and not wanted.write_categories:
        names = questions.shown_list(table.undeclared)
        public = questions.confirm(
            f"The categories of {names} come from the table. Are they public, whatever the counts are? Then the spec "
            f"declares them"
        )
        wanted = replace(wanted, write_categories=public)
    if not wanted.nonnegative and questions.confirm("Must counts not be negative?"):
        problem = _problem_of_plan(wanted.declared, table, nonnegative=True)
        if problem is not None:
            note(f"{problem} So counts may be negative.")
        wanted = replace(wanted, nonnegative=problem is None)
    if wanted.output is not None:
        return wanted

    def placed(answer: str) -> str:
        check_output(answer, wanted.declared)
        return answer

    return replace(
        wanted, output=questions.ask_until("Where do releases go? (a folder or a file)", OUTPUT_FOLDER, placed)
    )


def _asked_about_totals_and_noise(declared: Declaration, table: ks.Table) -> tuple[Declaration, tuple[str, ...]]:
    """Ask for the totals and the noise until a release can be planned with them; also the cells accepted as exact."""
    keeps = bool(declared.keep or declared.keep_total or declared.keep_nothing or declared.keep_file)
    has_noise = not (declared.epsilon is None and declared.rho is None and declared.sigma is None)
    accepted: tuple[str, ...] | None = None
    while True:
        chosen = declared
        if not keeps:
            while accepted is None:
                chosen = _asked_about_totals(declared, table)
                accepted = _accepted(chosen, table)
        chosen = chosen if has_noise else _asked_about_noise(chosen, table)
        problem = _problem_of_plan(chosen, table)
        if problem is None:
            return chosen, accepted or ()
        if keeps and has_noise:
            raise PlanError(problem)
        note(problem)
        accepted = None


def _accepted(declared: Declaration, table: ks.Table) -> tuple[str, ...] | None:
    """The cells that the kept totals determine, if they may be published without noise; None if they may not."""
    from keepsum.planning.plan import structure_of
    from keepsum.specs.building import kept_of

    kept = kept_of(declared.options(), table)
    names = tuple(kept.cell_name(int(cell)) for cell in structure_of(kept).pinned)
    if not names:
        return ()
    shown = "; ".join(names[:MAX_NAMES]) + (" and others" if len(names) > MAX_NAMES else "")
    cells = "1 cell is" if len(names) == 1 else f"{len(names):,} cells are"
    note(f"{cells} determined by these totals, and would be published without noise: {shown}.")
    return names if questions.confirm("Is that acceptable?") else None


def _asked_about_totals(declared: Declaration, table: ks.Table) -> Declaration:
    axes = table.domain.axes

    def kept(answer: str) -> Declaration:
        from keepsum.planning.plan import structure_of
        from keepsum.specs.building import kept_of

        chosen = with_options(declared, questions.margins(answer, axes))
        structure_of(kept_of(chosen.options(), table))  # which refuses totals that leave no noise
        return chosen

    note("Kept totals are published exactly, and so are not protected.")
    outermost = [name for name in axes if name not in table.domain.within]
    pair = ",".join(map(questions.shown_name, outermost[:2]))
    two_way = f"; {pair} for a two-way margin" if len(axes) > 2 and len(outermost) > 1 else ""
    several = ", several with a blank between" if len(axes) > 1 else ""
    names = questions.shown_list(axes)
    question = (
        f"Which totals are kept exactly? Axes: {names}{several}{two_way}; total for the grand total, nothing for none"
    )
    return questions.ask_until(question, _coarsest(table), kept)


def _coarsest(table: ks.Table) -> str:
    """The answer of Enter: the grand total, or the axis that others are within."""
    within = table.domain.within
    return next((questions.shown_name(name) for name in table.domain.axes if name in within.values()), "total")


def _asked_about_noise(declared: Declaration, table: ks.Table) -> Declaration:
    from keepsum.specs.building import noise_of

    def checked(chosen: Declaration) -> Declaration:
        noise_of(chosen.options().mechanism)
        return chosen

    needs_delta = declared.mechanism == "gaussian" and declared.delta is None
    checked(replace(declared, epsilon="1", delta="1e-6" if needs_delta else declared.delta))  # else an option is wrong
    if needs_delta:
        delta = questions.ask_until(
            "Delta", "1e-6", lambda answer: checked(replace(declared, epsilon="1", delta=answer))
        )
        declared = replace(declared, delta=delta.delta)
    whose = "per unit of distance" if declared.per_unit else f"the loss of one {subject_of(table.records)}"
    return questions.ask_until(f"Epsilon, {whose}", "1", lambda answer: checked(replace(declared, epsilon=answer)))


def check_plan(declared: Declaration, table: ks.Table, nonnegative: bool = False) -> None:
    """Refuse what ``keepsum plan`` refuses, and a nearest table that cannot be worked out."""
    from keepsum.planning.plan import compile_plan
    from keepsum.releasing.postprocess import check_nonnegative
    from keepsum.specs.building import kept_of, noise_of

    spec = declared.options()
    mechanism = noise_of(spec.mechanism, table)
    kept = kept_of(spec, table)
    with progress() as step:
        step("compiling the plan")
        plan = compile_plan(kept, mechanism, records=table.records)
        if nonnegative:
            check_nonnegative(plan.structure, "l1")


def _problem_of_plan(declared: Declaration, table: ks.Table, nonnegative: bool = False) -> str | None:
    try:
        check_plan(declared, table, nonnegative)
    except KeepsumError as error:
        return in_shell_terms(str(error))
    return None


def check_output(output: str, declared: Declaration) -> None:
    """Refuse a place that ``keepsum release`` would refuse, but for what is there already."""
    from keepsum.cli.standard_output import destination

    place = destination(output, None)
    place.check(force=True)
    refuse_same([declared.table], place.files, "Output must not be the confidential table itself. Choose another name.")


def refuse_same(sources: Sequence[str | None], files: Sequence[Path], sentence: str) -> None:
    """Refuse to write a file that is read."""
    from keepsum.sources.records.databases import is_address, scheme_of, sqlite_path

    named = [source for source in sources if source is not None and source != "-"]
    paths = [sqlite_path(source) if scheme_of(source) == "sqlite" else source for source in named]
    read = {Path(path).resolve() for path in paths if not is_address(path)}
    if any(file.resolve() in read for file in files):
        raise InputError(sentence)
