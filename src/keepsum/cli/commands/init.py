"""``keepsum init``: a spec for a release that repeats, by questions or by options."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import keepsum as ks
from keepsum._saying import arg
from keepsum.cli.declaration import Declaration, declares, option
from keepsum.cli.help_text import SEE
from keepsum.cli.screen import done, shown
from keepsum.errors import InputError, OutputExistsError
from keepsum.specs.option import RELEASE
from keepsum.specs.options import with_values

if TYPE_CHECKING:
    from keepsum.specs.spec import Spec

NUMBERS = ("epsilon", "delta", "rho", "sigma")
WRITTEN = Annotated[str | None, option("--spec", help="The spec to write; keepsum.toml by default.", metavar="FILE")]
HIDDEN = Annotated[str | None, typer.Option("--only", hidden=True)]  # refused: it chooses a table of a spec
HELP = """Write keepsum.toml, a spec for a release that repeats: `keepsum release` then needs no options.

Examples:

    keepsum init counts.csv

    keepsum init counts.csv --count n --keep county --epsilon 0.5 --output out/ --spec counts.toml

It asks for what options leave open, if there is a terminal to answer on, and releases nothing.
"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", help=HELP + SEE)(init)


@declares(
    "postprocess", "output", "ledger",
    helps={"output.path": "Where releases go; out/ by default."},
    spec=WRITTEN, only=HIDDEN, settings=None, no_spec=None,
)  # fmt: skip
def init(
    declared: Declaration,
    write_categories: Annotated[
        bool,
        typer.Option(
            "--write-categories",
            help="Declare the categories that the table has now: they are public, whatever the counts are.",
            rich_help_panel=RELEASE,
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing spec.", rich_help_panel=RELEASE)] = False,
) -> None:
    """Write a spec."""
    from keepsum.cli import asking
    from keepsum.sources.atomic import write_file
    from keepsum.specs.building import table_of
    from keepsum.specs.reading import NAME
    from keepsum.specs.writing import in_folder_of, toml_of

    path = Path(NAME if declared.spec is None else declared.spec)
    if declared.only is not None:
        raise InputError(f"{arg.only} must not be given: it chooses a table of a spec that there is already.")
    spec = declared.options()
    _check_spec(path, spec, force)
    if spec.source.data is not None:
        asking.check_source(str(spec.source.data))
    warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)  # asked about below
    if spec.output.path is not None:
        asking.check_output(spec)
    if sys.stdin is not None and sys.stdin.isatty():
        spec, table = asking.asked_about_table(spec)
        _check_spec(path, spec, force)
        spec = asking.asked_about_release(spec, table, write_categories)
    elif spec.source.data is None:
        raise InputError(f"A table must be given: keepsum init counts.csv {arg.count} n ...")
    else:
        table = table_of(spec, counted=False)
    if spec.output.path is None:
        spec = with_values(spec, {"output.path": asking.OUTPUT_FOLDER})
    if path.resolve() in {file.resolve() for file in asking.check_output(spec)}:
        raise InputError("Output must not be the spec itself. Choose another name.")
    asking.check_plan(table, spec)
    spec = _as_written(asking.with_categories_of(spec, table) if write_categories else spec, table.domain.axes)
    text = toml_of(in_folder_of(spec, path))
    write_file(path, text.encode(), force)
    done(f"The spec is written: {shown(path)!r}.")
    typer.echo(f"Spec  {shown(path)}")
    place = "" if path == Path(NAME) else f" --spec {shlex.quote(shown(path))}"
    typer.echo(
        f"Next: keepsum plan{place}, to see what a release would keep and guarantee, then keepsum release{place}"
    )


def _check_spec(path: Path, spec: Spec, force: bool) -> None:
    """Refuse to write a spec over another one, unless that is meant, or over a file that it names."""
    from keepsum.sources.atomic import check_new
    from keepsum.specs.job import job_of

    if path.resolve() in {file.resolve() for file in job_of(spec).inputs()}:
        raise InputError("The spec must not be a file that it names, such as the table. Choose another name.")
    if path.is_file() and not force:
        raise OutputExistsError(
            f"There must be no spec {shown(path)!r} yet, but there is one. Release by it with keepsum release, "
            f"replace it {arg.force:with}, or write another one {arg.spec.of('FILE'):with}."
        )
    check_new(path, force)


def _as_written(spec: Spec, axes: Sequence[str]) -> Spec:
    """The spec with numbers as numbers, and with margins as lists of their axes."""
    from keepsum.specs.building import margin_of

    margins = [margin_of(margin, axes) for margin in spec.keep.margins or []]
    values = {f"mechanism.{name}": _number(getattr(spec.mechanism, name)) for name in NUMBERS}
    values["keep.margins"] = [margin[0] if len(margin) == 1 else margin for margin in margins] or None
    return with_values(spec, values)


def _number(text: Any) -> Any:
    """A number as TOML has it; text where that would not be the same number, such as 1/3."""
    for kind in (int, float):
        with suppress(ValueError):
            if text is not None and repr(kind(text)) == text:
                return kind(text)
    return text
