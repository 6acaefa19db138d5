"""The page of a report: its facts in a template, under a policy that allows its own script and style alone."""

from __future__ import annotations

import base64
import hashlib
import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from keepsum._extras import check_installed
from keepsum._text import percent, printable
from keepsum.report.cells import Cells
from keepsum.report.crossed import CrossTable
from keepsum.report.embedding import embedded
from keepsum.report.facts import ReportFacts
from keepsum.report.figures import chain_figure, noise_figure, uncertainty_figure
from keepsum.report.shading import STEPS, count_step, relative_step
from keepsum.report.words import (
    cross_words,
    kept_words,
    lead,
    level_words,
    margin_words,
    noise_words,
    number,
    relative_words,
    report_title,
    uncertainty_words,
)

FIRST_ROWS = 50  # those that the page has without its script, and a page of the table with it


@dataclass(frozen=True)
class Names:
    """What the files of a release are called, for the commands and links of a report."""

    release: str = "released.csv"
    margins: str = "released.margins.csv"


def page(facts: ReportFacts, names: Names, version: str) -> str:
    """The report as one HTML file."""
    check_installed("A report", "report")
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

    return template.render(
        facts=facts,
        version=version,
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704 (a file of the package)
        script=Markup(script),  # noqa: S704 (a file of the package)
        data=Markup(data.json),  # noqa: S704 (escaped by json_for_script)
        title=report_title(facts),
        lead=lead(facts),
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
    """Rows of the table as the template shows them; the script shows the same."""

    def __init__(self, cells: Cells) -> None:
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

    def crossed(self, cross: CrossTable) -> list[dict[str, Any]]:
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
        """The smallest count of a shade."""
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
