"""Every leaf of a certificate, forged in turn: numbers, flags, texts, nulls, lists, and fields that may be left out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import keepsum as ks

HUGE = 2**53 - 1  # the largest whole number that a certificate can hold
LEFT_OUT = {  # fields that may be left out, with values that an honest release can have
    ("table",): {"attributes": {"OBS_STATUS": "A"}},
    ("mechanism",): {"focus": [{"axes": [], "epsilon": "1"}]},
    ("guarantee", "person"): {"within": [None]},
    ("accuracy",): {"simulated_error": 0.001, "conservative": True, "focused_margins": [1]},
    (): {
        "carried": [{"name": "code", "axis": "a", "values": ["x"]}],
        "records": {"unit": None, "max_rows_per_unit": 1},
    },
}
PUT_FOR_NULL = {  # what else an honest release can have where it has null
    "acceptance": [0.5],
    "steps": [1],
    "proposals_per_step": [2.5],
    "moves": [3],
    "epsilon": ["1"],
    "delta": ["0.000001"],
    "rho": ["1"],
    "extrapolated": [0.001],
    "confidence": [0.95],
    "unit": ["person"],
    "max_rows_per_unit": [1, 2],
    "asked": [{"attributes": None, "to": "any value"}, {"attributes": None, "to": "some other value"}],
    "ledger": [{"dataset": "survey", "entry": 1, "head": "0" * 64}],
    "any_value": [{"length": 2, "exact": True}],
    "other_value": [{"length": 2, "exact": True}],
    "records": [{"unit": None, "max_rows_per_unit": None}],
    "attributes": [["age"], ["county"], []],
    "parent": ["age", "state"],
    "parents": [[0]],
    "convergence": [
        {
            "steps": 100, "lag": 10, "give_up": 1000, "pairs": 1000, "unmet": 0, "meetings": [[5, 1000]],
            "confidence": 0.95, "predicted": 0.0, "rounding": 0.0, "upper": 0.003, "extrapolated": 0.0,
        }
    ],
}  # fmt: skip
ENUMERATED = {
    "schema": ["keepsum.certificate/1"],
    "kind": ["free", "sums", "nested", "crossed", "focused", "table", "regions", "margin", "subsets", "weighted"],
    "norm": ["l1", "l2"],
    "name": ["laplace", "gaussian"],
    "to": ["any value", "some other value"],
    "calibration": ["lines", "zcdp", "tight", "paper"],
    "exactness": ["exact", "rounded", "estimated"],
    "randomness": ["system", "seed"],
    "method": [
        "independent_cells", "part_by_part", "nested_totals", "column_splitting", "layer_splitting", "solved_regions",
        "conditional_cells", "mixture_rejection", "mixture_chain", "heat_bath_chain", "gaussian_chain",
        "uniform_compositions", "two_rows",
    ],
}  # fmt: skip
Way = tuple[Any, ...]


def ways(value: Any, above: Way = ()) -> Iterator[Way]:
    """The way to every value, with the first and the last element of each list."""
    yield above
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ways(inner, (*above, key))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1}) if value else ():
            yield from ways(value[place], (*above, place))


def at(document: Any, way: Way) -> Any:
    for key in way:
        document = document[key]
    return document


def pattern(way: Way) -> str:
    """The way with * for each place in a list."""
    return ".".join("*" if isinstance(key, int) else key for key in way)


def forgeries(document: Any, sections: tuple[str, ...] = ()) -> Iterator[tuple[str, str, Any]]:
    """Each forgery of one fact: its pattern, what was done, and the forged document; of some sections alone."""
    for way in ways(document):
        if sections and not (way and way[0] in sections):
            continue
        value = at(document, way)
        for what, other in _others(way, value):
            if type(other) is type(value) and other == value:
                continue
            yield pattern(way), what, _with(document, way, other)
        if way and isinstance(way[-1], str):
            yield pattern(way), "removed", _without(document, way)
        for name, added in LEFT_OUT.get(way, {}).items():
            if name not in value:
                yield pattern((*way, name)), "added", _with(document, (*way, name), added)


def _with(document: Any, way: Way, value: Any) -> Any:
    changed = copy.deepcopy(document)
    if not way:
        return value
    at(changed, way[:-1])[way[-1]] = copy.deepcopy(value)
    return changed


def _without(document: Any, way: Way) -> Any:
    changed = copy.deepcopy(document)
    del at(changed, way[:-1])[way[-1]]
    return changed


def _others(way: Way, value: Any) -> Iterator[tuple[str, Any]]:
    if way and value is not None:
        yield "null", None
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, int):
        yield from {"one more": value + 1, "one less": value - 1, "two more": value + 2, "two less": value - 2}.items()
        yield from {"doubled": 2 * value, "halved": value // 2, "zero": 0, "huge": HUGE, "minus": -1}.items()
    elif isinstance(value, float):
        yield from {"doubled": 2 * value, "halved": value / 2, "zero": 0.0, "one": 1.0, "huge": 1e300}.items()
        yield from {"slightly more": value * 1.01, "slightly less": value * 0.99, "minus": -1.0, "half": 0.5}.items()
    elif isinstance(value, str):
        yield from _other_texts(way, value)
    elif isinstance(value, list):
        yield "emptied", []
        yield "first dropped", value[1:]
        yield "last repeated", value + value[-1:]
        yield "reversed", value[::-1]
    elif value is None:
        for number, other in enumerate(PUT_FOR_NULL.get(str(way[-1]), [])):
            yield f"instead of null {number}", other


def _other_texts(way: Way, value: str) -> Iterator[tuple[str, str]]:
    name = str(way[-1])
    for other in ENUMERATED.get(name, []):
        yield other, other
    quotient = _quotient(value)
    if quotient is not None:
        written = str if "." not in value and "e" not in value else lambda number: f"{float(number):.12g}"
        for what, factor in (("doubled", 2), ("halved", Fraction(1, 2)), ("slightly more", Fraction(1001, 1000)),
                             ("slightly less", Fraction(999, 1000))):  # fmt: skip
            yield what, written(quotient * factor)
        yield "zero", "0"
    elif len(value) == 64:
        yield "other hash", value[1:] + value[0]
    elif name == "released":
        yield "another year", "2031" + value[4:]
        yield "no such day", value[:5] + "02-30" + value[10:]
    else:
        yield "other text", f"{value}x"
        yield "no text", ""


def _quotient(value: str) -> Fraction | None:
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def write(folder: Path, document: Any) -> None:
    (folder / "certificate.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def passing(
    folder: Path, sections: tuple[str, ...] = (), chosen: Callable[[str, str], bool] = lambda *_: True
) -> Iterator[tuple[str, str]]:
    """The forgeries of a release in a folder that verify accepts, by their patterns and what was done."""
    original = json.loads((folder / "certificate.json").read_bytes())
    original["signature"] = None  # anyone can take it off; nobody can forge it
    write(folder, original)
    assert ks.verify(folder)
    for where, what, forged in forgeries(original, sections):
        if chosen(where, what):
            write(folder, forged)
            if ks.verify(folder):
                yield where, what
