"""``keepsum init``: a spec for a release that repeats, by questions or by options."""

from __future__ import annotations

import shlex
import sys
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import keepsum as ks
from keepsum.cli import questions
from keepsum.cli.completion import header
from keepsum.cli.declaration import FILES, Declaration, declares
from keepsum.cli.screen import done, note, shown
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError

if TYPE_CHECKING:
    from keepsum.specs.spec import Output, Postprocess, Spec

OUTPUT = "The release"
HELP = """Write keepsum.toml, a spec for a release that repeats: `keepsum release` then needs no options.

Examples:

    keepsum init counts.csv

    keepsum init counts.csv --count n --keep county --epsilon 0.5 --output out/

It asks for what options leave open, if there is a terminal to answer on, and releases nothing. The option --spec names
another file to write to.

"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", help=HELP + FILES)(init)


@declares
def init(
    declared: Declaration,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Where releases go; out/ by default.", metavar="OUTPUT", rich_help_panel=OUTPUT
        ),
    ] = None,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative", help="Publish the nearest table without negative counts.", rich_help_panel=OUTPUT
        ),
    ] = False,
    sign: Annotated[
        str | None,
        typer.Option("--sign", help="Sign certificates with this key.", metavar="KEY", rich_help_panel=OUTPUT),
    ] = None,
    write_categories: Annotated[
        bool,
        typer.Option(
            "--write-categories",
            help="Declare the categories that the table has now: they are public, whatever the counts are.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing spec.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Write a spec."""
    from keepsum.sources.atomic import check_new, write_file
    from keepsum.specs.reading import NAME
    from keepsum.specs.spec import Output, Postprocess
    from keepsum.specs.writing import in_folder_of, toml_of

    path = Path(declared.spec or NAME)
    if declared.only is not None:
        raise InputError("Option --only must not be given: it chooses a table of a spec that there is already.")
    check_new(path, force)
    warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)  # asked about below
    asking = sys.stdin is not None and sys.stdin.isatty()
    if asking:
        declared = _asked_about_table(declared)
    elif declared.table is None:
        raise InputError("A table must be given: keepsum init counts.csv --count n ...")
    declared, table = _read(replace(declared, spec=None), asking)
    if asking:
        declared, output, nonnegative, write_categories = _asked_about_release(
            declared, table, output, nonnegative, write_categories
        )
    to = Output(path=output or "out/", sign=sign)
    spec = _spec(declared, table, to, Postprocess(nonnegative=nonnegative or None), write_categories)
    text = toml_of(in_folder_of(spec, path))
    write_file(path, text.encode(), force)
    done(f"The spec is written: {shown(path)!r}.")
    typer.echo(f"Spec  {shown(path)}")
    place = "" if path == Path(NAME) else f" --spec {shlex.quote(shown(path))}"
    typer.echo(
        f"Next: keepsum plan{place}, to see what a release would keep and guarantee, then keepsum release{place}"
    )


def _spec(declared: Declaration, table: ks.Table, to: Output, postprocess: Postprocess, write_categories: bool) -> Spec:
    """The spec, if a release could be planned by it."""
    import msgspec

    from keepsum.specs.building import kept_of, margin_of, noise_of

    replaced = msgspec.structs.replace
    spec = declared.options()
    margins = [margin_of(margin, table.domain.axes) for margin in spec.keep.margins or []]
    numbers = {name: _number(getattr(spec.mechanism, name)) for name in ("epsilon", "delta", "rho", "sigma")}
    spec = replaced(
        spec,
        keep=replaced(spec.keep, margins=[axes[0] if len(axes) == 1 else axes for axes in margins] or None),
        mechanism=replaced(spec.mechanism, **numbers),
        output=to,
        postprocess=postprocess,
    )
    noise_of(spec.mechanism)
    kept_of(spec, table)
    if write_categories and table.undeclared:
        categories = (spec.axes.categories or {}) | {name: _categories(table.domain, name) for name in table.undeclared}
        spec = replaced(spec, axes=replaced(spec.axes, categories=categories))
    return spec


def _number(text: Any) -> Any:
    """A number as TOML has it; text where that would not be the same number, such as 1/3."""
    for kind in (int, float):
        try:
            if text is not None and repr(kind(text)) == text:
                return kind(text)
        except ValueError:
            continue
    return text


