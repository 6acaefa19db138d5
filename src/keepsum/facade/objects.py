"""``ks.Plan``, ``ks.Release`` and ``ks.Certificate`` as users hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepsum._arguments import check_flag, check_number, check_path, check_whole
from keepsum._arrays import IntArray
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.tails import tail_bound
from keepsum.facade.charging import draw_charged, ledger_of
from keepsum.facade.estimates import Estimates, plan_accuracy
from keepsum.facade.progress import drawing_shown
from keepsum.planning.durations import seconds_per_draw
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.privacy.numbers import Number
from keepsum.releasing import certificate as releasing_certificate
from keepsum.releasing.codec import plan_of
from keepsum.releasing.explain import explain, explain_html
from keepsum.releasing.records import LEVEL
from keepsum.releasing.release import Drawn, prepare
from keepsum.releasing.statements import guarantee_of
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.sources.writing import own_kind
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from keepsum.ledger.ledger import Ledger

UNSAVED = "This release is not saved but still in memory: save it under another name."


@dataclass(frozen=True, eq=False, repr=False)
class Plan(CompiledPlan):
    """A compiled release: immutable, free of data, safe to share between threads.

    Made by :func:`plan`.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "education": ["low", "high"]})
    >>> plan = ks.plan(ks.Invariants.margins(domain, [["county"], ["education"]]), ks.Laplace(epsilon=0.25))
    >>> plan
    Plan(6 cells, 4 independent totals kept, Laplace(epsilon=0.25, norm='l1'))
    >>> plan.person_distance, plan.pinned.tolist()
    (4, [])
    >>> [(attribute.axis, str(attribute.any_value)) for attribute in plan.attributes]
    [('county', '4'), ('education', '4')]
    """

    @classmethod
    def of(cls, compiled: CompiledPlan) -> Plan:
        """A compiled plan as users hold it."""
        return cls(**{field.name: getattr(compiled, field.name) for field in fields(compiled)})

    @property
    def sigma(self) -> Fraction | None:
        """The exact width of Gaussian noise; None for Laplace noise."""
        return self.mechanism.scale if self.mechanism.kind == "gaussian" else None

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise: variances, probabilities and intervals of cells, sums and other queries."""
        return Noise(self.blocks, self.invariants)

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
        return plan_accuracy(self, level, simultaneous, patient)

    def tail_bound(self, length: float) -> float:
        """The paper's bound on the probability that the noise is at least this long, in the l2 norm."""
        return tail_bound(self.mechanism, self.geometry, length)

    def explain(self) -> str:
        """The plan in plain text: what is kept, the noise, the guarantee, the per-person loss and the pinned cells."""
        return explain(self)

    def sample(self, size: int | None = None, rng: Rng | None = None, threads: int = 1) -> IntArray:
        """Draw noise that keeps every total.

        Parameters
        ----------
        size
            How many draws; if omitted, one, as a flat vector.
        rng
            The source of randomness; by default the operating system's. The same seed gives the same noise for any
            number of threads.
        threads
            How many threads to use.

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
        threads = check_whole(threads, "The number of threads", 1)
        source = checked_rng(rng)
        with drawing_shown(self._seconds(draws)):
            noise = self.blocks.sample(draws, source, threads)
        return noise[0] if size is None else noise

    def _seconds(self, draws: int) -> float | None:
        """About how long so many draws take; None if a block has no sampler."""
        each = seconds_per_draw(self.samplers)
        return None if each is None else draws * each

    def release(
        self,
        table: Table,
        *,
        accept_pinned: str | Iterable[Any] = (),
        accept_delta: Number | None = None,
        rng: Rng | None = None,
        threads: int = 1,
        ledger: Ledger | str | PathLike[str] | None = None,
        dataset: str | None = None,
    ) -> Release:
        """Release a table by this plan; see :func:`keepsum.release`."""
        threads = check_whole(threads, "The number of threads", 1)
        seeded = rng is not None and checked_rng(rng).seeded
        charged_to = ledger_of(ledger, dataset)
        ready = prepare(self, table, accept_pinned, seeded, accept_delta=accept_delta)
        return Release.of(draw_charged(ready, charged_to, dataset, rng, threads), Plan.of(ready.plan))

    def _repr_html_(self) -> str:
        return explain_html(self)


class Certificate(releasing_certificate.Certificate, frozen=True):
    """What is public about a release.

    Made by a release; read with :meth:`from_json`. It holds facts only; sentences are made from them when it is shown.
    :meth:`plan` recomputes the totals, noise and guarantee from it, without the data.
    """

    @classmethod
    def of(cls, certificate: releasing_certificate.Certificate) -> Certificate:
        """A certificate as users hold it."""
        return cls(**{name: getattr(certificate, name) for name in certificate.__struct_fields__})

    def plan(self, invariants: bytes | None = None) -> Plan:
        """The plan of the release, from the certificate alone and the file of invariants where there is one."""
        return Plan.of(plan_of(self, invariants))


@dataclass(frozen=True, eq=False, repr=False)
class Release(Estimates):
    """A released table and its certificate.

    Attributes
    ----------
    table
        The published table: integers, with every kept total exactly as it was.
    certificate
        What is public about the release.
    plan
        The plan that it was made with.
    invariants
        The file of kept totals that are not margins, if there are any.
    unbiased
        The table as it was drawn, which the noise, margins of error and intervals are those of; ``table`` is another
        one after :func:`keepsum.postprocess.nonnegative`.
    """

    table: ReleasedTable
    certificate: Certificate
    plan: Plan
    invariants: bytes | None
    unbiased: ReleasedTable
    _saved: Certificate | None = field(default=None, init=False)  # as it was last saved, perhaps with a signature

    @classmethod
    def of(cls, drawn: Drawn, plan: Plan) -> Release:
        """A drawn release, as users hold it."""
        unbiased = drawn.table if drawn.unbiased is None else drawn.unbiased
        return cls(drawn.table, Certificate.of(drawn.certificate), plan, drawn.invariants, unbiased)

    def drawn(self) -> Drawn:
        """The release as the layers below hold it."""
        unbiased = None if self.unbiased is self.table else self.unbiased
        return Drawn(self.table, self.certificate, self.invariants, unbiased)

    def dp_event(self, distance: int = 1) -> DpEvent:
        """The release as an event of ``dp_accounting``, for accountants that add it to others.

        Needs the extra ``accounting``. It stands for the worst pair of tables with the same kept totals at
        this l1 distance, and the accountant's *one record replaced* means such a pair.

        Parameters
        ----------
        distance
            The l1 distance; 1 gives the loss per unit.
        """
        from keepsum.accounting.cost import Cost
        from keepsum.accounting.events import event_of

        length = check_whole(distance, "The distance", 1)
        guarantee = guarantee_of(self.certificate.mechanism, self.certificate.guarantee)
        return event_of(Cost.of(guarantee), Distance("l1", length))

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
        from keepsum.releasing.destination import Destination, put
        from keepsum.releasing.signing import read_private_key, sign

        check_flag(force, "force=")
        place = Destination.at(path, own_kind(self.table))
        key = None if sign_with is None else read_private_key(sign_with)
        certificate = self.certificate if key is None else sign(self.certificate, key)
        with place.claimed(force, UNSAVED) as orphan:
            put(replace(self.drawn(), certificate=certificate), place, None, force, orphan)
        object.__setattr__(self, "_saved", certificate)
        return place.table

    def report(
        self, path: str | PathLike[str] | None = None, *, level: float = LEVEL, force: bool = False
    ) -> str | Path:
        """The release as a page for its readers: one HTML file, which loads nothing from anywhere.

        It is made from what is published alone, and says who signed it if it was last saved with ``sign_with``. Needs
        the extra ``report``.

        Parameters
        ----------
        path
            A file such as ``"report.html"``; without it, the page is returned as text.
        level
            The level of the margins of error.
        force
            Replace an existing file.

        Returns
        -------
        str or pathlib.Path
            The page, or the file that it was written to.
        """
        # Templates and plots, which releases do not need.
        from keepsum._extras import check_installed
        from keepsum.report.writing import ReportFiles, report_html, write_report

        check_flag(force, "force=")
        level = check_number(level, "Level", 0, 1)
        check_installed("A report", "report")
        published = replace(self.drawn(), certificate=self._saved or self.certificate)
        if path is None:
            return report_html(published, self.plan, level)
        files = ReportFiles.of(Path("released.csv"), check_path(path, "The report"))
        files.check([], force, self.plan.size)
        return write_report(published, self.plan, files, level, force)[0]

    def __repr__(self) -> str:
        guarantee = guarantee_of(self.certificate.mechanism, self.certificate.guarantee)
        return f"Release({repr(self.table.domain)[7:-1]}; {guarantee.words})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.certificate._repr_html_()
