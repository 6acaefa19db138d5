"""What a release says of itself: a strict, versioned record that anybody can read and check.

It holds no confidential number. Kept totals stand in it with their values, because they are published as they are; the
hash is that of the *released* table, never of the confidential one, which could be found by trying small tables.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from keepsum._text import type_of
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan

# In Python $ also stands before a line feed at the end; not so in JSON Schema.
END = r"(?!\n)$"
Hash: TypeAlias = Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{END}")]
Rational: TypeAlias = Annotated[
    str, Meta(pattern=f"^(0|[1-9][0-9]*)(/[1-9][0-9]*)?{END}", description="An exact quotient.")
]


R = TypeVar("R")


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a certificate: every field is known, none is missing."""


class AxisRecord(Record, frozen=True):
    """An axis and its categories; ``parents`` are places in the parent's list."""

    name: str
    labels: list[str | int]
    parent: str | None
    parents: list[int] | None


class DomainRecord(Record, frozen=True):
    """The cells: the product of the families of axes, in row-major order, less structural zeros by place."""

    axes: list[AxisRecord]
    structural_zeros: list[int]
    taken_from_data: Annotated[list[str], Meta(description="Axes whose list of categories is itself published.")]
    keeps_file_order: Annotated[
        bool,
        Meta(
            description="Whether the curator declared the order of the confidential file's rows public. If not, "
            "categories that were not declared stand in the natural order of their labels."
        ),
    ]


class MarginRecord(Record, frozen=True, tag="margin", tag_field="kind"):
    """The totals over all combinations of these axes; over none, the grand total."""

    axes: list[str]


class RowsRecord(Record, frozen=True, tag="rows", tag_field="kind"):
    """Totals of subsets or weighted totals: part number ``part`` of the file of invariants with this hash."""

    part: int
    sha256: Hash


class TotalRecord(Record, frozen=True):
    """A kept total: published exactly, so not protected."""

    name: str
    value: int


class KeptRecord(Record, frozen=True):
    """What is kept: in machine form, in words, and each total with its value."""

    words: str
    parts: list[MarginRecord | RowsRecord]
    totals: list[TotalRecord]


class MechanismRecord(Record, frozen=True):
    """The noise, with exact parameters per unit of distance."""

    name: Literal["laplace", "gaussian"]
    norm: Literal["l1", "l2"]
    epsilon: Rational | None
    delta: Rational | None
    rho: Rational | None
    sigma: Annotated[Rational | None, Meta(description="The width of Gaussian noise as it was drawn.")]
    calibration: Annotated[str | None, Meta(description="How sigma follows from epsilon and delta.")]
    law: Annotated[str, Meta(description="The weight of a noise vector z, in symbols.")]
    words: str


class AttributeRecord(Record, frozen=True):
    """What a change of one attribute costs: the l1 distance, or the square of the l2 distance."""

    axis: str
    any_value: Annotated[int | None, Meta(description="To any other value; null if no change is protected.")]
    other_value: Annotated[int | None, Meta(description="To some other value, the nearest.")]
    distances_are: Literal["exact", "upper bounds"]
    fixed_values: Annotated[int, Meta(description="Values whose cells the kept totals fix: not protected.")]
    unprotected_cells: Annotated[int, Meta(description="Cells that cannot change to every value that is not fixed.")]
    stuck_cells: Annotated[int, Meta(description="Cells that cannot change to any other value.")]
    unknown_cells: Annotated[int, Meta(description="Cells with a value of which nothing is known.")]
    reading: str


class PromiseRecord(Record, frozen=True):
    """For which changes of one person a loss was asked for; null stands for every attribute."""

    attributes: list[str] | None
    to: Literal["any value", "some other value"]
    reading: str


class PersonRecord(Record, frozen=True):
    """What the guarantee means for one person: a change of any attribute to any value."""

    distance: Annotated[int, Meta(description="The l1 distance, or the square of the l2 distance.")]
    distance_is: Literal["exact", "an upper bound"]
    reading: str
    attributes: list[AttributeRecord]
    promise: PromiseRecord | None


class DeltaRecord(Record, frozen=True):
    """A part of delta, and where it comes from."""

    source: str
    value: Rational


class ConvergenceRecord(Record, frozen=True):
    """What pairs of coupled chains showed of chains that were run for ``steps`` steps, block by block."""

    steps: int
    lag: Annotated[int, Meta(description="How many steps the one chain of a pair leads.")]
    most: Annotated[int, Meta(description="The step at which a pair is given up.")]
    pairs: int
    unmet: Annotated[int, Meta(description="Pairs that were given up.")]
    meetings: Annotated[list[tuple[int, int]], Meta(description="Steps from the lag to the meeting, and pairs.")]
    confidence: float
    foretold: Annotated[float, Meta(description="The distance that the weights of many proposals give.")]
    rounding: Annotated[float, Meta(description="The distance that floating-point numbers add to a draw of one block.")]
    upper: Annotated[
        float,
        Meta(
            description="The confidence limit of the total variation distance of one block. It assumes that pairs "
            "which have not met do not become slower to meet, is not below what is foretold, and includes rounding."
        ),
    ]
    extrapolated: Annotated[
        float, Meta(description="The distance if the tail stays geometric, with rounding: an extrapolation.")
    ]


class BlockRecord(Record, frozen=True):
    """How some blocks of one form were drawn."""

    form: str
    blocks: int
    cells: int
    sampler: str
    guarantee: Literal["exact", "rounded", "estimated"]
    total_variation: Annotated[float, Meta(description="How far a draw of all of them may be from its law.")]
    convergence: ConvergenceRecord | None


