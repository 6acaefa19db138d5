"""``ks.Plan``, ``ks.Release`` and ``ks.Certificate`` as users hold them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Self

from keepsum._arguments import check_flag, check_number, check_path, check_whole
from keepsum._arrays import IntArray
from keepsum._copying import WithoutCaches
from keepsum._holding import Holding
from keepsum._progress import is_watched, watched_by
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum._threads import threads_of
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.sizes import tail_bound
from keepsum.convergence.observe import Convergence
from keepsum.errors import InputError
from keepsum.facade.estimates import Estimates, plan_accuracy
from keepsum.lattice.structure import Structure
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.geometry import Geometry
from keepsum.planning.plan import CompiledPlan
from keepsum.planning.selection.choice import Choice, seconds_per_draw
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import Number
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import LEVEL, plan_of
from keepsum.releasing.explain import explain, explain_html
from keepsum.releasing.facts import (
    AccuracyRecord,
    CarriedRecord,
    DomainRecord,
    ExposureRecord,
    GuaranteeRecord,
    KeptRecord,
    LedgerRecord,
    MechanismRecord,
    NonNegativeRecord,
    RecordsRecord,
    SignatureRecord,
    TableRecord,
)
from keepsum.releasing.release import Drawn, prepare
from keepsum.releasing.wording import guarantee_of
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.sources.writing import own_kind
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from keepsum.ledger.ledger import Ledger
    from keepsum.releasing.release import Prepared


# A bar on the terminal while ``plan.sample`` draws, if that takes longer than a few seconds and rich is installed.

PATIENCE = 2.0  # seconds before anything is shown
WORTH_WATCHING = 0.5  # estimated seconds from which a draw may take longer than that


@contextmanager
def drawing_shown(seconds: float | None) -> Iterator[None]:
    """Show how much is drawn, if it takes long: ``seconds`` is an estimate. Nothing where output is piped."""
    if seconds is None or seconds < WORTH_WATCHING or is_watched() or not _is_terminal(sys.stderr):
        yield
        return
    bar = Bar(sys.stderr)
    timer = Timer(PATIENCE, bar.show)
    timer.daemon = True
    timer.start()
    try:
        with watched_by(bar):
            yield
    finally:
        timer.cancel()
        bar.close()


def _is_terminal(stream: Any) -> bool:
    """Whether a stream, if it is one and open, is a terminal."""
    with suppress(AttributeError, ValueError):
        return bool(stream.isatty())
    return False


class Bar:
    """How much of the noise is drawn; nothing without rich."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._lock = stream, Lock()
        self._fraction, self._closed = 0.0, False
        self._progress: Any = None

    def show(self) -> None:
        """Begin to show it."""
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        except ImportError:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with self._lock, suppress(OSError, ValueError):  # a terminal that was closed meanwhile
            if not self._closed:
                self._progress = Progress(*columns, console=Console(file=self._stream), transient=True)
                self._progress.add_task("keepsum: drawing the noise", total=1.0, completed=self._fraction)
                self._progress.start()

    def doing(self, stage: str) -> None:
        """Stages of a draw are not told apart."""

    def done(self, fraction: float) -> None:
        """Show that so much is drawn."""
        self._fraction = fraction
        with self._lock:
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], completed=fraction)

    def check(self) -> None:
        """Nobody stops a draw but by a signal."""

    def close(self) -> None:
        """Take it off the screen, for good."""
        with self._lock, suppress(OSError, ValueError):
            self._closed = True
            if self._progress is not None:
                self._progress.stop()


# Which ledger a release is charged to.

VARIABLE = "KEEPSUM_LEDGER"  # names a ledger for all releases


def ledger_path(path: str | None) -> str | None:
    """The file of the ledger that is named, or that the environment names."""
    return path if path is not None else os.environ.get(VARIABLE) or None


def ledger_of(ledger: Ledger | str | PathLike[str] | None, dataset: str | None) -> Ledger | None:
    """The ledger that is given, or that the environment names; None if there is none.

    Raises
    ------
    InputError
        If there is none although a dataset is named, or the dataset is not in it.
    """
    named = ledger if ledger is not None else ledger_path(None)
    if named is None:
        if dataset is not None:
            raise InputError(f"A dataset must be named with its ledger: {arg.ledger}, or the variable KEEPSUM_LEDGER.")
        return None
    from keepsum.ledger.ledger import Ledger  # SQLite, which other releases do not need

    found = named if isinstance(named, Ledger) else Ledger.open(named)
    found.dataset(dataset)
    return found


