"""A nesting that is declared the wrong way round: states within counties.

It is noticed by labels alone, never by a count, and only on axes whose categories nobody declared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from keepsum.errors import DataError
from keepsum.tables.coded import Coded
from keepsum.tables.traps import determines


def refuse_reversed_nesting(columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse an axis nested in one that has more categories, each with a single category of the nested axis.

    Parameters
    ----------
    columns, within
        The axes, and the parent of each nested one.
    declared
        The axes whose categories are declared: these are meant as they are.
    """
    for child, parent in within.items():
        if {child, parent} & set(declared) or parent in within or not len(columns[child]):
            continue
        fewer = len(columns[child].values) < len(columns[parent].values)
        if fewer and determines(columns[parent].codes, columns[child].codes):
            nesting = {name: above for name, above in within.items() if name != child} | {parent: child}
            raise DataError(
                f"Each {parent!r} has one {child!r} in the data, as if {child!r} were its parent, but the nesting is "
                f"declared the other way round. Pass within={nesting!r}, or declare the categories of {child!r} with "
                f"domain= if it is meant."
            )