class GuaranteeRecord(Record, frozen=True):
    """What is promised, never more than the weakest block allows."""

    words: str
    between: str
    person: PersonRecord
    delta: list[DeltaRecord]
    sampling: Literal["exact", "rounded", "estimated"]
    blocks: list[BlockRecord]


class ExposureRecord(Record, frozen=True):
    """Cells that the kept totals give away in whole or in part."""

    pinned: Annotated[list[str], Meta(description="Published without noise, accepted by name.")]
    bounded: Annotated[int, Meta(description="Cells with a range below their own margin of error.")]
    not_checked: Annotated[int, Meta(description="Cells in blocks too large to check.")]


class AccuracyRecord(Record, frozen=True):
    """The margin of error of a cell in the middle."""

    level: float
    typical_margin: int
    simulated_draws: int


class TableRecord(Record, frozen=True):
    """The released table."""

    cells: int
    count: str
    sha256: Annotated[
        Hash,
        Meta(
            description="SHA-256 of the released table as plain CSV: UTF-8, axes in order, then the count; every cell "
            "in order; commas, line feeds, quotes only where needed."
        ),
    ]


class SignatureRecord(Record, frozen=True):
    """An Ed25519 signature of the certificate with ``signature`` null, as compact JSON in this field order."""

    algorithm: Literal["Ed25519"]
    public_key: Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{END}")]
    value: Annotated[str, Meta(pattern=f"^[0-9a-f]{{128}}{END}")]


class RowsPart(Record, frozen=True):
    """Some totals, each over some cells, with weights unless all are 1."""

    names: list[str]
    words: tuple[str, str]
    cells: list[list[int]]
    weights: list[list[int]] | None


class InvariantsFile(Record, frozen=True):
    """The file beside a certificate for totals that are not margins; cells are numbered in the domain's order."""

    schema: Literal["keepsum.invariants/1"]
    size: int
    parts: list[RowsPart]


class Certificate(Record, frozen=True):
    """Everything that may be known of a release.

    Made by a release; read with :meth:`from_json`. The same totals, noise and guarantee can be worked out again from
    it with :meth:`plan`, without the data.
    """

    schema: Literal["keepsum.certificate/1"]
    released: Annotated[str, Meta(pattern=f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}Z{END}")]
    table: TableRecord
    domain: DomainRecord
    kept: KeptRecord
    mechanism: MechanismRecord
    guarantee: GuaranteeRecord
    exposure: ExposureRecord
    accuracy: AccuracyRecord
    randomness: Literal["operating system", "seeded, not for publication"]
    postprocessing: list[str]
    ledger: str | None
    warnings: list[str]
    software: dict[str, str]
    signature: SignatureRecord | None

    @classmethod
    def from_json(cls, data: bytes) -> Certificate:
        """Read a certificate strictly: what it says can be written in one form only, white space apart."""
        if not isinstance(data, bytes):
            raise InputError(f"A certificate must be read from bytes, got {type_of(data)}.")
        record, problem = None, ""
        try:
            record = read_strictly(data, cls)
            datetime.strptime(record.released, "%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            problem = str(error)
        if record is None or problem:
            raise InputError(f"The certificate must follow the schema keepsum.certificate/1, but: {problem}.")
        return record

    def to_json(self) -> bytes:
        """The certificate as a file for people and machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def signed_bytes(self) -> bytes:
        """What a signature is over."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=None))

    def plan(self, invariants: bytes | None = None) -> CompiledPlan:
        """The plan of the release, from the certificate alone and the file of invariants where there is one."""
        from keepsum.releasing.codec import plan_of

        return plan_of(self, invariants)

    def _repr_html_(self) -> str:
        rows = [
            ("Released", self.released),
            ("Kept exactly", self.kept.words),
            ("Noise", self.mechanism.words),
            ("Guarantee", self.guarantee.words),
            ("One person", self.guarantee.person.reading),
            ("Randomness", self.randomness),
            ("SHA-256", self.table.sha256),
            ("Signed", "no" if self.signature is None else f"by {self.signature.public_key}"),
            *(("Warning", words) for words in self.warnings),
        ]
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(title)}</th>'
            f'<td style="text-align:left">{html.escape(words)}</td></tr>'
            for title, words in rows
        )
        return f"<table>{cells}</table>"


def read_strictly(data: bytes, kind: type[R]) -> R:
    """A record from JSON that is, white space apart, what is written for it.

    So no key stands twice or in another place, no number and no text has a second spelling, and nothing stands before
    or behind. White space is free, because it says nothing: the file may have been laid out anew.
    """
    record = msgspec.json.decode(data, type=kind)
    if msgspec.json.format(data, indent=-1) != msgspec.json.encode(record):
        raise ValueError("it is not written as Keepsum writes it, so another program may have changed it")
    if any(number == 0 and math.copysign(1, number) < 0 for number in _floats(record)):
        raise ValueError("a number in it is minus zero")
    return record


def _floats(value: Any) -> Iterator[float]:
    """The floating-point numbers of a record; lists of other things are not gone through."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _floats(getattr(value, name))
    elif isinstance(value, list) and value and isinstance(value[0], BlockRecord):
        for block in value:
            yield from _floats(block)


def json_schema() -> bytes:
    """The JSON Schema of certificates, as kept beside this module."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Certificate)), indent=2) + b"\n"
