"""A release as the user declared it, in a spec, in options, or in both; what is wrong is told with its place."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from keepsum._saying import Text, arg
from keepsum.errors import InputError, KeepsumError
from keepsum.facade.objects import ledger_of, ledger_path
from keepsum.privacy.mechanism import Request
from keepsum.sources.records.files import is_address, scheme_of, sqlite_path
from keepsum.specs.building import kept_of, noise_of, table_of
from keepsum.specs.faces import in_spec, key_of
from keepsum.specs.options import OPTIONS, value_of, with_values
from keepsum.specs.reading import Key, KeyLines
from keepsum.specs.spec import SECTIONS, Charged, Keep, MarginalSpec, NoiseSpec, Spec, SpecFile, asks
from keepsum.tables.invariants import Invariants
from keepsum.tables.source import with_parents
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger


# One spec over another: a table's own keys over those of the whole spec, and options over both.


PRIVACY = ("epsilon", "delta", "rho", "sigma", "calibration")
IN_A_UNIT = ("epsilon", "rho", "delta")
LOSSES = ("epsilon", "rho", "sigma")
# What remains of these parameters where one of them is replaced.
REMAINS = {"epsilon": {"delta", "calibration"}, "rho": set[str](), "sigma": set[str]()}


def merged(base: Spec, over: Spec) -> Spec:
    """The spec ``over``, and what it leaves out from ``base``.

    Lists and values are replaced as a whole, mappings from columns key by key. A privacy parameter replaces those that
    it cannot be combined with (rho replaces epsilon and delta), a file of categories those of the spec.
    """
    if over.output.path is not None:  # a certificate goes with its own table
        base = with_values(base, {"output.certificate": None})
    if over.axes.domain is not None:
        base = with_values(base, {"axes.categories": None})
    base = msgspec.structs.replace(base, mechanism=_without_replaced(base.mechanism, over.mechanism))
    values = {}
    for one in OPTIONS.values():
        below, above = value_of(base, one), value_of(over, one)
        by_key = one.kind.by_key and isinstance(below, dict) and isinstance(above, dict) and above
        if above is not None:
            values[one.key] = below | above if by_key else above
    return with_values(base, values)


def overridden(spec: Spec, options: Spec, found: bool = False) -> Spec:
    """The spec with options over it: those for kept totals replace all that it keeps.

    If the loss is to be ``found``, that of a spec in another unit is none to begin with.
    """
    _check_unit(spec.mechanism, options.mechanism, found)
    if found and options.mechanism.per_unit and not spec.mechanism.per_unit:
        spec = msgspec.structs.replace(spec, mechanism=_without(spec.mechanism, *LOSSES))
    by = options.records.by
    both = merged(spec if by is None else for_columns(spec, by), options)
    return both if options.keep == Keep() else msgspec.structs.replace(both, keep=options.keep)


def _check_unit(spec: NoiseSpec, options: NoiseSpec, found: bool) -> None:
    """Refuse options that would read a number of the spec in another unit, or be read in another one than it says."""
    if spec.per_unit and not options.per_unit and options.sigma is None:
        for name in (*IN_A_UNIT, "focus"):
            if getattr(options, name) is not None:
                what = "focus" if name == "focus" else "loss"
                raise InputError(
                    f"{arg[name]} must be given {arg.per_unit:with}, as the spec's loss is per unit of distance. "
                    f"For the {what} of one person take per_unit out of the spec."
                )
    if not options.per_unit or spec.per_unit:
        return
    if not found and options.epsilon is None and options.rho is None:
        raise InputError(
            f"{arg.per_unit} must be given {arg.epsilon:with} or {arg.rho}, as the spec's loss is one person's."
        )
    left = _without_replaced(spec, options)
    if left.delta is not None and options.delta is None:
        raise InputError(f"{arg.per_unit} must be given {arg.delta:with}, as the spec's delta is one person's.")
    if left.focus and not options.focus:
        raise InputError(
            f"{arg.per_unit} must be given {arg.focus:with}, as the values of the spec's focus are shares."
        )


def number_in_another_unit(common: NoiseSpec, table: NoiseSpec) -> str | None:
    """The first key of the whole spec that a table would read in another unit; None if there is none."""
    if table.per_unit is None or table.per_unit == bool(common.per_unit):
        return None
    left = _without_replaced(common, table)
    return next((name for name in (*IN_A_UNIT, "focus") if getattr(left, name) and getattr(table, name) is None), None)


def _without(noise: NoiseSpec, *names: str) -> NoiseSpec:
    return msgspec.structs.replace(noise, **dict.fromkeys(names))


def _without_replaced(base: NoiseSpec, over: NoiseSpec) -> NoiseSpec:
    """The noise without the parameters that new ones replace."""
    if over.kind is not None and over.kind != (base.kind or "laplace"):
        base = _without(base, "norm", "focus", "cell_share", "focus_files", "subset", *PRIVACY[1:])
    given = [name for name in REMAINS if getattr(over, name) is not None]
    if not given:
        return base
    remains = set.intersection(*(REMAINS[name] for name in given))
    unit = None if over.sigma is not None else base.per_unit  # a width is no loss
    left = _without(base, *(name for name in PRIVACY if name not in remains))
    return msgspec.structs.replace(left, per_unit=unit)


def for_columns(common: Spec, by: list[str]) -> Spec:
    """A spec for a table that counts records by these columns, with their parents: nothing is said of others."""
    columns = with_parents(by, common.axes.within or {})
    values = {}
    for one in OPTIONS.values():
        said = value_of(common, one)
        if one.by_column and said is not None:
            values[one.key] = {column: value for column, value in said.items() if column in columns}
    return with_values(common, values)


# Which keys of a spec a message is about: for the line of a file, or the field of a form, that it is shown at.

UNRELATED = 5
WRONG = ("got", "has no label")  # what stands before a value that is wrong


def keys_about(message: str, spec: Spec, sections: Sequence[str]) -> list[tuple[str, str]]:
    """The keys of some sections that a message is most closely about, as (section, key); none if it is about none."""
    text = Text(message)
    leaves_out = {key_of(part.name) for part in text.parts if part.kind == "option" and part.use == "leave out"}
    refers_to = {key_of(part.name) for part in text.parts if part.kind == "option"}
    words = {word.strip(".,:;()'\"").lower() for word in text.split()}

    def rank(section: str, key: str) -> int:
        """How closely: it is to go, its value is wrong, repeated, or it is referred to, or has its name as a word."""
        value = getattr(getattr(spec, section), key)
        if f"{section}.{key}" in leaves_out:
            return 0
        if any(_quotes(message, value, f"{before} ") for before in WRONG):
            return 1
        if not isinstance(value, dict) and _quotes(message, value):
            return 2
        if f"{section}.{key}" in refers_to:
            return 3
        return 4 if key in words else UNRELATED

    ranks = {key: rank(*key) for key in said(spec, sections)}
    best = min(ranks.values(), default=UNRELATED)
    return [key for key, rank in ranks.items() if rank == best < UNRELATED]


def said(spec: Spec, sections: Sequence[str]) -> list[tuple[str, str]]:
    """The keys of sections about which something was said."""
    parts = {section: getattr(spec, section) for section in sections}
    return [(name, key) for name, part in parts.items() for key in part.__struct_fields__ if asks(getattr(part, key))]


def _quotes(message: str, value: Any, before: str = "") -> bool:
    """Whether a message repeats a text of a value in quotes, after these words."""
    if isinstance(value, str):
        return f"{before}{value!r}" in message
    if isinstance(value, dict):
        return any(_quotes(message, item, before) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(_quotes(message, item, before) for item in value)


TABLE = ("source", "axes", "records")


@dataclass(frozen=True)
class Job:
    """One release to make."""

    spec: Spec  # what it is, from all sources
    name: str | None = None  # its name, if it is one of several
    options: Spec = field(default_factory=Spec)  # what options said, which a spec is not to blame for
    # The lines of the spec, and the number of the ``[[table]]`` in it; None without.
    lines: KeyLines | None = None
    place: int | None = None

    def noise(self, table: Table | None = None) -> Request:
        """The mechanism, with the subsets of its focus if the table is known."""
        with self.located("mechanism"):
            return noise_of(self.spec.mechanism, table)

    def read(self) -> Table:
        """The table with its counts."""
        with self.located(*TABLE):
            return table_of(self.spec)

    def cells(self) -> Table:
        """The cells for a plan: those of the table, or of records, which are not read for it."""
        with self.located(*TABLE):
            return table_of(self.spec, counted=False)

    def kept(self, table: Table) -> Invariants:
        """The totals to keep."""
        with self.located("keep"):
            return kept_of(self.spec, table)

    def ledger(self) -> Ledger | None:
        """The ledger to charge, if one is named here or by the environment."""
        charged = self.spec.ledger
        named_here = charged.path is not None or charged.dataset is not None  # and not only by the environment
        with self.located("ledger") if named_here else nullcontext():
            return ledger_of(charged.path, charged.dataset)

    def inputs(self) -> list[Path]:
        """The files and folders that the release is made from."""
        spec = self.spec
        data = [spec.source.data] if isinstance(spec.source.data, str) else spec.source.data or []
        sources = [Path(sqlite_path(source)) for source in data if scheme_of(source) == "sqlite"]
        for source in (source for source in data if source != "-" and not is_address(source)):
            matching = [] if Path(source).exists() else glob.glob(source, recursive=True)  # noqa: PTH207
            sources += map(Path, matching or [source])
        others = [
            spec.source.structure,
            spec.axes.domain,
            *(spec.keep.files or []),
            *(spec.mechanism.focus_files or []),
            spec.output.totals,
        ]
        others += [spec.output.sign, ledger_path(spec.ledger.path), None if self.lines is None else self.lines.name]
        return [*sources, *(Path(other) for other in others if other is not None)]

    def located(self, *sections: str) -> AbstractContextManager[None]:
        """Errors say where in the spec their cause is, if it is there."""
        return self._told(lambda message: self._where(sections, message))

    def located_at(self, key: Key) -> AbstractContextManager[None]:
        """Errors say that their cause is this key of the spec."""
        return self._told(lambda message: "" if self.lines is None else f"{self.lines.at(key)}: ")

    @contextmanager
    def _told(self, where: Callable[[str], str]) -> Iterator[None]:
        """Errors begin with a place, which may depend on what they say."""
        problem: KeepsumError | None = None
        try:
            yield
        except KeepsumError as error:
            if self.lines is None:
                raise
            place = where(error.text)
            problem = error.in_words(f"{place}{in_spec(error.text)}") if place else error.in_words(error.text)
        if problem is not None:
            raise problem

    def _where(self, sections: tuple[str, ...], message: str) -> str:
        """The place of the key that a message is about, else of the first section there is; none for an option."""
        if self.lines is None:
            return ""
        about = keys_about(message, self.spec, sections)
        if about and about[0] in said(self.options, sections):
            return ""
        table: Key = () if self.place is None else ("table", self.place)
        keys: list[Key] = [*about, *((section,) for section in sections)]
        paths = [path for key in keys for path in ([(*table, *key), key] if table else [key])]
        return f"{self.lines.at(next((path for path in paths if self.lines.has(path)), table))}: "


def jobs_of(
    file: SpecFile, lines: KeyLines, options: Spec, only: str | None = None, found: bool = False
) -> tuple[list[Job], list[MarginalSpec]]:
    """The releases of a spec with options over it, and the sums over them.

    Options apply to a single release: of several, ``only`` chooses one, or all go into the folder that ``output`` is.
    Their losses are declared, or to be ``found``.
    """
    common = Spec(**{section: getattr(file, section) for section in SECTIONS})
    if not file.table:
        if only is not None:
            raise InputError(f"{arg.only} requires a spec with several tables, and {lines.name!r} has one.")
        return [Job(overridden(common, options, found), None, options, lines)], [
            _moved(marginal, options.output.path) for marginal in file.marginal
        ]
    names = [table.name for table in file.table]
    if only is not None and only not in names:
        raise InputError(f"{arg.only} must be a table of {lines.name!r} ({', '.join(names)}), got {only!r}.")
    folder = options.output.path if only is None and names_folder(options.output.path) else None
    of_all = msgspec.structs.replace(options, ledger=Charged())
    if folder is not None:
        of_all = with_values(of_all, {"output.path": None})
    if only is None and of_all != Spec():
        raise InputError(
            f"Options that say what to release must be used {arg.only.of('NAME'):with}, because {lines.name!r} has "
            f"several tables ({', '.join(names)}). All of them can go into one folder, {arg.output.of('FOLDER/'):with}."
        )
    jobs = []
    for place, table in enumerate(file.table):
        if only in (None, table.name):
            _check_table_unit(common, table, lines, place)
            by = table.records.by or common.records.by
            own = merged(for_columns(common, by) if by else common, table)
            spec = overridden(own, options, found)
            if folder is not None:
                spec = with_values(spec, {"output.path": _output_within(folder, own, table.name, lines, place)})
            jobs.append(Job(spec, table.name, options, lines, place))
    marginals = [marginal for marginal in file.marginal if only in (None, marginal.of)]
    if folder is not None:
        return jobs, [msgspec.structs.replace(one, output=_within(folder, one.output)) for one in marginals]
    return jobs, [_moved(marginal, options.output.path) for marginal in marginals]


def names_folder(output: str | None) -> bool:
    """Whether an output is a folder by its name."""
    return output is not None and output.endswith(("/", os.sep))


def _output_within(folder: str, own: Spec, name: str, lines: KeyLines, place: int) -> str:
    """Where a table goes in the folder of all tables: by its own output, or else by its name."""
    if own.output.path is None and (Path(name).name != name or name == ".."):
        raise InputError(
            f"{lines.at(('table', place, 'name'))}: [[table]] {place + 1} must have an output.path, because its name "
            "cannot be that of a folder."
        )
    return _within(folder, own.output.path or f"{name}/")


def _within(folder: str, output: str) -> str:
    """The output of a table by its last name, in the folder of all tables.

    >>> _within("2026-12/", "out/sex.csv"), _within("2026-12/", "out/age/"), _within("2026-12/", "-")
    ('2026-12/sex.csv', '2026-12/age/', '-')
    """
    return output if output == "-" else str(Path(folder) / Path(output).name) + ("/" if names_folder(output) else "")


def _check_table_unit(common: Spec, table: Spec, lines: KeyLines, place: int) -> None:
    """Refuse a table whose own per_unit reads a number of the whole spec in another unit."""
    name = number_in_another_unit(common.mechanism, table.mechanism)
    if name is not None:
        raise InputError(
            f"{lines.at(('table', place, 'mechanism', 'per_unit'))}: per_unit of [[table]] {place + 1} must be given "
            f"with its own {name}, as that of the whole spec is in another unit. Write mechanism.{name} in the table."
        )


def _moved(marginal: MarginalSpec, output: str | None) -> MarginalSpec:
    """Sums over a release whose place an option names: beside it and named after it, so that others stay as they are.

    Sums 'states.csv' over a release in 'december/' or 'december.csv' go to 'december.states.csv'.
    """
    if output is None or not Path(output).name:
        return marginal
    place = Path(output)
    stem = place.name if names_folder(output) else place.stem
    return msgspec.structs.replace(marginal, output=str(place.with_name(f"{stem}.{Path(marginal.output).name}")))


def nesting_of(file: SpecFile) -> dict[str, str]:
    """The parent of each nested axis that a spec knows, for options that give categories within a parent."""
    nesting: dict[str, str] = {}
    for part in (file, *file.table):
        nesting |= part.axes.within or {}
    return nesting


def job_of(options: Spec) -> Job:
    """A release that options alone declare."""
    return Job(options, None, options)
