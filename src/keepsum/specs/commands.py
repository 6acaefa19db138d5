"""A spec as the command that does the same in a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from keepsum.specs.quoting import joined, listed, pair, quoted
from keepsum.specs.spec import Axes, Keep, Noise, Output, Records, Source, Spec

FILE = "keepsum.toml"
WIDTH = 100


def command_of(spec: Spec) -> str:
    """The command, in lines that a shell joins; totals over sets of cells need the spec as a file.

    >>> from keepsum.specs.spec import Keep, Noise, Output, Source, Spec
    >>> noise, source = Noise(epsilon="1"), Source(data="counts.csv", count="n")
    >>> print(command_of(Spec(source, keep=Keep(["county"]), mechanism=noise, output=Output("released.csv"))))
    keepsum release counts.csv --count n --keep county --epsilon 1 --output released.csv
    """
    if spec.keep.subset or isinstance(spec.source.data, list):
        return f"keepsum release --spec {FILE}"
    lines = ["keepsum release"]
    for option in arguments_of(spec):
        text = shlex.join(option)
        if len(lines[-1]) + len(text) > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {text}")
        else:
            lines[-1] += f" {text}"
    return "\n".join(lines)


def arguments_of(spec: Spec) -> Iterator[list[str]]:
    """The arguments of the command, each option with its value."""
    yield from _source(spec.source)
    yield from _records(spec.records)
    yield from _axes(spec.axes)
    yield from _keep(spec.keep)
    yield from _noise(spec.mechanism)
    if spec.postprocess.nonnegative:
        yield ["--nonnegative"]
    yield from _given("--nonnegative-norm", spec.postprocess.norm)
    yield from _output(spec.output)
    yield from _given("--ledger", spec.ledger.path)
    yield from _given("--dataset", spec.ledger.dataset)


def _given(option: str, value: Any) -> Iterator[list[str]]:
    """An option and its value in one, if that could be taken for an option."""
    if value is not None:
        text = str(value)
        yield [f"{option}={text}"] if text.startswith("-") and text != "-" else [option, text]


def _flag(option: str, wanted: bool | None) -> Iterator[list[str]]:
    if wanted:
        yield [option]


def _source(source: Source) -> Iterator[list[str]]:
    if isinstance(source.data, str):
        yield [f"./{source.data}"] if source.data.startswith("-") and source.data != "-" else [source.data]
    yield from _given("--table", source.table)
    yield from _given("--count", None if source.count is None else _name(source.count))
    if source.drop:
        yield from _given("--drop", listed(source.drop))
    for column, labels in (source.drop_rows or {}).items():
        yield from _given("--drop-rows", pair(column, labels if isinstance(labels, list) else [labels]))
    if isinstance(source.carry, Mapping):
        for column, axis in source.carry.items():
            yield from _given("--carry", joined(column, axis))
    elif source.carry:
        yield from _given("--carry", ",".join(quoted(name, ',:"') for name in source.carry))
    wide = source.wide
    if isinstance(wide, Mapping):
        wide = next(pair(axis, columns) for axis, columns in wide.items())
    yield from _given("--wide", wide)
    yield from _flag("--keep-order", source.keep_order)
    yield from _given("--sheet", source.sheet)
    yield from _given("--encoding", source.encoding)
    yield from _given("--structure", source.structure)
    for name, value in (source.flags or {}).items():
        yield from _given("--flag", f"{name}={value}")


def _name(name: str) -> str:
    """A single name, which is quoted if it could be taken for a quoted one."""
    return quoted(name, '"')


def _records(records: Records) -> Iterator[list[str]]:
    if records.by:
        yield from _given("--by", listed(records.by))
    for column, edges in (records.bins or {}).items():
        yield from _given("--bins", f"{column}={','.join(map(str, edges))}")
    for column, label in (records.missing or {}).items():
        yield from _given("--missing", f"{column}={label}")
    yield from _given("--unit", None if records.unit is None else _name(records.unit))
    yield from _given("--max-rows-per-unit", records.max_rows_per_unit)


def _axes(axes: Axes) -> Iterator[list[str]]:
    if axes.names:
        yield from _given("--axes", listed(axes.names))
    for child, parent in (axes.within or {}).items():
        yield from _given("--within", joined(child, parent))
    yield from _given("--domain", axes.domain)
    yield from _flag("--dense", axes.dense)
    yield from _flag("--quote-formulas", axes.quote_formulas)
    for axis, categories in (axes.categories or {}).items():
        for path, labels in by_parent(categories).items():
            yield from _given("--categories", pair(axis, labels, *path))


def by_parent(categories: Any) -> dict[tuple[str, ...], list[Any]]:
    """Categories by the path of their parents, which is empty for an axis that is not nested.

    >>> by_parent([["IL", "Cook"], ["IL", "Lake"]]), by_parent({"IL": ["Cook"]}), by_parent(["f", "m"])
    ({('IL',): ['Cook', 'Lake']}, {('IL',): ['Cook']}, {(): ['f', 'm']})
    """
    grouped: dict[tuple[str, ...], list[Any]] = {}
    if isinstance(categories, Mapping):
        for key, labels in categories.items():
            path = tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)
            grouped.setdefault(path, []).extend(labels)
        return grouped
    for label in categories:
        path = tuple(map(str, label[:-1])) if isinstance(label, (list, tuple)) else ()
        grouped.setdefault(path, []).append(label[-1] if isinstance(label, (list, tuple)) else label)
    return grouped


def _keep(keep: Keep) -> Iterator[list[str]]:
    for margin in keep.margins or []:
        yield from _given("--keep", margin if isinstance(margin, str) else _margin(margin))
    yield from _flag("--keep-total", keep.total)
    yield from _flag("--keep-nothing", keep.nothing)
    for file in keep.files or []:
        yield from _given("--keep-file", file)


def _margin(axes: list[str]) -> str:
    """Names of axes; a comma is part of a name only in quotes, which a name without one does without."""
    return listed(axes) if len(axes) > 1 or "," in axes[0] or '"' in axes[0] else axes[0]


def _noise(noise: Noise) -> Iterator[list[str]]:
    yield from _given("--mechanism", noise.kind if noise.kind != "laplace" else None)
    for name in ("epsilon", "delta", "rho", "sigma", "norm"):
        yield from _given(f"--{name}", getattr(noise, name))
    yield from _flag("--per-unit", noise.per_unit)
    if noise.attributes:
        yield from _given("--attributes", listed(noise.attributes))
    yield from _given("--to", noise.to)
    yield from _given("--calibration", noise.calibration)
    for axes, weight in (noise.focus or {}).items():
        yield from _given("--focus", f"{axes}={weight}")
    yield from _given("--cell-share", noise.cell_share)


def _output(output: Output) -> Iterator[list[str]]:
    for cell in output.accept_pinned or []:
        yield from _given("--accept-pinned", cell)
    yield from _given("--accept-delta", output.accept_delta)
    yield from _given("--totals", output.totals)
    yield from _given("--sign", output.sign)
    yield from _given("--output", output.path)
    yield from _given("--certificate", output.certificate)
