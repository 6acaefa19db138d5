"""The cells of a report as JSON in its page: numbers as bytes in base 64, and text that cannot end a script."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from keepsum._arrays import IntArray
from keepsum.report.cells import Cells, NumberColumn

MOST_CELLS = 10**6  # in a page; of a larger table it has the first ones, whatever their counts are
# Characters that could end a script element or a line of a script.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True)
class Embedded:
    """The data of a page, and how many of the cells they are."""

    json: str
    cells: int


def embedded(cells: Cells) -> Embedded:
    """The first cells as a JSON document, which a page can hold."""
    rows = min(len(cells), MOST_CELLS)
    document = {
        "rows": rows,
        "level": cells.level,
        "labels": [
            {
                "name": column.name,
                "ordered": column.kind == "axis",
                "values": column.values,
                "codes": _packed(column.codes[:rows]),
            }
            for column in cells.labels
        ],
        "count": _column(cells.count, rows),
        "unbiased": None if cells.unbiased is None else _column(cells.unbiased, rows),
        "margins": _packed(cells.margins[:rows]),
        "exact": _packed(np.flatnonzero(cells.is_exact[:rows])),
        "names": [column.name for column in cells.numbers],
    }
    return Embedded(json_for_script(document), rows)


def json_for_script(document: Any) -> str:
    r"""JSON for a script element of HTML, which ends at the first ``</script`` in it.

    >>> json_for_script({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = msgspec.json.encode(document).decode()
    return "".join(_UNSAFE.get(character, character) for character in text) if _has_unsafe(text) else text


def _has_unsafe(text: str) -> bool:
    return any(character in text for character in _UNSAFE)


def _column(column: NumberColumn, rows: int) -> dict[str, Any]:
    return {"name": column.name, "values": _packed(column.values[:rows])}


def _packed(values: IntArray) -> dict[str, str]:
    """Whole numbers as bytes, little end first, in the narrowest type that has room for all of them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for kind, dtype in (("u1", "<u1"), ("u2", "<u2"), ("i4", "<i4"), ("i8", "<i8")):
        room = np.iinfo(dtype)
        if room.min <= low and high <= room.max:
            return {"type": kind, "data": base64.b64encode(values.astype(dtype).tobytes()).decode()}
    raise AssertionError("counts have 64 bits")