def draw_charged(
    ready: Prepared,
    ledger: Ledger | None,
    dataset: str | None = None,
    rng: Rng | None = None,
    threads: int = 1,
    charged: Callable[[], None] = lambda: None,
    keep: Callable[[Drawn], None] = lambda drawn: None,
) -> Drawn:
    """Charge a release to its ledger, if it has one, and only then draw it; in memory, it exists once it is drawn.

    ``charged`` is called once it is charged, and ``keep`` with what was drawn, before anything else can fail.
    """
    if ledger is None:
        drawn = ready.draw(rng, threads)
        keep(drawn)
        return drawn
    with ledger.charged(ready.plan, dataset, rng is not None and rng.seeded) as receipt:
        charged()
        drawn = ready.draw(rng, threads, receipt.record)
        keep(drawn)
        receipt.released(drawn.certificate.table.sha256)
    return drawn


UNSAVED = "This release is not saved but still in memory: save it under another name."


class Plan(WithoutCaches, Holding[CompiledPlan]):
    """A compiled release: immutable, free of data, safe to share between threads.

    Made by :func:`plan`.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "education": ["low", "high"]})
    >>> plan = ks.plan(domain, keep=[["county"], ["education"]], mechanism=ks.Laplace(epsilon=1))
    >>> plan
    Plan(6 cells, 4 independent totals kept, per-person epsilon 1, Laplace.per_unit(epsilon=0.25, norm='l1'))
    >>> plan.person_distance, plan.pinned.tolist()
    (4, [])
    >>> [(attribute.axis, str(attribute.any_value)) for attribute in plan.attributes]
    [('county', '4'), ('education', '4')]
    """

    def __init__(self, compiled: CompiledPlan) -> None:
        if not isinstance(compiled, CompiledPlan):
            raise InputError(f"A plan must be made by {the.call('ks.plan')}, got {type_of(compiled)}.")
        self._record = compiled

    @property
    def invariants(self) -> Invariants:
        """The kept totals, with the names of cells and totals."""
        return self._record.invariants

    @property
    def size(self) -> int:
        """The number of cells."""
        return self._record.size

    @property
    def mechanism(self) -> Mechanism:
        """The noise, with every parameter known."""
        return self._record.mechanism

    @property
    def structure(self) -> Structure:
        """Regions, forced sums and blocks of the kept totals."""
        return self._record.structure

    @property
    def samplers(self) -> tuple[Choice, ...]:
        """How each group of blocks is drawn."""
        return self._record.samplers

    @property
    def geometry(self) -> Geometry:
        """Dimension, volume and shortest vectors of the lattice."""
        return self._record.geometry

    @property
    def pinned(self) -> IntArray:
        """The cells that the kept totals determine, so that they get no noise."""
        return self._record.pinned

    @property
    def attributes(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute, to any value and to some other value; none for cells without names."""
        return self._record.attributes

    @property
    def person(self) -> Distance | None:
        """The distance of one person: any attribute changed to any value; None where it cannot be stated."""
        return self._record.person

    @property
    def person_distance(self) -> int | float | None:
        """The distance of one person, as a number."""
        return self._record.person_distance

    @property
    def smallest_change(self) -> Distance:
        """The smallest change through a cell that keeps every total, for the unpinned cell where it is largest.

        For a person of several records it is that many times as long.
        """
        return self._record.smallest_change

    @property
    def guarantee(self) -> Guarantee:
        """What a release guarantees; never more than its weakest block."""
        return self._record.guarantee

    @property
    def convergence(self) -> Convergence | None:
        """What coupled chains showed; None where no block is drawn by chains, or nothing was measured yet."""
        return self._record.convergence

    @property
    def sigma(self) -> Fraction | None:
        """The exact width of Gaussian noise; None for Laplace noise."""
        return self.mechanism.scale if self.mechanism.kind == "gaussian" else None

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise: variances, probabilities and intervals of cells, sums and other queries."""
        return Noise(self._record.blocks, self.invariants)

    def accuracy(self, level: float = 0.95, *, simultaneous: bool = False, patient: bool = False) -> Accuracy:
        """The margin of error of every cell of a release, and of focused totals, without spending any budget.

        Parameters
        ----------
        level
            The probability to stay within the margin, at least.
        simultaneous
            Margins that all cells stay within at once with this probability, not each of them.
        patient
            Where totals overlap margins are simulated if that takes little time, and are proved bounds otherwise:
            simulate them in any case.
        """
        return plan_accuracy(self._record, level, simultaneous, patient)

    def tail_bound(self, length: float) -> float:
        """The paper's bound on the probability that the noise is at least this long, in the l2 norm."""
        return tail_bound(self.mechanism, self.geometry, length)

    def explain(self, details: bool = False) -> str:
        """The plan in plain text: what is kept, the loss of one person, and the pinned cells.

        With ``details`` also the noise, its blocks, the loss per unit of distance, and other noise.
        """
        return explain(self._record, check_flag(details, f"{arg.details}"))

    def certify(
        self,
        pairs: int | None = None,
        confidence: float = 0.95,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Plan:
        """Measure how close the chains of this plan come to their target; returns the plan with the result.

        Two coupled chains, one a lag ahead of the other, see the same proposals until they meet; their meeting times
        bound the total variation between a chain and its target (Biswas, Jacob and Vanetti 2019). This needs no data
        and spends no budget. Meeting times are cached in the user's cache folder, so that an interrupted run resumes
        and later plans with the same blocks reuse them.

        Parameters
        ----------
        pairs
            How many pairs of chains per form of blocks; by default 4,000, fewer where that would take too long.
        confidence
            The confidence level of the limit.
        threads
            How many threads to use; by default one for each core.
        progress
            Called with the number of pairs done and the number wanted.

        Returns
        -------
        Plan
            The same plan; its ``convergence`` holds the observed limit and the extrapolation for each form of blocks.
            Where no block is drawn by chains, nothing is run.
        """
        return Plan(self._record.certify(pairs, confidence, threads, progress))

    def sample(self, size: int | None = None, rng: Rng | None = None, threads: int | None = None) -> IntArray:
        """Draw noise that keeps every total.

        Parameters
        ----------
        size
            How many draws; if omitted, one, as a flat vector.
        rng
            The source of randomness; by default the operating system's. The same seed gives the same noise for any
            number of threads.
        threads
            How many threads to use; by default one for each core.

        Returns
        -------
        numpy.ndarray
            int64, one row per draw, one column per cell.

        Notes
        -----
        :meth:`explain` says about how long a draw takes. On a terminal, with rich installed, progress is shown when
        the draws take longer than a few seconds.
        """
        draws = 1 if size is None else check_whole(size, "The number of draws", 0)
        workers = threads_of(threads)
        source = checked_rng(rng)
        with drawing_shown(self._seconds(draws)):
            noise = self._record.blocks.sample(draws, source, workers)
        return noise[0] if size is None else noise

    def _seconds(self, draws: int) -> float | None:
        """About how long so many draws take; None if a block has no sampler."""
        each = seconds_per_draw(self.samplers)
        return None if each is None else draws * each

    def __repr__(self) -> str:
        return repr(self._record)

    def release(
        self,
        table: Table,
        *,
        accept_pinned: str | Iterable[Any] = (),
        accept_delta: Number | None = None,
        rng: Rng | None = None,
        threads: int | None = None,
        ledger: Ledger | str | PathLike[str] | None = None,
        dataset: str | None = None,
    ) -> Release:
        """Release a table by this plan; see :func:`keepsum.release`."""
        workers = threads_of(threads)
        seeded = rng is not None and checked_rng(rng).seeded
        charged_to = ledger_of(ledger, dataset)
        ready = prepare(self._record, table, accept_pinned, seeded, accept_delta=accept_delta, threads=workers)
        return Release(draw_charged(ready, charged_to, dataset, rng, workers), Plan(ready.plan))

    def _repr_html_(self) -> str:
        return explain_html(self._record)


class Certificate(Holding[CertificateRecord]):
    """What is public about a release.

    Made by a release; read with :meth:`from_json`. It holds facts only; sentences are made from them when it is shown.
    :meth:`plan` recomputes the totals, noise and guarantee from it, without the data.
    """

    def __init__(self, record: CertificateRecord) -> None:
        if not isinstance(record, CertificateRecord):
            raise InputError(
                f"A certificate must be read with {the.call('ks.Certificate.from_json')}, got {type_of(record)}."
            )
        self._record = record

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a certificate strictly: no unknown field, no missing field, no duplicate key."""
        return cls(CertificateRecord.from_json(data))

    def to_json(self) -> bytes:
        """The certificate as a file for people and machines."""
        return self._record.to_json()

    @property
    def warnings(self) -> list[str]:
        """What every reader must know."""
        return self._record.warnings

    def plan(self, invariants: bytes | None = None) -> Plan:
        """The plan of the release, from the certificate alone and the file of invariants where there is one."""
        return Plan(plan_of(self._record, invariants))

    @property
    def schema(self) -> str:
        """The schema that it follows."""
        return self._record.schema

    @property
    def released(self) -> str:
        """When the release was made."""
        return self._record.released

    @property
    def software(self) -> dict[str, str]:
        """The versions that made it."""
        return self._record.software

    @property
    def table(self) -> TableRecord:
        """The released table: its cells, and its hash."""
        return self._record.table

    @property
    def domain(self) -> DomainRecord:
        """The cells."""
        return self._record.domain

    @property
    def carried(self) -> list[CarriedRecord]:
        """Columns that follow from an axis."""
        return self._record.carried

    @property
    def records(self) -> RecordsRecord | None:
        """The records that were counted; None for a table that was given as counts."""
        return self._record.records

    @property
    def kept(self) -> KeptRecord:
        """The kept totals, with their values."""
        return self._record.kept

    @property
    def mechanism(self) -> MechanismRecord:
        """The noise."""
        return self._record.mechanism

    @property
    def guarantee(self) -> GuaranteeRecord:
        """What the noise guarantees."""
        return self._record.guarantee

    @property
    def exposure(self) -> ExposureRecord:
        """Cells that the kept totals disclose, exactly or within bounds."""
        return self._record.exposure

    @property
    def accuracy(self) -> AccuracyRecord:
        """The median margin of error."""
        return self._record.accuracy

    @property
    def randomness(self) -> str:
        """Whether the noise is from the operating system (``"system"``) or from a seed."""
        return self._record.randomness

    @property
    def postprocessing(self) -> list[NonNegativeRecord]:
        """What was made of the released table before it was published."""
        return self._record.postprocessing

    @property
    def ledger(self) -> LedgerRecord | None:
        """Where the release is charged; None if it is not."""
        return self._record.ledger

    @property
    def signature(self) -> SignatureRecord | None:
        """The publisher's signature; None without one."""
        return self._record.signature

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self._record == other._record

    def __hash__(self) -> int:
        return hash(self.table.sha256)

    def __repr__(self) -> str:
        guarantee = guarantee_of(self.mechanism, self.guarantee, self.records)
        return f"Certificate({self.table.cells:,} cells, released {self.released}; {guarantee.person_words})"

    def _repr_html_(self) -> str:
        return self._record._repr_html_()


class Release(Estimates, Holding[Drawn]):
    """A released table and its certificate."""

    def __init__(self, drawn: Drawn, plan: Plan) -> None:
        if not isinstance(drawn, Drawn):
            raise InputError(
                f"A release must be made by {the.call('ks.release')} or read by {the.call('ks.read_release')}, got "
                f"{type_of(drawn)}."
            )
        self._record = replace(drawn, csv=None)  # the file of the table, which can be made again
        self._plan = plan
        self._saved: CertificateRecord | None = None  # as it was last saved, perhaps with a signature

    @property
    def table(self) -> ReleasedTable:
        """The published table: integers, with every kept total exactly as it was."""
        return self._record.table

    @cached_property
    def certificate(self) -> Certificate:
        """What is public about the release."""
        return Certificate(self._record.certificate)

    @property
    def plan(self) -> Plan:
        """The plan that it was made with."""
        return self._plan

    @property
    def invariants_file(self) -> bytes | None:
        """The file of kept totals that are not margins, if there are any."""
        return self._record.invariants

    @property
    def unbiased(self) -> ReleasedTable:
        """The table as it was drawn, which noise, margins of error and intervals are of; see ``postprocess``."""
        return self._record.table if self._record.unbiased is None else self._record.unbiased

    @property
    def _compiled(self) -> CompiledPlan:
        return self._plan._record

    def dp_event(self, distance: int | None = None) -> DpEvent:
        """The release as an event of ``dp_accounting``, for accountants that add it to others.

        Needs the extra ``accounting``. It stands for the worst pair of tables with the same kept totals that differ by
        one person, and the accountant's *one record replaced* means such a pair.

        Parameters
        ----------
        distance
            An l1 distance instead of one person's, which is that of the certificate: of one record where a person may
            have any number of them. 1 gives the loss per unit.

        Raises
        ------
        InputError
            If no distance is given and that of one person is not known.
        """
        from keepsum.accounting.events import event_of
        from keepsum.accounting.total import Cost

        guarantee = guarantee_of(self.certificate.mechanism, self.certificate.guarantee, self.certificate.records)
        cost, unit = Cost.of(guarantee), Distance("l1", 1)
        if distance is not None:
            return event_of(cost, Distance("l1", check_whole(distance, "The distance", 1)))
        person, loss = guarantee.person, guarantee.person_loss
        if person is None or loss is None:
            raise InputError(
                "The distance must be given for this release, as that of one person is not known. "
                f"{arg.distance:Pass}, which is 1 for the loss per unit."
            )
        if guarantee.mechanism.focus:  # a change of one person counts in totals by what it does to them
            return event_of(replace(cost, epsilon=loss.epsilon, rho=loss.rho, levels=()), unit)
        return event_of(cost, person)

    def save(
        self, path: str | PathLike[str], *, sign_with: str | PathLike[str] | None = None, force: bool = False
    ) -> Path:
        """Write the table and its certificate, completely or not at all.

        Parameters
        ----------
        path
            ``"released.csv"`` (or .parquet, .arrow) for a file with ``released.certificate.json`` beside it, ``"out/"``
            for a folder with ``table.csv`` and ``certificate.json``. An unbiased table that is another one goes beside
            it, to ``released.unbiased.csv`` or ``table.unbiased.csv``.
        sign_with
            The file of an Ed25519 private key.
        force
            Replace an existing release. Whatever happens meanwhile, the old one or the new one is there.

        Returns
        -------
        pathlib.Path
            The file of the table.

        Raises
        ------
        InputError
            If it cannot be written there, or another process is writing there. The release stays in memory and can be
            saved elsewhere.

        Notes
        -----
        Ctrl-C waits until everything is in place: if this call raises it, the release is there.
        """
        # Locks and signatures, which plans do not need.
        from keepsum.releasing.canonical import read_private_key, sign
        from keepsum.releasing.destination import Destination, put

        check_flag(force, f"{arg.force}")
        place = Destination.at(path, own_kind(self.table))
        key = None if sign_with is None else read_private_key(sign_with)
        certificate = self._record.certificate if key is None else sign(self._record.certificate, key)
        with place.claimed(force, UNSAVED) as orphan:
            put(replace(self._record, certificate=certificate), place, None, force, orphan)
        self._saved = certificate
        return place.table

    def report(self, path: str | PathLike[str], *, level: float = LEVEL, force: bool = False) -> Path:
        """Write the release as a page for its readers: one HTML file, which loads nothing from anywhere.

        It is made from what is published alone, and says who signed it if it was last saved with ``sign_with``. Needs
        the extra ``report``. :meth:`to_html` gives the page as text.

        Parameters
        ----------
        path
            A file such as ``"report.html"``.
        level
            The level of the margins of error.
        force
            Replace an existing file.

        Returns
        -------
        pathlib.Path
            The file.
        """
        from keepsum.report.writing import ReportFiles, write_report  # templates and plots, which releases do not need

        check_flag(force, f"{arg.force}")
        level = check_number(level, "Level", 0, 1)
        files = ReportFiles.of(Path("released.csv"), check_path(path, "The report"))
        files.check([], force, self.plan.size)
        return write_report(self._published, self._compiled, files, level, force)[0]

    def to_html(self, *, level: float = LEVEL) -> str:
        """The page of :meth:`report` as text."""
        from keepsum.report.writing import report_html

        return report_html(self._published, self._compiled, check_number(level, "Level", 0, 1))

    @property
    def _published(self) -> Drawn:
        """The release with its certificate as it was last saved."""
        return replace(self._record, certificate=self._saved or self._record.certificate)

    def __repr__(self) -> str:
        guarantee = guarantee_of(self.certificate.mechanism, self.certificate.guarantee, self.certificate.records)
        return f"Release({repr(self.table.domain)[7:-1]}; {guarantee.person_words})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.certificate._repr_html_()
