"""The page of a report: its facts in a template, under a policy that allows its own script and nothing else."""

from __future__ import annotations

import base64
import hashlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from keepsum._arrays import IntArray
from keepsum._text import how_many, percent, printable
from keepsum.accuracy.simulation import words_of_basis
from keepsum.report.cells import (
    STEPS,
    CrossTabulation,
    NumberColumn,
    ReportCells,
    Uncertainty,
    count_step,
    relative_step,
)
from keepsum.report.facts import KeptFacts, MarginFacts, ReportFacts
from keepsum.report.figures import chain_figure, noise_figure, uncertainty_figure

# The sentences of a report that no other text of a release has, each from its facts.


def number(value: int) -> str:
    """A whole number as the page shows it.

    >>> number(-12345)
    '−12,345'
    """
    return f"{value:,}".replace("-", "−")


def relative_words(part: float | None) -> str:
    """A relative margin of error; None where the count is not above 0.

    >>> [relative_words(part) for part in (None, 0, 1e-9, 0.004, 0.0456, 0.125, 25.0)]
    ['count ≤ 0', '0%', 'under 0.001%', '0.4%', '4.6%', '13%', 'over 1,000%']
    """
    if part is None:
        return "count ≤ 0"
    value = 100 * part
    if value == 0:
        return "0%"
    if value >= 1000:
        return "over 1,000%"
    if value < 0.001:
        return "under 0.001%"
    places = 0 if value >= 10 else 1 if value >= 1 else -math.floor(math.log10(value))
    return f"{_half_up(value, places)}%"


