"""A release as the user declared it, in a spec, in options, or in both; what is wrong is told with its place."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from keepsum.errors import InputError, KeepsumError
from keepsum.facade.charging import ledger_of, ledger_path
from keepsum.privacy.mechanism import Request
from keepsum.sources.records.databases import is_address, scheme_of, sqlite_path
from keepsum.specs.building import kept_of, noise_of, table_of
from keepsum.specs.lines import Key
from keepsum.specs.merging import for_columns, merged, number_in_another_unit, overridden
from keepsum.specs.places import keys_about, said
from keepsum.specs.reading import Lines
from keepsum.specs.spec import SECTIONS, Charged, Marginal, Spec, SpecFile
from keepsum.specs.terms import in_spec_terms
from keepsum.tables.invariants import Invariants
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger

TABLE = ("source", "axes", "records")


@dataclass(frozen=True)
class Job:
    """One release to make.

    Attributes
    ----------
    spec
        What it is, from all sources.
    name
        Its name, if it is one of several.
    options
        What options said, which a spec is not to blame for.
    lines, place
        The lines of the spec, and the number of the ``[[table]]`` in it; None without.
    """

    spec: Spec
    name: str | None = None
    options: Spec = field(default_factory=Spec)
    lines: Lines | None = None
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
            place = where(str(error))
            problem = type(error)(f"{place}{in_spec_terms(str(error))}" if place else str(error))
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
    file: SpecFile, lines: Lines, options: Spec, only: str | None = None, found: bool = False
) -> tuple[list[Job], list[Marginal]]:
    """The releases of a spec with options over it, and the sums over them.

    Options apply to a single release: of several, ``only`` chooses one. Their losses are declared, or to be ``found``.
    """
    common = Spec(**{section: getattr(file, section) for section in SECTIONS})
    if not file.table:
        if only is not None:
            raise InputError(f"Option --only requires a spec with several tables, and {lines.name!r} has one.")
        return [Job(overridden(common, options, found), None, options, lines)], [
            _moved(marginal, options.output.path) for marginal in file.marginal
        ]
    names = [table.name for table in file.table]
    if only is not None and only not in names:
        raise InputError(f"Option --only must be a table of {lines.name!r} ({', '.join(names)}), got {only!r}.")
    if only is None and msgspec.structs.replace(options, ledger=Charged()) != Spec():
        raise InputError(
            f"Options that say what to release must be used with --only NAME, because {lines.name!r} has several "
            f"tables ({', '.join(names)})."
        )
    jobs = []
    for place, table in enumerate(file.table):
        if only in (None, table.name):
            _check_unit(common, table, lines, place)
            by = table.records.by or common.records.by
            spec = overridden(merged(for_columns(common, by) if by else common, table), options, found)
            jobs.append(Job(spec, table.name, options, lines, place))
    marginals = [marginal for marginal in file.marginal if only in (None, marginal.of)]
    return jobs, [_moved(marginal, options.output.path) for marginal in marginals]


def _check_unit(common: Spec, table: Spec, lines: Lines, place: int) -> None:
    """Refuse a table whose own per_unit reads a number of the whole spec in another unit."""
    name = number_in_another_unit(common.mechanism, table.mechanism)
    if name is not None:
        raise InputError(
            f"{lines.at(('table', place, 'mechanism', 'per_unit'))}: per_unit of [[table]] {place + 1} must be given "
            f"with its own {name}, as that of the whole spec is in another unit. Write mechanism.{name} in the table."
        )


def _moved(marginal: Marginal, output: str | None) -> Marginal:
    """Sums over a release whose place an option names: beside it and named after it, so that others stay as they are.

    Sums 'states.csv' over a release in 'december/' or 'december.csv' go to 'december.states.csv'.
    """
    if output is None or not Path(output).name:
        return marginal
    place = Path(output)
    stem = place.name if output.endswith(("/", os.sep)) else place.stem
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
