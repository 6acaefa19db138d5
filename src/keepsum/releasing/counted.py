"""What statements about a table of counted records must add: whom they are about, and what the counts leave out."""

from __future__ import annotations

from keepsum.tables.records import Records, subject_of

UNIT = "Unit"


def is_bounded(records: Records | None) -> bool:
    """Whether only so many records of each person were counted, so that some may have been left out."""
    return records is not None and records.max_rows is not None and not records.one_each


def unit_topic(records: Records | None) -> list[tuple[str, list[str]]]:
    """A section that comes first where whatever is stated is about one record and not about one person."""
    if subject_of(records) != "record":
        return []
    sentence = "one record, not one person: epsilon is the loss of one record, and losses of a person's records add up"
    return [(UNIT, [sentence])]


def totals_of(records: Records | None) -> str:
    """What kept totals are totals of, as a phrase to follow their number; empty if that is plain."""
    return " of the counted records" if is_bounded(records) else ""


def margin_lines(records: Records | None) -> list[str]:
    """What a margin of error does not include: how many records were left out is confidential."""
    if not is_bounded(records):
        return []
    return [
        "This is the margin of the noise alone: records left out by the bound per person are not in it, and their "
        "number is confidential."
    ]


def records_concern(records: Records | None) -> list[str]:
    """A sentence on whom the guarantee protects, if the table was counted from records."""
    if records is None:
        return []
    if records.max_rows is None:
        return [
            "The guarantee is per record: one person may own several records, and is then protected less. Losses of a "
            "person's records add up."
        ]
    if records.one_each:
        return [
            "Every record was declared to be of another person, and nobody checked that: whoever has several is "
            "protected less, because the losses of a person's records add up."
        ]
    named = "" if records.unit is None else f" (column {records.unit!r})"
    return [
        f"At most {records.max_rows:,} record{'s' * (records.max_rows != 1)} of each person{named} "
        f"{'was' if records.max_rows == 1 else 'were'} counted, the first in the order of their labels, so totals of "
        f"late labels lose most; kept totals are those of the counted records, not of all. The loss is for a change of "
        f"one attribute of each counted record; a change that lets other records be counted can change every "
        f"attribute, and kept totals too."
    ]
