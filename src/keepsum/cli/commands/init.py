"""``keepsum init``: a spec for a release that repeats, by questions or by options."""

from __future__ import annotations

import shlex
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import keepsum as ks
from keepsum.cli.declaration import SPEC, Declaration, declares, option
from keepsum.cli.epilogs import FILES
from keepsum.cli.screen import done, shown
from keepsum.cli.standard_output import destination
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.cli.asking_release import Wanted
    from keepsum.specs.spec import Spec

OUTPUT = "The release"
WRITTEN = Annotated[
    str | None, option("--spec", help="The spec to write; keepsum.toml by default.", panel=SPEC, metavar="FILE")
]
HIDDEN = Annotated[str | None, typer.Option("--only", hidden=True)]  # refused: it chooses a table of a spec
SPEC_IS_OUTPUT = "Output must not be the spec itself. Choose another name."
HELP = """Write keepsum.toml, a spec for a release that repeats: `keepsum release` then needs no options.

Examples:

    keepsum init counts.csv

    keepsum init counts.csv --count n --keep county --epsilon 0.5 --output out/ --spec counts.toml

It asks for what options leave open, if there is a terminal to answer on, and releases nothing.

"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", help=HELP + FILES)(init)


@partial(declares, spec=WRITTEN, only=HIDDEN)
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
    from keepsum.cli.asking_release import (
        OUTPUT_FOLDER,
        Wanted,
        asked_about_release,
        cells_of,
        check_output,
        read_asking,
        refuse_same,
    )
    from keepsum.cli.asking_source import asked_about_source, check_source
    from keepsum.sources.atomic import write_file
    from keepsum.specs.reading import NAME
    from keepsum.specs.writing import in_folder_of, toml_of

    path = Path(NAME if declared.spec is None else declared.spec)
    if declared.only is not None:
        raise InputError("Option --only must not be given: it chooses a table of a spec that there is already.")
    _check_spec(path, declared, sign, force)
    if declared.table is not None:
        check_source(declared.table)
    warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)  # asked about below
    declared = replace(declared, spec=None)
    wanted = Wanted(declared, output, nonnegative, write_categories)
    if output is not None:
        check_output(output, declared)
    if sys.stdin is not None and sys.stdin.isatty():
        declared, table = read_asking(asked_about_source(declared))
        _check_spec(path, declared, sign, force)
        wanted = asked_about_release(replace(wanted, declared=declared), table)
    elif declared.table is None:
        raise InputError("A table must be given: keepsum init counts.csv --count n ...")
    else:
        table = cells_of(declared)
    wanted = replace(wanted, output=wanted.output or OUTPUT_FOLDER)
    check_output(str(wanted.output), declared)
    spec = _spec(wanted, table, sign)
    refuse_same([str(path)], destination(str(wanted.output), None).files, SPEC_IS_OUTPUT)
    text = toml_of(in_folder_of(spec, path))
    write_file(path, text.encode(), force)
    done(f"The spec is written: {shown(path)!r}.")
    typer.echo(f"Spec  {shown(path)}")
    place = "" if path == Path(NAME) else f" --spec {shlex.quote(shown(path))}"
    typer.echo(
        f"Next: keepsum plan{place}, to see what a release would keep and guarantee, then keepsum release{place}"
    )


def _check_spec(path: Path, declared: Declaration, sign: str | None, force: bool) -> None:
    """Refuse to write a spec over another one, unless that is meant, or over a file that it names."""
    from keepsum.cli.asking_release import refuse_same
    from keepsum.sources.atomic import check_new

    named = [declared.table, declared.domain, declared.structure, sign, *(declared.keep_file or [])]
    refuse_same(named, [path], "The spec must not be a file that it names, such as the table. Choose another name.")
    if path.is_file() and not force:
        raise InputError(
            f"There must be no spec {shown(path)!r} yet, but there is one. Release by it with keepsum release, replace "
            f"it with --force, or write another one with --spec FILE."
        )
    check_new(path, force)


def _spec(wanted: Wanted, table: ks.Table, sign: str | None) -> Spec:
    """The spec, if a release can be planned by it."""
    import msgspec

    from keepsum.cli.asking_release import check_plan
    from keepsum.specs.building import margin_of
    from keepsum.specs.spec import Output, Postprocess

    check_plan(wanted.declared, table, wanted.nonnegative)
    replaced = msgspec.structs.replace
    spec = wanted.declared.options()
    margins = [margin_of(margin, table.domain.axes) for margin in spec.keep.margins or []]
    numbers = {name: _number(getattr(spec.mechanism, name)) for name in ("epsilon", "delta", "rho", "sigma")}
    spec = replaced(
        spec,
        keep=replaced(spec.keep, margins=[axes[0] if len(axes) == 1 else axes for axes in margins] or None),
        mechanism=replaced(spec.mechanism, **numbers),
        output=Output(path=wanted.output, sign=sign, accept_pinned=list(wanted.accept_pinned) or None),
        postprocess=Postprocess(nonnegative=wanted.nonnegative or None),
    )
    if wanted.write_categories and table.undeclared:
        taken = {name: _categories(table.domain, name) for name in table.undeclared}
        spec = replaced(spec, axes=replaced(spec.axes, categories={**(spec.axes.categories or {}), **taken}))
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
