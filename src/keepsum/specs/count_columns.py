"""Which column has the counts, as ``keepsum init`` and the page propose it: by names and by kinds of values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from keepsum._text import are_showable
from keepsum.sources.headers import Header
from keepsum.tables.source import DEFAULT_COUNT
from keepsum.tables.total_labels import is_total
from keepsum.tables.whole_numbers import are_whole, may_be_counts

# Names of columns of counts, the likeliest first.
NAMES = (
    "n, counts, freq, frequency, obs_value, population, pop, number, anzahl, häufigkeit, nombre, effectif, effectifs, "
    "antal, aantal, numero, número, liczba, cases, fälle, faelle, people, persons, personen, total, value"
)
FIRST_WORDS = "n, count, number, anzahl, nombre, antal, aantal, numero, número"  # Number of people
LAST_WORDS = "n, count, counts, freq, frequency"  # case_count
TOTAL_NUMBER = re.compile(r"(total|overall) (number|count|population)\b.*|(gesamt|total)(zahl|anzahl)")
# Words in the names of columns that hold whole numbers which count nothing.
NO_COUNTS = (
    "id, ids, identifier, uuid, key, index, code, codes, fips, geoid, zip, zipcode, postcode, plz, ssn, nr, year, "
    "years, month, day, date, week, quarter, time, jahr, monat, tag, datum, age, ages, alter, born, birth, dob, "
    "person, patient"
)


@dataclass(frozen=True)
class Likely:
    """What the columns of a file may be.

    Attributes
    ----------
    count
        The column to propose, if there is one.
    is_named
        Whether its name says so, and not only that no other column has whole numbers.
    wide, totals
        Several columns of whole numbers that may be the categories of one axis, and columns that by name are their
        totals.
    """

    count: str | None = None
    is_named: bool = False
    wide: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()


def likely_columns(header: Header, declared: Collection[str] = ()) -> Likely:
    """What the columns may be that nobody declared; by name alone if only the header of a large file was read."""
    names = [name for name in header.names if name not in declared and not _names_no_count(name)]
    whole = [name for name in header.columns_where(are_whole) if name in names]
    categories = tuple(name for name in whole if not is_total(name, ""))
    totals = tuple(name for name in whole if is_total(name, ""))
    possible = names if header.columns is None else header.columns_where(may_be_counts)
    named = _named([name for name in names if name in possible and not (len(categories) > 1 and name in totals)])
    if named is not None:
        return Likely(named if are_showable(header.names) else None, True)
    if len(categories) > 1:
        return Likely(wide=categories, totals=totals)
    return Likely(whole[0] if len(whole) == 1 and are_showable(header.names) else None)


def _named(names: Sequence[str]) -> str | None:
    """The column whose name says that it has the counts."""
    by_name = {name.casefold(): name for name in names}
    exact = next((by_name[name] for name in (DEFAULT_COUNT, *NAMES.split(", ")) if name in by_name), None)
    return exact or next((name for name in names if _names_count(name)), None)


def _names_count(name: str) -> bool:
    """Whether a name of several words says that a column has counts.

    >>> [_names_count(name) for name in ("Number of people", "case_count", "Total number", "phone number", "county")]
    [True, True, True, False, False]
    """
    words = _words(name)
    return bool(words) and (
        words[0] in FIRST_WORDS.split(", ")
        or words[-1] in LAST_WORDS.split(", ")
        or bool(TOTAL_NUMBER.fullmatch(" ".join(words)))
    )


def _names_no_count(name: str) -> bool:
    """Whether the name of a column says that its whole numbers count nothing.

    >>> [_names_no_count(name) for name in ("patient_id", "PersonID", "Date of birth", "Births", "Identity")]
    [True, True, True, False, False]
    """
    return not set(NO_COUNTS.split(", ")).isdisjoint(_words(name)) and not _names_count(name)


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())