def _categories(domain: ks.Domain, name: str) -> Any:
    """The categories of an axis in the form that a spec has them."""
    axis = domain.axis(name)
    if axis.parent is None:
        return list(axis.labels)
    by_parent: dict[tuple[Any, ...], list[Any]] = {}
    for *path, label in axis.paths():
        by_parent.setdefault(tuple(path), []).append(label)
    return by_parent


def _asked_about_table(declared: Declaration) -> Declaration:
    """What must be known to read the table."""
    table = declared.table
    if table is None:
        table = questions.ask_until("Which file has the table?", None, questions.existing_file)
        declared = replace(declared, table=table)
    if declared.by or declared.count is not None or declared.wide is not None:
        return declared
    columns = header(Path(table)) if Path(table).is_file() else []
    if columns:
        note(f"Columns: {', '.join(columns)}.")
    if not questions.confirm("Does each row have a count (rather than being one record)?", default=True):
        by = questions.ask("Columns to count records by, with commas between them")
        return replace(declared, by=[by])
    count = questions.ask_until("Column of counts", questions.likely_count(columns), questions.chosen_column(columns))
    return replace(declared, count=count)


def _read(declared: Declaration, asking: bool) -> tuple[Declaration, ks.Table]:
    """The table, and the declaration with the options that its problems were answered with."""
    from keepsum.specs.building import table_of

    while True:
        try:
            return declared, table_of(declared.options(), counted=False)
        except KeepsumError as error:
            problem = in_shell_terms(str(error))
            if not asking:
                raise
        note(problem)
        more = questions.ask_until("Options to add", questions.advised(problem), questions.options)
        declared = with_options(declared, more)


def _asked_about_release(
    declared: Declaration, table: ks.Table, output: str | None, nonnegative: bool, write_categories: bool
) -> tuple[Declaration, str, bool, bool]:
    """What must be known to release the table."""
    axes = table.domain.axes
    if not (declared.keep or declared.keep_total or declared.keep_file):

        def kept(answer: str) -> Declaration:
            chosen = with_options(declared, questions.margins(answer))
            _kept(chosen, table)
            return chosen

        note(f"Axes: {', '.join(axes)}. Kept totals are published exactly, and so not protected.")
        declared = questions.ask_until("Totals to keep (county sex,age total)", axes[0], kept)
    if declared.epsilon is None and declared.rho is None and declared.sigma is None:

        def noise(answer: str) -> Declaration:
            chosen = replace(declared, epsilon=answer)
            _noise(chosen)
            return chosen

        if not declared.per_person and questions.confirm("Is epsilon to be the privacy loss of one person?", True):
            declared = replace(declared, per_person=True)
        declared = questions.ask_until("Epsilon", "1", noise)
    if table.undeclared and not write_categories:
        names = ", ".join(table.undeclared)
        write_categories = questions.confirm(
            f"The categories of {names} come from the table. Are they public, whatever the counts are? Then the spec "
            f"declares them"
        )
    nonnegative = nonnegative or questions.confirm("Must counts not be negative?")
    return declared, output or questions.ask("Where do releases go?", "out/"), nonnegative, write_categories


def _kept(declared: Declaration, table: ks.Table) -> None:
    from keepsum.specs.building import kept_of

    kept_of(declared.options(), table)


def _noise(declared: Declaration) -> None:
    from keepsum.specs.building import noise_of

    noise_of(declared.options().mechanism)


def with_options(declared: Declaration, arguments: list[str]) -> Declaration:
    """The declaration with more options, given as on the command line."""
    added = _parsed(arguments)
    values: dict[str, Any] = {}
    for field in fields(Declaration):
        before, more = getattr(declared, field.name), getattr(added, field.name)
        both_lists = isinstance(before, list) and isinstance(more, list)
        values[field.name] = [*before, *more] if both_lists else (more or before)
    return Declaration(**values)


def _parsed(arguments: list[str]) -> Declaration:
    """Options of a declaration, parsed as those of a command."""
    found: list[Declaration] = []

    @declares
    def command(declared: Declaration) -> None:
        found.append(declared)

    app = typer.Typer(add_completion=False)
    app.command()(command)
    problem = ""
    try:
        typer.main.get_command(app).main(arguments, standalone_mode=False)
    except Exception as error:  # typer's own, which says what is wrong with the call
        if not hasattr(error, "format_message"):
            raise
        problem = str(error.format_message())
    if problem or not found:
        raise InputError(f"Options must be like --within county:state, but: {problem or 'nothing was given'}")
    return found[0]
