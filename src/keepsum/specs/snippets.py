"""A spec as the lines of Python that do the same."""

from __future__ import annotations

from typing import Any

from keepsum.specs.building import OF_RECORDS
from keepsum.specs.commands import by_parent
from keepsum.specs.focus import focus_of
from keepsum.specs.spec import Noise, Spec, Subset, asks

WIDTH = 100


def snippet_of(spec: Spec) -> str:
    """The lines, from reading the data to writing the release."""
    lines = ["import keepsum as ks", "", f"table = {_table(spec)}", *_keep(spec)]
    options: dict[str, Any] = {}
    if spec.output.accept_pinned:
        options["accept_pinned"] = spec.output.accept_pinned
    if spec.output.accept_delta is not None:
        options["accept_delta"] = spec.output.accept_delta
    if spec.ledger.path is not None:
        options["ledger"] = spec.ledger.path
    if spec.ledger.dataset is not None:
        options["dataset"] = spec.ledger.dataset
    noise = _noise(spec.mechanism)
    lines.append(f"release = {_call('ks.release', ['table', 'keep=keep', f'mechanism={noise}'], options)}")
    if spec.postprocess.nonnegative:
        norm = {} if spec.postprocess.norm is None else {"norm": spec.postprocess.norm}
        lines.append(f"release = {_call('ks.postprocess.nonnegative', ['release'], norm)}")
    lines.append(f"release.save({spec.output.path or 'released.csv'!r})")
    return "\n".join(lines) + "\n"


def _table(spec: Spec) -> str:
    source, axes, records = spec.source, spec.axes, spec.records
    domain = {axis: _categories(labels) for axis, labels in (axes.categories or {}).items()}
    options: dict[str, Any] = {}
    if records.by:
        options |= {"by": records.by, "domain": domain or None, "within": axes.within}
        options |= {name: getattr(records, name) for name in OF_RECORDS}
        if records.bins:
            options["bins"] = {name: [str(edge) for edge in edges] for name, edges in records.bins.items()}
        options["table"] = source.table
        options["quote_formulas"] = axes.quote_formulas
        return _call("ks.tabulate", [repr(source.data)], _said(options))
    options |= {"count": source.count, "axes": axes.names, "within": axes.within, "domain": domain or None}
    names = ("drop", "drop_rows", "carry", "wide", "keep_order", "sheet", "encoding", "structure", "flags")
    options |= {name: getattr(source, name) for name in names}
    options["dense"] = axes.dense
    options["quote_formulas"] = axes.quote_formulas
    return _call("ks.read_table", [repr(source.data)], _said(options))


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if asks(value)}


def _categories(categories: Any) -> Any:
    """Categories as ``Domain`` takes them: those of a nested axis by the path of their parents."""
    grouped = by_parent(categories)
    if list(grouped) == [()]:
        return grouped[()]
    return {path[0] if len(path) == 1 else path: labels for path, labels in grouped.items()}


def _keep(spec: Spec) -> list[str]:
    keep = spec.keep
    margins = [repr(_margin(margin)) for margin in keep.margins or []]
    lines = [f"keep = {_call('table.keep', margins, {'total': True} if keep.total else {})}"]
    for subset in keep.subset or []:
        lines += _subset(subset)
    return lines


def _margin(margin: str | list[str]) -> str | list[str]:
    names = [name.strip() for name in margin.split(",")] if isinstance(margin, str) else margin
    return names[0] if len(names) == 1 else names


def _subset(subset: Subset) -> list[str]:
    """The total over the cells that match; the mask of each mapping is that of its labels."""
    masks = " | ".join(f"table.domain.matching({cells!r})" for cells in subset.cells)
    name = subset.name or "total of a subset"
    made = f"ks.Invariants.subsets(table.domain.size, [cells], names=[{name!r}]).over(table.domain)"
    return [f"cells = ({masks}).nonzero()[0].tolist()", f"keep = keep + {made}"]


def _noise(noise: Noise) -> str:
    options: dict[str, Any] = {}
    kind = "ks.Gaussian" if noise.kind == "gaussian" else "ks.Laplace"
    for name in ("epsilon", "delta", "rho", "sigma", "norm", "calibration", "attributes", "to"):
        options[name] = getattr(noise, name)
    if noise.kind == "gaussian":
        options.pop("norm")
    options["focus"] = focus_of(noise)
    if noise.focus:
        options["cell_share"] = noise.cell_share
    return _call(f"{kind}.per_unit" if noise.per_unit else kind, [], _said(options))


def _call(function: str, positional: list[str], options: dict[str, Any]) -> str:
    parts = [*positional, *(f"{name}={value!r}" for name, value in options.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= WIDTH or not parts:
        return line
    return f"{function}(\n" + "".join(f"    {part},\n" for part in parts) + ")"
