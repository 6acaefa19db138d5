"""Every sentence about a release, made from its facts, in one place.

``explain`` uses the same sentences for a plan. ``person_statements.py`` has those about one person; ``Guarantee``
states the loss at a distance, and ``planning/describe.py`` describes blocks and their samplers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from keepsum.accuracy.words import Basis, words_of_basis
from keepsum.errors import InputError
from keepsum.planning.describe import METHODS, describe_alternatives, describe_form, describe_sampler
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee, SamplingError
from keepsum.privacy.loss import LARGE_DELTA, LARGE_EPSILON
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import shown
from keepsum.releasing.codec import records_of, stated_mechanism
from keepsum.releasing.counted import records_concern
from keepsum.releasing.facts import (
    AccuracyRecord,
    CarriedRecord,
    DomainRecord,
    ExposureRecord,
    KeptRecord,
    LedgerRecord,
    MarginRecord,
    NonNegativeRecord,
    RecordsRecord,
    ReleaseFacts,
    SubsetsRecord,
)
from keepsum.releasing.guarantee_facts import (
    BlockRecord,
    DistanceRecord,
    GuaranteeRecord,
    MechanismRecord,
)
from keepsum.releasing.records import form_of
from keepsum.tables.axes import quoted
from keepsum.tables.invariants import describe_margin, describe_rows
from keepsum.tables.records import Records, subject_of

SHOWN_FORMS = 8
NOT_PROTECTED = [  # several totals, or one
    "published exactly; whatever follows from them is not protected",
    "published exactly; whatever follows from it is not protected",
]
LIMITS = {
    "epsilon": f"{LARGE_EPSILON}",
    "delta": f"delta {shown(LARGE_DELTA)}",
    "rho": f"epsilon {LARGE_EPSILON} at delta 1e-6",
}
NEIGHBOURS = "between any two tables with the same kept totals"
RANDOMNESS = {"system": "from the operating system", "seed": "from a seed: not for publication"}


# -- what is kept, and the noise --------------------------------------------------------------------


def kept_totals(kept: KeptRecord, domain: DomainRecord) -> str:
    """What is kept: '4 totals of county, 4 totals of education'."""
    return ", ".join(part_words(kept, domain)) or "nothing"


def part_words(kept: KeptRecord, domain: DomainRecord) -> list[str]:
    """Each part of what is kept: '4 totals of county'."""
    parents = {axis.name: axis.parent for axis in domain.axes}
    parts = []
    for part in kept.parts:
        if isinstance(part, MarginRecord):
            parts.append(describe_margin(len(part.totals), part.axes, [parents.get(axis) for axis in part.axes]))
        else:
            names = [total.name for total in part.totals]
            parts.append(describe_rows(names, "subsets" if isinstance(part, SubsetsRecord) else "weighted"))
    return parts


def noise(mechanism: Mechanism) -> str:
    """The target of the noise."""
    return f"integers z with probability proportional to {mechanism.law()}, over all z that keep every total unchanged"


# -- the guarantee ----------------------------------------------------------------------------------


def guarantee_of(
    mechanism: MechanismRecord, record: GuaranteeRecord, records: RecordsRecord | None = None
) -> Guarantee:
    """The guarantee from its record, of a table counted from such records."""
    sampling = record.sampling
    error = None
    if sampling.exactness != "exact":
        pairs = [block.convergence.pairs for block in record.blocks if block.convergence is not None]
        error = SamplingError(
            sampling.total_variation, sampling.extrapolated, sampling.confidence, min(pairs, default=None)
        )
    drawn = stated_mechanism(mechanism)
    stated = record.person.stated
    person = None if stated is None else distance_of(drawn, stated)
    return Guarantee(drawn, person, sampling.exactness, error, subject_of(records_of(records)))


def guarantee_lines(guarantee: Guarantee) -> list[str]:
    """The guarantee per unit of distance, and the exactness of sampling."""
    return [f"{guarantee.words}, {NEIGHBOURS}", guarantee.sampling_words]


def distance_of(mechanism: Mechanism, record: DistanceRecord) -> Distance:
    """The distance that a record states, in the norm of the noise."""
    if record.focused and len(record.focused) != len(mechanism.focus):
        raise InputError("Distances of the certificate must say what they change in the totals of each focus.")
    return Distance(mechanism.norm, record.length, record.exact, tuple(record.focused), record.rule)


def per_unit(records: Records | None) -> str:
    """Whom a loss concerns: 'per-person', or 'per-record' where a person may have any number of records."""
    return f"per-{subject_of(records)}"


# -- blocks -----------------------------------------------------------------------------------------


def block_lines(blocks: Sequence[BlockRecord]) -> list[str]:
    """The forms of blocks and how they were drawn, those with most cells first."""
    ordered = sorted(blocks, key=lambda block: -block.cells)
    lines = [f"{_blocks(block)}: {_sampler(block)}" for block in ordered[:SHOWN_FORMS]]
    return lines + ([f"and {len(blocks) - SHOWN_FORMS:,} more forms of blocks"] if len(blocks) > SHOWN_FORMS else [])


def _blocks(block: BlockRecord) -> str:
    form = describe_form(form_of(block.form))
    return form if block.blocks == 1 or block.form.kind == "free" else f"{block.blocks:,} blocks, each {form}"


def _sampler(block: BlockRecord) -> str:
    sampler = block.sampler
    for method in METHODS:
        if method == sampler.method:
            return describe_sampler(
                method,
                acceptance=sampler.acceptance,
                steps=sampler.steps,
                proposals_per_step=sampler.proposals_per_step,
                moves=sampler.moves,
            )
    return f"{block.exactness}, by {sampler.method.replace('_', ' ')}"  # a method of a later version


# -- warnings ---------------------------------------------------------------------------------------


def warnings_of(facts: ReleaseFacts) -> list[str]:
    """What every reader of a release must know."""
    guarantee = guarantee_of(facts.mechanism, facts.guarantee, facts.records)
    seeded, records = facts.randomness == "seed", records_of(facts.records)
    return [
        *(nonnegative(record, facts.table.cells) for record in facts.postprocessing if record.cells_changed),
        *concerns(guarantee, facts.guarantee, facts.domain, facts.exposure, seeded, records, facts.carried),
    ]


def nonnegative(record: NonNegativeRecord, cells: int) -> str:
    """What was done about negative counts, and what that does to the others."""
    what = f"the nearest table in {record.norm} without negative counts that keeps every total"
    if not record.unique:
        what = f"one of the nearest tables in {record.norm} without negative counts that keep every total"
    if not record.cells_changed:
        return f"The published table is {what}: no count was negative, so it is the unbiased table itself."
    changed = f"{record.cells_changed:,} of {counted(cells, 'cell')} changed, by at most {int(record.largest_change):,}"
    return (
        f"The published table is {what}: {changed}. Counts at or near 0 are now biased upwards and the others "
        f"downwards; the noise, margins of error and intervals are those of the unbiased table beside it."
    )


def concerns(
    guarantee: Guarantee,
    record: GuaranteeRecord,
    domain: DomainRecord,
    exposure: ExposureRecord,
    seeded: bool,
    records: Records | None = None,
    carried: Sequence[CarriedRecord] = (),
) -> Iterator[str]:
    """What the curator must know before anything is drawn, and every reader afterwards."""
    yield from loss_concern(guarantee, records)
    yield from records_concern(records)
    if seeded:
        yield "The noise comes from a seed: whoever knows the seed can remove it. Not for publication."
    if guarantee.sampling == "estimated":
        loss = replace(guarantee, subject=subject_of(records)).person_words
        instead = describe_alternatives(guarantee.mechanism.kind)
        yield (f"Some noise is drawn by chains, so the guarantee is estimated, not proved: {loss}. {instead}").strip()
    unmet = sum(block.convergence.unmet for block in record.blocks if block.convergence is not None)
    if unmet:
        yield f"{unmet:,} pairs of chains were given up before they met: no guarantee for their blocks."
    if domain.taken_from_data:
        axes = quoted(domain.taken_from_data)
        yield (
            f"The categories of {axes} were taken from the data: the list itself is published, and if the data has no "
            f"rows for counts of 0, it shows which counts are not 0."
        )
    for column in carried:
        yield f"Column {column.name!r} follows from {column.axis!r} and is published as it is, without noise."
    if domain.keeps_file_order:
        yield "Rows are in the order of the file, declared public; whatever follows from that order is not protected."
    if exposure.pinned:
        count = len(exposure.pinned)
        yield f"{count:,} pinned cell{' is' if count == 1 else 's are'} published without noise, as accepted."
    if exposure.not_checked:
        cells = counted(exposure.not_checked, "cell")
        yield f"Not checked for {cells}: whether kept totals bound them more tightly than the margin of error."


def accuracy_source(stated: AccuracyRecord) -> str:
    """How margins of error are known, in words; empty if they were computed."""
    basis: Basis = "estimated" if stated.simulated_draws else "conservative" if stated.conservative else "exact"
    return words_of_basis(basis, stated.simulated_draws, stated.simulated_error)


def ledger_words(ledger: LedgerRecord | None) -> str:
    """Whether the loss of a release is added to those of others."""
    if ledger is None:
        return "The loss is not tracked in a ledger. Losses of releases of the same data add up."
    return (
        f"Charged to dataset {ledger.dataset!r}, entry {ledger.entry:,} of its ledger, before the noise was drawn; the "
        f"hash of that entry begins {ledger.head[:12]}."
    )


def loss_concern(guarantee: Guarantee, records: Records | None = None) -> list[str]:
    """A sentence, if the per-person loss is so large that it protects little."""
    loss = guarantee.stated_loss
    if loss.excess is None:
        return []
    what = "loss per unit of distance" if guarantee.person is None else f"{per_unit(records)} loss"
    return [f"The {what} is {loss}, above {LIMITS[loss.excess]}: this gives little protection."]


def counted(number: int, thing: str) -> str:
    """'1 cell', '1,200 cells'."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
