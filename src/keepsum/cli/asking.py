"""What ``keepsum init`` asks: the data, what their columns mean, how records are counted, and what is released.

Each question is about an option that nothing was said of, and the next one is asked of the spec that an answer makes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import keepsum as ks
from keepsum._saying import Text, arg, the
from keepsum._text import MAX_NAMES, are_showable
from keepsum.cli.declaration import parsed
from keepsum.cli.questions import LEAVING, ask_until, asked, confirm, groups, one_of, shown_list, shown_name
from keepsum.cli.releases import check_not_source, files_of, norm_of, place_of
from keepsum.cli.screen import note, progress
from keepsum.errors import InputError, KeepsumError, PlanError
from keepsum.planning.plan import compile_plan, structure_of
from keepsum.releasing.postprocess import check_nonnegative
from keepsum.sources.csv_files import ZIP
from keepsum.sources.headers import Header, header_in, is_database, table_names
from keepsum.sources.reading import FileForm
from keepsum.sources.records.connecting import check_address
from keepsum.sources.records.declaring import check_bins, check_unit, declare_cells
from keepsum.sources.records.files import find_files, is_address, start_of
from keepsum.specs.building import categories_of, kept_of, noise_of, table_of
from keepsum.specs.faces import in_shell
from keepsum.specs.job import for_columns, job_of
from keepsum.specs.option import by_parent, joined, pair, parse_name
from keepsum.specs.options import OPTIONS, adding, value_of, with_typed, with_values
from keepsum.specs.proposals import Likely, accepted, likely_columns, proposals_for
from keepsum.specs.spec import Keep, Spec
from keepsum.tables import findings
from keepsum.tables.axes import check_nesting
from keepsum.tables.findings import Finding, UndeclaredError
from keepsum.tables.origins import subject_of
from keepsum.tables.source import with_parents

Attempt: TypeAlias = Callable[[Spec], object]
STANDARD_INPUT, OUTPUT_FOLDER = "-", "out/"
NO_COLUMN = "-"  # the answer that no column does
BINS, IN_FILE = "bins ", "file "
TOTAL, NOTHING = "total", "nothing"
SAME_CELL = "are the same cell"  # of two rows that a column distinguished
AXIS, CODE, OUT, DENSE = "axis", "code", "out", "dense"


# -- the data ---------------------------------------------------------------------------------------


def asked_about_table(spec: Spec) -> tuple[Spec, ks.Table]:
    """Ask what must be known to read the table, as far as no option says it; of records the cells are enough."""
    if spec.source.data == STANDARD_INPUT:
        raise InputError("The table must be a file where questions are asked, got standard input. Name a file.")
    has_counts = spec.source.count is not None or spec.source.wide is not None
    header = Header([])
    if spec.source.data is None:
        spec, header = ask_until("Which file has the table?", None, partial(_opened, spec))
    elif not has_counts and (not spec.records.by or _lacks_table(spec)):
        spec, header = _opened(spec)
    if spec.records.by and not has_counts:
        spec = _asked_about_records(spec, header.names)
    elif not has_counts:
        spec = _asked_about_columns(spec, header)
    return _read_asking(spec, _several_cells)


def _several_cells(spec: Spec) -> ks.Table:
    """The table, if there is an answer to which totals are kept: those of a single cell would determine it."""
    table = table_of(spec, counted=False)
    if table.domain.size > 1:
        return table
    raise InputError(
        "A table must have more than one cell, because any kept total determines a single one. Declare more categories "
        f"{arg.categories:with}, or another axis."
    )


def _lacks_table(spec: Spec) -> bool:
    return spec.source.table is None and is_database(str(spec.source.data))


def _opened(spec: Spec, data: str | None = None) -> tuple[Spec, Header]:
    """The spec with the data, the sheet, the encoding, or the table of a database that were asked for; the columns."""
    if data is not None:
        check_source(data)
        spec = with_values(spec, {"source.data": data})
    if _lacks_table(spec):
        names = table_names(str(spec.source.data))
        question = f"Which table of the database?{f' ({shown_list(names)})' if names else ''}"
        spec = asked(spec, "source.table", question, names[0] if len(names) == 1 else None, check=_header)
    return _read_asking(spec, _header, may_add=False)


def _header(spec: Spec) -> Header:
    source = spec.source
    return header_in(str(source.data), source.table, FileForm.checked(source.sheet, source.encoding, None, None))


def _asked_about_columns(spec: Spec, header: Header) -> Spec:
    """Ask where the counts are, or how records are counted."""
    data = str(spec.source.data)
    if are_showable(header.names):
        note(f"Columns: {shown_list(header.names)}.")
    if not is_database(data) and Path(data).is_file() and len(header.names) > 1:
        counted = _asked_about_counts(spec, header)
        if counted is not spec:
            return counted
        if spec.source.sheet or spec.source.encoding or start_of(Path(data)).startswith(ZIP):
            raise InputError(
                "Records must be in a CSV file in UTF-8, a Parquet file or a database, and these are not. Save them so."
            )
    return _asked_about_records(spec, header.names)


def _asked_about_counts(spec: Spec, header: Header) -> Spec:
    """Ask where the counts are; the spec stays as it is if each row is a record.

    A column is proposed only if its name says that it has counts, or if no other one has whole numbers.
    """
    keys = ("axes.names", "axes.categories", "axes.within", "source.drop", "source.carry")
    declared = [name for key in keys for name in value_of(spec, OPTIONS[key]) or ()]
    likely = likely_columns(header, [*declared, *(spec.axes.within or {}).values()])
    proposed = None if likely.count is None else shown_name(likely.count)
    if_record = "Is each row a record (rather than having a count)?"
    if_count = "Does each row have a count (rather than being one record)?"
    if confirm(if_record, None) if proposed is None else not confirm(if_count, likely.is_named or None):
        return spec
    names = shown_list(likely.wide) if are_showable(likely.wide) else "of whole numbers"
    columns = f"the {len(likely.wide)} columns {names}"
    if likely.wide and confirm(f"Are {columns} the categories of one axis, with a count in each?", None):
        return _with_wide(spec, header.names, likely)
    question = f"Which column has the counts? ({NO_COLUMN} if each row is a record)"
    return asked(spec, "source.count", question, proposed, choices=header.names, nothing=NO_COLUMN)


def _with_wide(spec: Spec, columns: Sequence[str], likely: Likely) -> Spec:
    """The spec with the axis whose categories are columns; a column that by name is their total is left out."""

    def typed(axis: str) -> list[str]:
        if axis in columns:
            raise InputError(f"The axis must have a name that no column has, got {axis!r}.")
        return [pair(axis, likely.wide)]

    spec = asked(spec, "source.wide", "What is this axis called? (such as race)", typed=typed)
    if not likely.totals or (spec.axes.names and not spec.source.drop):  # then they are left out anyway
        return spec
    if are_showable(likely.totals):
        note(f"Left out as the total of these columns, by its name: {shown_list(likely.totals)}.")
    return adding(spec, {"source.drop": list(likely.totals)})


# -- records ----------------------------------------------------------------------------------------


def _asked_about_records(spec: Spec, columns: Sequence[str]) -> Spec:
    """Ask how records are counted. Nothing is inferred from them, so only the curator can say."""
    by = spec.records.by or []
    if not by:
        spec = asked(spec, "records.by", "Columns to count records by, with commas between them", choices=columns)
        by = spec.records.by or []
        if len(by) > 1 and not spec.axes.within:
            such = f"such as {joined(by[-1], by[0])}, several with a blank between; Enter: no"
            spec = asked(
                spec, "axes.within", f"Is one of them within another? ({such})", "", nothing="",
                typed=partial(groups, mark=":", names=by),
                check=lambda changed: check_nesting(by, changed.axes.within or {}),
            )  # fmt: skip
    by = with_parents(by, spec.axes.within or {})
    for column in by:
        if column not in {**(categories_of(spec) or {}), **(spec.records.bins or {})}:
            spec = _asked_about_missing(_asked_about_categories(spec, column), column)
    return spec if spec.records.unit is not None else _asked_about_persons(spec, columns, by)


def _asked_about_categories(spec: Spec, column: str) -> Spec:
    """Ask for the categories or the bins of a column, of a nested one for the categories in each of its parent."""
    parent = (spec.axes.within or {}).get(column)
    above = {} if parent is None else by_parent((categories_of(spec) or {}).get(parent, ()))
    paths = [(*path, str(label)) for path, labels in above.items() for label in labels]
    for path in paths if parent is not None else [()]:
        where = f" in {', '.join(path)}" if path else ""
        other = "" if path else f" (or: {BINS}0,18,65, for numbers or dates; or: {IN_FILE}categories.toml)"
        question = f"Categories of {column}{where}, with commas between them{other}"
        spec = ask_until(question, None, partial(_with_categories, spec, column, path))
    return spec


def _with_categories(spec: Spec, column: str, path: tuple[str, ...], answer: str) -> Spec:
    if answer.startswith(BINS) and not path:
        edges = _edges(spec, column, answer.removeprefix(BINS).replace(" ", "").split(","))
        changed = adding(spec, {"records.bins": {column: edges}})
    elif answer.startswith(IN_FILE) and not path:
        if spec.axes.domain is not None:
            raise InputError("Categories must be in one file, got another. Name them here, or add them to that file.")
        changed = with_values(spec, {"axes.domain": answer.removeprefix(IN_FILE).strip()})
    else:
        changed = with_typed(spec, "axes.categories", [f"{pair(column, [], *path)}{answer}"])
    return _checked(changed, column)


def _edges(spec: Spec, column: str, edges: list[str]) -> list[str]:
    """The edges of bins, with an open end where values lie outside them, which is asked."""
    if column in (spec.axes.within or {}).values():
        raise InputError(
            f"Column {the.column(column)} must have categories, not bins, because another one is within it."
        )
    inner = edges[edges[0] == "" : len(edges) - (edges[-1] == "")]
    bins = check_bins({column: ["", *inner, ""]})[column]  # which refuses what cannot be edges
    below, above = ("before {}", "{} or later") if bins.kind == "date" else ("below {}", "{} or above")
    lowest = edges[0] == "" or confirm(f"Can values of {column} be {below.format(inner[0])}?", None)
    highest = edges[-1] == "" or confirm(f"Can values of {column} be {above.format(inner[-1])}?", None)
    return [*[""] * lowest, *inner, *[""] * highest]


def _checked(spec: Spec, column: str) -> Spec:
    """The spec, if what it declares of a column can be its categories, in each of its parent if it is nested."""
    labels = by_parent((categories_of(spec) or {}).get(column, ()))
    records = for_columns(with_values(spec, {"axes.within": None}), [column]).records
    for categories in [{column: group} for group in labels.values()] or [{}]:
        declare_cells([column], categories, bins=records.bins, missing=records.missing)
    return spec


def _asked_about_missing(spec: Spec, column: str) -> Spec:
    """Ask for the category of missing values, which is one more of a column, in each of its parent if it is nested."""

    def read(answer: str) -> Spec:
        label = parse_name(answer)
        if not label:
            return spec
        if "=" in label:
            raise InputError(f"The label of missing values must not contain an equals sign, got {label!r}.")
        changed = adding(spec, {"records.missing": {column: label}})
        labels = by_parent((spec.axes.categories or {}).get(column, ()))
        more = {path: [*group, *{label}.difference(group)] for path, group in labels.items()}
        if more:
            changed = adding(changed, {"axes.categories": {column: more.get((), more)}})
        return _checked(changed, column)

    question = f"Can values of {column} be missing? Then a label for them, such as unknown (Enter: none is missing)"
    return spec if column in (spec.records.missing or {}) else ask_until(question, "", read)


def _asked_about_persons(spec: Spec, columns: Sequence[str], by: Sequence[str]) -> Spec:
    """Ask whether a person may have several records, and if so who a person is, and how many of them are counted."""
    most = spec.records.max_rows_per_unit
    if most == 1:  # which alone declares that every record is of another person
        return spec
    if most is None and not confirm("Can one person have several records?", None):
        return with_values(spec, {"records.max_rows_per_unit": 1})
    none = f" ({NO_COLUMN} if none does: the guarantee is then for one record, not for one person)"
    question = f"Which column identifies a person?{none if most is None else ''}"
    changed = asked(
        spec, "records.unit", question, choices=columns, nothing=NO_COLUMN,
        check=lambda changed: check_unit(changed.records.unit, 1, by),
    )  # fmt: skip
    if changed is spec and most is not None:
        why = Text(f"A column must identify a person, because {arg.max_rows_per_unit} bounds the records of each.")
        note(in_shell(why))
        return _asked_about_persons(spec, columns, by)
    if changed is spec or most is not None:
        return changed
    return asked(
        changed, "records.max_rows_per_unit", "At most how many records of each person are counted?",
        check=lambda bound: check_unit(bound.records.unit, bound.records.max_rows_per_unit, by),
    )  # fmt: skip


# -- the release ------------------------------------------------------------------------------------


def asked_about_release(spec: Spec, table: ks.Table, are_public: bool) -> Spec:
    """Ask for what must be known to release the table, also whether its categories ``are_public`` unless they are."""
    spec = _asked_about_totals_and_noise(spec, table)
    come = f"The categories of {shown_list(table.undeclared)} come from the table"
    public = f"{come}. Are they public, whatever the counts are? Then the spec declares them"
    if table.undeclared and not are_public and confirm(public):
        spec = with_categories_of(spec, table)
    if not spec.postprocess.nonnegative and confirm(f"{OPTIONS['postprocess.nonnegative'].hint}?"):
        changed = with_values(spec, {"postprocess.nonnegative": True})
        problem = _problem_of(changed, partial(check_plan, table))
        if problem is not None:
            note(f"{in_shell(problem)} So counts may be negative.")
        spec = changed if problem is None else spec
    if spec.output.path is None:
        question = "Where do releases go? (a folder or a file)"
        spec = asked(spec, "output.path", question, OUTPUT_FOLDER, check=check_output)
    return spec


def _asked_about_totals_and_noise(spec: Spec, table: ks.Table) -> Spec:
    """Ask for the totals and the noise until a release can be planned with them."""
    keeps, noise = spec.keep != Keep(), spec.mechanism
    has_noise = not (noise.epsilon is None and noise.rho is None and noise.sigma is None)
    while True:
        chosen = spec if keeps else _asked_about_totals(spec, table)
        chosen = chosen if has_noise else _asked_about_noise(chosen, table)
        problem = _problem_of(chosen, partial(check_plan, table))
        if problem is None:
            return chosen
        if keeps and has_noise:
            raise PlanError(problem)
        note(in_shell(problem))


def _asked_about_totals(spec: Spec, table: ks.Table) -> Spec:
    """Ask for the totals until they leave noise, and the cells that they determine may be published without."""
    axes, within = table.domain.axes, table.domain.within

    def read(answer: str) -> Spec:
        wanted = groups(answer, ",", axes)
        if wanted == [NOTHING] and NOTHING not in axes:
            changed = with_values(spec, {"keep.nothing": True})
        else:
            changed = with_typed(spec, "keep.margins", [margin for margin in wanted if margin != TOTAL])
            changed = with_values(changed, {"keep.total": TOTAL in wanted or None})
        structure_of(kept_of(changed, table))  # which refuses totals that leave no noise
        return changed

    note("Kept totals are published exactly, and so are not protected.")
    outermost = [shown_name(name) for name in axes if name not in within]
    two_way = f"; {','.join(outermost[:2])} for a two-way margin" if len(axes) > 2 and len(outermost) > 1 else ""
    several = ", several with a blank between" if len(axes) > 1 else ""
    names = f"{shown_list(axes)}{several}{two_way}"
    question = f"Which totals are kept exactly? Axes: {names}; {TOTAL} for the grand total, {NOTHING} for none"
    coarsest = next((shown_name(name) for name in axes if name in within.values()), TOTAL)
    chosen = ask_until(question, coarsest, read)
    kept = kept_of(chosen, table)
    pinned = [kept.cell_name(int(cell)) for cell in structure_of(kept).pinned]
    if not pinned:
        return chosen
    shown = "; ".join(pinned[:MAX_NAMES]) + (" and others" if len(pinned) > MAX_NAMES else "")
    cells = "1 cell is" if len(pinned) == 1 else f"{len(pinned):,} cells are"
    note(f"{cells} determined by these totals, and would be published without noise: {shown}.")
    if confirm("Is that acceptable?"):
        return with_values(chosen, {"output.accept_pinned": pinned})
    return _asked_about_totals(spec, table)


def _asked_about_noise(spec: Spec, table: ks.Table) -> Spec:
    needs_delta = spec.mechanism.kind == "gaussian" and spec.mechanism.delta is None

    def check(changed: Spec) -> None:
        noise_of(changed.mechanism)

    spec = with_values(spec, {"mechanism.epsilon": "1", **({"mechanism.delta": "1e-6"} if needs_delta else {})})
    check(spec)  # else an option is wrong, and no answer is right
    if needs_delta:
        spec = asked(spec, "mechanism.delta", default="1e-6", check=check)
    whose = "per unit of distance" if spec.mechanism.per_unit else f"of one {subject_of(table.records)}"
    return asked(spec, "mechanism.epsilon", f"{OPTIONS['mechanism.epsilon'].hint} {whose}", "1", check=check)


# -- what stops a table from being read -------------------------------------------------------------


def _read_asking(spec: Spec, attempt: Attempt, may_add: bool = True) -> tuple[Spec, Any]:
    """What an attempt reads, and the spec with what was answered about its problems.

    Of each thing that is noticed it is asked once. For any other problem options are asked for, if they ``may_add``
    anything; else it is raised.
    """
    earlier: list[Spec] = []  # before each answer in the form of options
    settled: set[Finding | None] = {None}
    while True:
        result, error = _tried(spec, attempt)
        if error is None:
            return spec, result
        finding = error.finding if isinstance(error, UndeclaredError) else None
        changed = None if finding is None or finding in settled else _settled(finding, spec, attempt)
        settled.add(finding)
        if changed is None and not may_add:
            raise error
        spec = changed or _with_asked_options(spec, error.text, attempt, earlier)


def _tried(spec: Spec, attempt: Attempt) -> tuple[Any, KeepsumError | None]:
    try:
        return attempt(spec), None
    except KeepsumError as error:
        return None, error


def _problem_of(spec: Spec, attempt: Attempt) -> Text | None:
    """What stops an attempt; nothing if that is only something else that was noticed."""
    _, error = _tried(spec, attempt)
    return None if error is None or isinstance(error, UndeclaredError) else error.text


def _with_asked_options(spec: Spec, problem: Text, attempt: Attempt, earlier: list[Spec]) -> Spec:
    """The spec with more options.

    If the same problem stays, it was made by the options before: then the new ones replace those, and otherwise nothing
    is added. An empty answer takes the last ones back.
    """
    note(in_shell(problem))

    def read(answer: str) -> Spec:
        if not answer and earlier:
            return earlier.pop()
        if not answer:
            raise InputError(f"{problem:marked} Type the options, as in a shell. {LEAVING}")
        for before in (spec, *earlier[-1:]):
            changed = with_options(before, answer)
            if _problem_of(changed, attempt) != problem:
                earlier.extend([spec] if before is spec else [])
                return changed
        raise InputError(problem)

    return ask_until(f"Options to add{' (Enter: take the last ones back)' if earlier else ''}", "", read)


def with_options(spec: Spec, answer: str) -> Spec:
    """The release with more options, typed as in a shell; a later value for a column counts."""
    try:
        words = shlex.split(answer)
    except ValueError:
        words = None
    if words is None:
        raise InputError("Options must be as in a shell, with every quotation mark closed.")
    added = parsed(words)
    for table in added.typed.get("source.data", ()):
        raise InputError(
            f"Options must be like {arg.within.of('county:state')}, got {table!r} as well. Leave out {table!r}."
        )
    more = added.options(spec.axes.within)
    return adding(spec, {key: value_of(more, OPTIONS[key]) for key in added.typed})


def _settled(finding: Finding, spec: Spec, attempt: Attempt) -> Spec | None:
    """The spec with the answer about what was noticed; None if no answer settles it."""

    def check(changed: Spec, about: Sequence[str] = ("",)) -> None:
        problem = _problem_of(changed, attempt)
        if problem is not None and any(word in problem for word in about):
            raise InputError(problem)

    match finding:
        case findings.Numbers():
            return _with_meanings(finding, spec, attempt)
        case findings.Sheets(names=names):
            return asked(spec, "source.sheet", f"Which sheet? ({shown_list(names)})", choices=names)
        case findings.Encoding(file=file, likely=likely):
            note(f"File {file!r} is not UTF-8 text.")
            about = partial(check, about=("encoding", "UTF-8"))
            return asked(spec, "source.encoding", "In which encoding is it?", likely, check=about)
        case findings.Sparse(cells=cells, axes=axes):
            note(f"Most of the {cells:,} combinations of categories have no row. Axes: {shown_list(axes)}.")
            several = f"such as {joined(axes[-1], axes[0])}, several with a blank between"
            question = f"Which axis is within which? ({several}; {DENSE} if every combination is a cell)"
            typed = partial(groups, mark=":", names=axes)
            nested = asked(spec, "axes.within", question, nothing=DENSE, typed=typed, check=check)
            return with_values(spec, {"axes.dense": True}) if nested is spec else nested
        case _:
            return _accepted(finding, spec, attempt)


def _accepted(finding: Finding, spec: Spec, attempt: Attempt) -> Spec | None:
    """The spec with the first proposal that is answered by yes; None if there is none."""
    dense = with_values(spec, {"axes.dense": True})
    is_total = isinstance(finding, (findings.TotalLabels, findings.BlankTotals))
    for proposal in proposals_for(finding, spec):
        if not confirm(proposal.question, proposal.default):
            continue
        changed = accepted(spec, proposal)
        problem = _problem_of(changed, attempt)
        # What looks like a total can always be left out. A problem is one of the data, and another question, if it is
        # the same whatever is answered.
        if problem is None or is_total or problem == _problem_of(dense, attempt):
            return changed
        note(in_shell(problem))
    return None


def _with_meanings(finding: findings.Numbers, spec: Spec, attempt: Attempt) -> Spec:
    """Columns of numbers: all are asked about before any is an axis, because axes are then named."""
    others = [name for name in finding.axes if name not in finding.columns]
    choices = [AXIS, *([CODE] if others else []), OUT]
    code = f"{CODE} of an axis, to be published as it is, " if others else ""
    meanings = f"is it an {AXIS} of the table, a {code}or to be left {OUT}? ({', '.join(choices)})"
    while True:
        changed, axes = spec, list(finding.axes)
        for column in finding.columns:
            meaning = ask_until(f"{column} has numbers: {meanings}", OUT, partial(one_of, choices))
            if meaning == OUT:
                changed = adding(changed, {"source.drop": [column]})
            if meaning == CODE:
                before = [name for name in finding.axes[: finding.axes.index(column)] if name in others]
                question = f"Which axis does {column} follow from? ({shown_list(others)})"
                axis = ask_until(question, [others[0], *before][-1], partial(one_of, others))
                changed = adding(changed, {"source.carry": {column: axis}})
            if meaning != AXIS:
                axes.remove(column)
        if set(axes) & set(finding.columns):
            changed = with_values(changed, {"axes.names": axes})
        problem = _problem_of(changed, attempt)
        said = "" if problem is None else in_shell(problem)
        if not any(words in said for words in (SAME_CELL, *map(repr, finding.columns))):
            return changed  # another problem is another question
        note(said)


# -- what is checked, also without a terminal -------------------------------------------------------


def check_source(source: str) -> None:
    """Refuse data that are not there, and an address with a password: it would be written to the spec."""
    if not source:
        raise InputError("The table must be the name of a file, got an empty name.")
    if is_address(source):
        check_address(source)
    elif source != STANDARD_INPUT and not Path(source).is_file() and not Path(source).is_fifo():
        find_files(source)  # a folder or a pattern, or else refused


def check_plan(table: ks.Table, spec: Spec) -> None:
    """Refuse what ``keepsum plan`` refuses, and a nearest table that cannot be worked out."""
    nearest_in = norm_of(bool(spec.postprocess.nonnegative), spec.postprocess.norm)
    mechanism, kept = noise_of(spec.mechanism, table), kept_of(spec, table)
    with progress() as step:
        step("compiling the plan")
        plan = compile_plan(kept, mechanism, records=table.records)
        if nearest_in is not None:
            check_nonnegative(plan.structure, nearest_in)


def check_output(spec: Spec) -> Sequence[Path]:
    """The files of a release, in a place that ``keepsum release`` would not refuse, but for what is there already."""
    job = job_of(spec)
    place = place_of(job)
    place.check(force=True)
    check_not_source(files_of(place), [job])
    return files_of(place)


def with_categories_of(spec: Spec, table: ks.Table) -> Spec:
    """The spec with the categories that the table has in axes whose categories are not declared."""
    taken = {name: by_parent(table.domain.categories(name)) for name in table.undeclared}
    values = {name: labels.get((), labels) for name, labels in taken.items()}
    return adding(spec, {"axes.categories": values}) if values else spec