def _half_up(value: float, places: int) -> str:
    """A number rounded as the script rounds it, which Python would not: halves up."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:f}" if value >= 1 else f"{rounded.normalize():f}"


def lead(facts: ReportFacts) -> str:
    """The release in two or three sentences."""
    cells, kept, margins = facts.published.cells, facts.kept, facts.margins
    exact = (
        f" {how_many(kept.totals, 'total')} {'is' if kept.totals == 1 else 'are'} kept exactly." if kept.totals else ""
    )
    likely = f"with a probability of at least {percent(margins.level)}"
    which = "Each count" if margins.smallest == margins.largest else "A typical count"
    of = " of the unbiased table" if facts.cells.unbiased is not None else ""
    size = f"{which}{of} is within ±{number(margins.typical)} of the confidential one {likely}."
    return f"{how_many(cells, 'count')} published with random noise.{exact} {size}"


def kept_words(kept: KeptFacts) -> str:
    """How many totals are kept, and what that means."""
    independent = "" if kept.independent == kept.totals else f" ({kept.independent:,} of them independent)"
    they, them = ("they are", "them") if kept.totals > 1 else ("it is", "it")
    return (
        f"The noise leaves {how_many(kept.totals, 'total')}{independent} unchanged, so {they} published exactly. "
        f"Whatever follows from {them} is not protected."
    )


def margin_words(facts: ReportFacts) -> str:
    """What a margin of error is, how large they are, and where they come from."""
    margins = facts.margins
    low, high = margins.smallest, margins.largest
    spread = (
        f"It is ±{number(high)} for every cell"
        if low == high
        else (f"It is ±{number(margins.typical)} for a typical cell (from ±{number(low)} to ±{number(high)})")
    )
    count = "unbiased" if facts.cells.unbiased is not None else "released"
    zero = " Where the table says that it is ±0 because the count is kept exactly, there is no noise." * bool(
        facts.kept.pinned
    )
    if bool((~facts.cells.is_exact & (facts.cells.margins == 0)).any()):
        alone = " and the count is not kept exactly" if facts.kept.pinned else ""
        zero += f" Where it is ±0{alone}, the noise is 0 with a probability of at least {percent(margins.level)}."
    return (
        f"The margin of error says how far the noise may have moved a count: with a probability of at least "
        f"{percent(margins.level)}, the confidential count is within the margin of the {count} one. "
        f"{spread}{_basis(margins, facts.published.cells)}.{zero}"
    )


def _basis(margins: MarginFacts, cells: int) -> str:
    """How margins are known; the law of the noise is public, so none of it costs privacy."""
    if margins.basis == "exact":
        return ", computed from the law of the noise, which is public"
    which = f" for {margins.simulated_cells:,} cells, and computed for the others" * (margins.simulated_cells < cells)
    return f", {words_of_basis(margins.basis, margins.draws, margins.error)}{which}"


def level_words(facts: ReportFacts) -> str:
    """What a focus is, and which sums its margins are of."""
    table = "unbiased" if facts.cells.unbiased is not None else "released"
    return (
        f"Noise of counts adds up in their sums. Here some totals have a loss of their own, a focus, which makes "
        f"their noise smaller than that of other sums. Add up {table} counts to get such a total: it is within its "
        f"margin of the confidential one with a probability of at least {percent(facts.margins.level)}."
    )


def cross_words(cross: CrossTabulation) -> str:
    """What the edges of a cross table are."""
    kept = [
        axis
        for axis, totals in ((cross.row_axis, cross.row_totals), (cross.column_axis, cross.column_totals))
        if totals
    ]
    if not kept:
        return "Released counts. No total of a row or a column is kept exactly, so none is shown."
    return f"Released counts, with the totals of {_joined(kept)} that are kept exactly in bold: they have no noise."


def noise_words(facts: ReportFacts) -> str:
    """How the noise of a cell is distributed."""
    curves, level = facts.curves, percent(facts.margins.level)
    shown = "Its law does not depend on the data, so nothing is given away by showing it."
    if not curves:
        shown = "Its law does not depend on the data. It is not drawn here, because it would take long to simulate."
    stays = level
    if len(curves) == 1 and not curves[0].draws:  # down to a tenth of a percent, so that nothing is certain
        stays = max(
            level, f"{min(999, math.floor(1000 * curves[0].within)) / 10:.1f}%", key=lambda text: float(text[:-1])
        )
    return (
        f"Noise is symmetric around 0: it raises a count as often as it lowers it, so sums over many cells stay right "
        f"on average. The noise of a cell stays within its margin of error with a probability of at least {stays}. "
        f"{shown}"
    )


def uncertainty_words(uncertainty: Uncertainty) -> str:
    """How many counts are well known, and how many are not."""
    sentences = ["A margin of error matters by comparison with its count."]
    if uncertainty.positive:
        sentences.append(
            f"Of {how_many(uncertainty.positive, 'count')} above 0 with noise, {uncertainty.within_tenth:,} "
            f"{_have(uncertainty.within_tenth)} a margin of at most a tenth of the count, and "
            f"{uncertainty.at_least_all:,} {_have(uncertainty.at_least_all)} one at least as large as the count."
        )
    if uncertainty.not_positive:
        sentences.append(
            f"{how_many(uncertainty.not_positive, 'count')} with noise "
            f"{'is' if uncertainty.not_positive == 1 else 'are'} 0 or less, and cannot be compared."
        )
    if uncertainty.exact:
        sentences.append(f"{how_many(uncertainty.exact, 'count')} {_have(uncertainty.exact)} no noise.")
    return " ".join(sentences)


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# The cells of a report as JSON in its page: numbers as bytes in base 64, and text that cannot end a script.

MOST_CELLS = 10**6  # in a page; of a larger table it has the first ones, whatever their counts are
# Characters that could end a script element or a line of a script.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True)
class Embedded:
    """The data of a page, and how many of the cells they are."""

    json: str
    cells: int


def embedded(cells: ReportCells) -> Embedded:
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


FIRST_ROWS = 50  # those that the page has without its script, and a page of the table with it


@dataclass(frozen=True)
class Names:
    """What the files of a release are called, for the commands and links of a report; the title and the publisher."""

    release: str = "released.csv"
    margins: str = "released.margins.csv"
    title: str | None = None
    publisher: str | None = None


def page(facts: ReportFacts, names: Names, version: str) -> str:
    """The report as one HTML file."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, script = _resource("report.css"), _resource("report.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number, "percent": relative_words}
    template = environment.from_string(_resource("report.html.j2"))
    figure = environment.from_string(_resource("figure.html.j2"))
    level = facts.margins.level
    data = embedded(facts.cells)
    rows = _Rows(facts.cells)

    def drawn(picture: Any) -> Markup:
        marked = {"wide": Markup(picture.wide), "narrow": Markup(picture.narrow)}  # noqa: S704 (written by svg.py)
        return Markup(figure.render(**marked, caption=picture.caption))  # noqa: S704 (escaped by the template)

    # What the table is: 'Counts by county and education'
    return template.render(
        facts=facts,
        version=version,
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704 (a file of the package)
        script=Markup(script),  # noqa: S704 (a file of the package)
        data=Markup(data.json),  # noqa: S704 (escaped by json_for_script)
        title=printable(names.title or f"Counts by {_joined([axis.name for axis in facts.published.axes])}"),
        lead=(f"Published by {printable(names.publisher)}. " if names.publisher else "") + lead(facts),
        released=facts.published.released[:10],
        kept_words=kept_words(facts.kept),
        margin_words=margin_words(facts),
        level_words=level_words(facts),
        noise_words=noise_words(facts),
        uncertainty_words=uncertainty_words(facts.uncertainty),
        percent=percent(level),
        shown_cells=data.cells,
        margins_file=names.margins,
        download_name=names.margins,
        count_legend=rows.count_legend(),
        relative_legend=RELATIVE_LEGEND,
        first_rows=[rows.row(k) for k in range(min(FIRST_ROWS, data.cells))],
        columns=len(facts.cells.labels) + (3 if facts.cells.unbiased is None else 4),
        cross=facts.cross,
        cross_words=None if facts.cross is None else cross_words(facts.cross),
        cross_rows=[] if facts.cross is None else rows.crossed(facts.cross),
        noise_picture=noise_figure(facts.curves, level) if facts.curves else None,
        uncertainty_picture=uncertainty_figure(facts.uncertainty, level),
        chains=[chain_figure(curve, k) for k, curve in enumerate(facts.chains)],
        law=facts.privacy.law.replace("-", "−"),
        figure=drawn,
        verify_command=_verify_command(facts, names),
    )


