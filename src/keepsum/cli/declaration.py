"""The options that commands share, made from their records."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from keepsum._saying import arg
from keepsum._text import given
from keepsum.cli import completion
from keepsum.errors import InputError, KeepsumWarning
from keepsum.specs.option import GROUPS, SWITCH, Option
from keepsum.specs.options import OPTIONS, with_values
from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.specs.job import Job
    from keepsum.specs.spec import MarginalSpec


# The level of margins of error, as options give it.


def parse_level(text: str) -> float:
    """A probability between 0 and 1, as digits after a decimal point."""
    level = float(text) if re.fullmatch(r"0?\.[0-9]+", text) else 0.0
    if not 0 < level < 1:
        raise InputError(f"{arg.level} must lie between 0 and 1, such as 0.95, got {given(text)}.")
    return level


# Parameters of several commands; the number of threads is ``threads=`` in Python.

Threads = Annotated[
    int | None,
    typer.Option("--threads", help="How many threads to use; by default one for each core.", min=1, metavar="N"),
]
ReleasePath = Annotated[Path, typer.Argument(help="The released table, or the folder of a release.", metavar="RELEASE")]
CertificatePath = Annotated[
    Path | None, typer.Argument(help="Its certificate; by default the one beside it.", metavar="CERTIFICATE")
]
AllowSeeded = Annotated[bool, typer.Option("--allow-seeded", help="Accept seeded noise, for tests.")]
Patient = Annotated[bool, typer.Option("--patient", help="Work everything out again, however long that takes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


# The options that commands share, made from their records: they declare the table, the kept totals and the noise.

SPEC = "A spec (keepsum.toml)"
SHARED = ("source", "records", "axes", "keep", "mechanism")
AFRESH = "{name} of this folder is not used, because {what} is given. To use it, pass --spec {name}."


def option(*names: str, help: str, panel: str = SPEC, **more: Any) -> Any:  # noqa: A002
    """A command-line option, under a heading of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


# How a command is told which spec to use: the parameters of these names, with their types.
OF_SPEC: dict[str, Any] = {
    "spec": Annotated[str | None, option("--spec", help="A spec, overridden by options.", metavar="FILE")],
    "only": Annotated[str | None, option("--only", help="One of the tables of a spec.", metavar="NAME")],
    "settings": Annotated[
        list[str] | None, option("--set", help="What {NAME} in a text of the spec stands for.", metavar="NAME=TEXT")
    ],
    "no_spec": Annotated[bool, option("--no-spec", help="Do not use the spec of this folder.")],
}


@dataclass(frozen=True)
class Declaration:
    """A release as declared on the command line."""

    # What was typed, by the keys of the options that were given: one text for each time, [True] for a switch.
    typed: Mapping[str, Any] = field(default_factory=dict)
    # The spec, which of its tables, and whether that of the folder is to be left alone.
    spec: str | None = None
    only: str | None = None
    no_spec: bool = False
    # What stands for names in braces in the spec, as it was typed.
    settings: Sequence[str] | None = None

    def jobs(self, data_needed: bool = False, loss_needed: bool = True) -> tuple[list[Job], list[MarginalSpec]]:
        """What is to be released, as options or a spec declare it, with the sums over it that a spec asks for.

        Parameters
        ----------
        data_needed
            Whether there must be data, and not only categories.
        loss_needed
            Whether there must be an epsilon, rho or sigma; without one, the spec of this folder may be meant.
        """
        from keepsum.specs.job import job_of, jobs_of, nesting_of
        from keepsum.specs.reading import NAME, read_spec

        path = self._spec_path(NAME)
        if path is not None:
            file, lines = read_spec(path, settings_of(self.settings))
            return jobs_of(file, lines, self.options(nesting_of(file)), self.only, found=not loss_needed)
        if self.only is not None:
            raise InputError(f"{arg.only} requires {arg.spec}, or a file {NAME} in this folder.")
        if self.settings:
            raise InputError(f"{arg['set']} requires {arg.spec}, or a file {NAME} in this folder.")
        options, unused = self.options(), Path(NAME).is_file()
        if options.source.data is None and (data_needed or not (options.axes.categories or options.axes.domain)):
            why = f"there is no {NAME} in this folder"
            if unused:
                why = f"{arg.no_spec} leaves out {NAME}" if self.no_spec else f"{NAME} has another file of categories"
            raise InputError(f"A table must be given, such as counts.csv {arg.count} n ..., because {why}.")
        noise = options.mechanism
        if loss_needed and unused and (noise.epsilon, noise.rho, noise.sigma) == (None, None, None):
            raise InputError(f"{arg.epsilon} must be given, or {arg.spec} {NAME} to use that spec with this table.")
        if unused and not self.no_spec:
            what = "a table" if options.source.data is not None else "--domain"
            warnings.warn(AFRESH.format(name=NAME, what=what), KeepsumWarning, stacklevel=2)
        return [job_of(options)], []

    def job(self) -> Job:
        """The one release that is declared."""
        jobs, _ = self.jobs()
        if len(jobs) > 1:
            raise InputError(f"{arg.only} must name one table: {', '.join(str(job.name) for job in jobs)}.")
        return jobs[0]

    def _spec_path(self, name: str) -> Path | None:
        """The spec to use: the given one, or that of this folder if neither a table nor other categories are given."""
        if self.spec == "":
            raise InputError(f"{arg.spec} must be the name of a file, got an empty name.")
        if self.spec is not None and self.no_spec:
            raise InputError(f"{arg.no_spec} must not be combined {arg.spec:with}. Leave one of them out.")
        if self.spec is not None:
            return Path(self.spec)
        if self.no_spec or "source.data" in self.typed or not Path(name).is_file():
            return None
        return None if "axes.domain" in self.typed and self._is_other_domain(Path(name)) else Path(name)

    def _is_other_domain(self, path: Path) -> bool:
        """Whether the file of categories is not that of the spec: then this is about another table."""
        from keepsum.specs.reading import read_spec

        file, _ = read_spec(path, settings_of(self.settings))
        known = {Path(part.axes.domain).resolve() for part in (file, *file.table) if part.axes.domain is not None}
        return Path(self.typed["axes.domain"][-1]).resolve() not in known

    def options(self, nesting: Mapping[str, str] | None = None) -> Spec:
        """What the options say, in addition to the ``nesting`` of a spec; what they do not say is None."""
        values: dict[str, Any] = {}
        within = dict(nesting or {})
        for key in sorted(self.typed, key="axes.within".__ne__):  # which categories are read by
            one = OPTIONS[key]
            value = one.kind.read(self.typed[key], one.flag or "", within)
            values[key] = None if value in ([], {}) else value
            within |= (value if key == "axes.within" else None) or {}
        return with_values(Spec(), values)


