"""What the records of a certificate are made of: their base, and types with the patterns of their texts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

# In Python, $ also matches before a final line feed; in JSON Schema it does not.
END = r"(?!\n)$"
Hash: TypeAlias = Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{END}")]
Parameter: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^((0|[1-9][0-9]*)(/[1-9][0-9]*)?|[a-z]+){END}",
        max_length=2100,
        description="An exact quotient, or a name in letters.",
    ),
]
RoundedUp: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^(0|[1-9][0-9]*)(\\.[0-9]+)?(e-?[1-9][0-9]{{0,2}})?{END}",
        description="A decimal number, rounded up where it is not exact.",
    ),
]
WholeNumber: TypeAlias = (
    int
    | Annotated[str, Meta(pattern=f"^-?[1-9][0-9]{{15,18}}{END}", description="An integer beyond 2^53 - 1, as text.")]
)
Label: TypeAlias = str | int
Exactness: TypeAlias = Literal["exact", "rounded", "estimated"]


class Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A part of a certificate: no unknown field, and no field without a default is missing."""