RELATIVE_LEGEND = tuple(
    enumerate(("up to 1%", "up to 5%", "up to 10%", "up to 25%", "up to 50%", "up to 100%", "more"))
)


class _Rows:
    def __init__(self, cells: ReportCells) -> None:
        self.cells = cells
        self.largest = max(0, int(cells.count.values.max()))

    def row(self, k: int) -> dict[str, Any]:
        cells = self.cells
        exact, drawn, margin = bool(cells.is_exact[k]), int(cells.drawn[k]), int(cells.margins[k])
        return {
            "labels": [column.label(k) for column in cells.labels],
            "count": number(int(cells.count.values[k])),
            "unbiased": None if cells.unbiased is None else number(drawn),
            "margin": "±0: kept exactly" if exact else f"±{number(margin)}",
            "relative": relative_words(None if margin and drawn <= 0 else margin / drawn if margin else 0.0),
            "is_exact": exact,
            "count_step": count_step(int(cells.count.values[k]), self.largest),
            "relative_step": relative_step(drawn, margin),
        }

    def crossed(self, cross: CrossTabulation) -> list[dict[str, Any]]:
        cell_row = {int(cell): k for k, cell in enumerate(self.cells.cells)}
        return [
            {"label": label, "cells": [self.row(cell_row[c]) if c >= 0 else None for c in cells.tolist()]}
            for label, cells in zip(cross.rows, cross.cells, strict=True)
        ]

    def count_legend(self) -> list[tuple[int, str]]:
        """The shades that a count may have, and the counts of each."""
        starts = [self._first(step) for step in range(STEPS + 1)] + [self.largest + 1]
        ranges = [(step, starts[step], starts[step + 1] - 1) for step in range(1, STEPS + 1)]
        return [(0, "0 or less")] + [
            (step, number(low) if low == high else f"{number(low)}–{number(high)}")
            for step, low, high in ranges
            if low <= high
        ]

    def _first(self, step: int) -> int:
        low, high = 0, self.largest + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if count_step(middle, self.largest) >= step else (middle + 1, high)
        return low


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, and only this style and this script are run."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _resource(name: str) -> str:
    return files("keepsum.report").joinpath(name).read_text(encoding="utf-8")


def _verify_command(facts: ReportFacts, names: Names) -> str:
    signed = " --key PUBLISHER.pub.pem" if facts.published.signed_by is not None else ""
    seeded = " --allow-seeded" if facts.is_seeded else ""
    return printable(f"keepsum verify {shlex.quote(names.release)}{signed}{seeded}")