def settings_of(typed: Sequence[str] | None) -> dict[str, str]:
    """What names in braces stand for.

    >>> settings_of(["month=2026-12", "place=a=b"])
    {'month': '2026-12', 'place': 'a=b'}
    """
    settings: dict[str, str] = {}
    for each in typed or ():
        name, equals, text = each.partition("=")
        if not equals or not text or re.fullmatch(r"[A-Za-z_]\w*", name) is None:
            raise InputError(f"{arg['set']} must be a name and a text, such as month=2026-12, got {given(each)}.")
        if name in settings:
            raise InputError(f"{arg['set']} must have one text for each name, got two for {given(name)}.")
        settings[name] = text
    return settings


def parameter(one: Option, text: str | None = None) -> Any:
    """The option of the shell, or the argument, with its type."""
    kind = one.kind
    more: dict[str, Any] = {"help": text or one.help, "rich_help_panel": one.group, "show_default": False}
    if one.flag is None:
        return Annotated[str | None, typer.Argument(metavar=one.metavar, **{**more, "rich_help_panel": None})]
    if one.completes is not None:
        more["autocompletion"] = getattr(completion, one.completes)
    of: Any = bool if kind is SWITCH else list[str] | None if kind.repeated else kind.in_shell | None
    names = (one.flag, one.short) if one.short else (one.flag,)
    return Annotated[of, typer.Option(*names, metavar=one.metavar, **more)]


def option_of(key: str) -> Any:
    """A single text option of a release as the default of a parameter, for a command that declares no release."""
    one = OPTIONS[key]
    return typer.Option(None, str(one.flag), help=one.help, metavar=one.metavar, show_default=False)


def declares(*more: str, helps: Mapping[str, str] | None = None, **of_spec: Any) -> Callable[..., Any]:
    """Replace the Declaration parameter of a command by options, one per record.

    Parameters
    ----------
    more
        Sections, or keys of single options, beside those that all commands share.
    helps
        What options mean to this command where that is something else.
    of_spec
        Parameters instead of those of ``OF_SPEC``; None for none.
    """
    chosen = [
        one
        for one in OPTIONS.values()
        if (one.section in (*SHARED, *more) or one.key in more) and (one.flag is not None or one.key == "source.data")
    ]
    chosen.sort(key=lambda one: GROUPS.index(one.group))
    names = {one.key.replace(".", "_"): one for one in chosen}
    specs = {name: hint for name, hint in {**OF_SPEC, **of_spec}.items() if hint is not None}
    shared = {name: parameter(one, (helps or {}).get(one.key)) for name, one in names.items()} | specs

    def replaced(command: Callable[..., Any]) -> Callable[..., Any]:
        own = dict(inspect.signature(command).parameters)
        hints = get_type_hints(command, include_extras=True)
        place = next(name for name in own if hints[name] is Declaration)
        parameters = [(name, hint, False if _is_switch(hint) else None) for name, hint in shared.items()]
        parameters += [(name, hints[name], own[name].default) for name in own if name != place]

        @wraps(command)
        def call(**arguments: Any) -> Any:
            given = {one.key: _typed(arguments.pop(name)) for name, one in names.items()}
            typed = {key: value for key, value in given.items() if value}
            declaration = Declaration(typed, **{name: arguments.pop(name) for name in specs})
            return command(**{place: declaration}, **arguments)

        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
                for name, hint, default in parameters
            ]
        )
        call.__annotations__ = {name: hint for name, hint, _ in parameters}
        del call.__wrapped__
        return call

    return replaced


def _is_switch(hint: Any) -> bool:
    return bool(getattr(hint, "__origin__", None) is bool)


def _typed(value: Any) -> list[Any]:
    if value is None or value is False:
        return []
    return [value] if isinstance(value, (str, int)) else list(value)


def parsed(arguments: Sequence[str]) -> Declaration:
    """Options of a release, parsed as those of a command."""
    try:
        declared: Declaration = _any_release().main(list(arguments), standalone_mode=False)
        return declared
    except Exception as error:  # typer's own, which says what is wrong with the call
        if not hasattr(error, "format_message"):
            raise
        problem = str(error.format_message())
    raise InputError(f"Options must be like {arg.within.of('county:state')}, but one is refused: {problem!r}.")


@cache
def _any_release() -> Any:
    """A command that takes all options of a release and returns what they declare."""

    def command(declared: Declaration) -> Declaration:
        return declared

    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(declares("postprocess", "output", "ledger", **dict.fromkeys(OF_SPEC))(command))
    return typer.main.get_command(app)
