"""The figures of a report as SVG in the page's colours, each in two widths: for a desk and for a telephone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

import numpy as np

from keepsum._text import percent
from keepsum.report.cells import Uncertainty
from keepsum.report.facts import ChainCurve, NoiseCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Figures of matplotlib as SVG for a page: colours from the page, text as text, and no style of their own.
#
# matplotlib writes ``style`` attributes, a style sheet and metadata with a date. A page with a strict policy allows
# none of these, two figures of one page must not share identifiers, and the same facts must give the same bytes.

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# What is drawn in one of these colours has that of the page: each is the name of a class, for lines and for areas.
INK, QUIET, GRID, FIRST, SECOND, THIRD, PAPER = (
    "#010101",
    "#020202",
    "#030303",
    "#040404",
    "#050505",
    "#060606",
    "#070707",
)
ROLES = {INK: "ink", QUIET: "quiet", GRID: "grid", FIRST: "first", SECOND: "second", THIRD: "third", PAPER: "paper"}
_REFERENCE = re.compile(r"#([\w-]+)")


@contextmanager
def plain_settings(settings: dict[Any, Any]) -> Iterator[None]:
    """These settings of matplotlib and else its defaults, whatever the user's own are; for a while."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


def inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """A figure as an SVG element, named for those who cannot see it; ``name`` is different for each of a page."""
    sink = io.StringIO()
    with plain_settings({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(sink, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(sink.getvalue())  # noqa: S314 (what matplotlib has just written)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    used = _references(root)
    for element in root.iter():
        _restyle(element)
        # Identifiers that are used begin with the name of the figure; others are removed
        own = element.attrib.pop("id", None)
        if own in used:
            element.set("id", f"{name}-{own}")
        for key, value in element.attrib.items():
            if key == f"{{{LINK}}}href" or "url(" in value:
                element.set(key, _REFERENCE.sub(lambda match: f"#{name}-{match[1]}", value))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    root.set("focusable", "false")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(position, element)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK)
    return ElementTree.tostring(root, encoding="unicode")


def _references(root: Any) -> set[str]:
    used: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key in (f"{{{LINK}}}href", "clip-path") or "url(" in value:
                used.update(_REFERENCE.findall(value))
    return used


def _restyle(element: Any) -> None:
    """Declarations of a style attribute as attributes of their own, and colours of the page as classes."""
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":  # '12px "DejaVu Sans", sans-serif': the page has a font of its own
            size = re.search(r"([\d.]+)px", value)
            element.set("font-size", size[1] if size else "12")
            if "bold" in value or re.search(r"\b[6-9]00\b", value):
                element.set("font-weight", "600")
        elif key not in ("font-family", "stroke-linejoin", "stroke-linecap"):
            element.set(key, value)
    classes = [f"{paint[0]}-{ROLES[element.attrib[paint]]}" for paint in ("fill", "stroke") if _role(element, paint)]
    for paint in ("fill", "stroke"):
        if _role(element, paint):
            del element.attrib[paint]
    if element.tag == f"{{{SVG}}}text" and "fill" not in element.attrib and not any(c[0] == "f" for c in classes):
        classes.append("f-ink")
    if classes:
        element.set("class", " ".join(classes))


def _role(element: Any, paint: str) -> bool:
    return element.attrib.get(paint) in ROLES


Draw: TypeAlias = "Callable[[Axes, bool], None]"
# Widths and heights in pixels of the page, at which the text has its size; figures are never drawn smaller.
WIDE, NARROW, TEXT = (680, 320), (328, 300), 13
DOTS = 72  # per inch, so that a point of matplotlib is a pixel of the page
COLOURS = (FIRST, SECOND, THIRD)
STYLES = ("-", (0, (5, 2)), (0, (1.5, 1.5)))


@dataclass(frozen=True)
class Picture:
    """A figure in two widths, of which a page shows one, with its caption."""

    wide: str
    narrow: str
    caption: str


def noise_figure(curves: Sequence[NoiseCurve], level: float) -> Picture:
    """The law of the noise of a few cells, with the margin of error of each."""
    share = percent(level)
    margins = " and ".join(f"±{curve.margin:,} for {curve.which}" for curve in curves)
    title = "How large the noise is"
    description = f"Probability of each value of the noise, highest at 0. The {share} margin of error is {margins}."

    def draw(axes: Axes, narrow: bool) -> None:
        from matplotlib.ticker import MaxNLocator

        only = len(curves) == 1
        for curve, colour, style in zip(curves, COLOURS, STYLES, strict=False):
            inside = np.abs(curve.values) <= curve.margin
            if only and len(curve.values) <= 90:
                width = 0.72 * (curve.values[1] - curve.values[0])
                axes.bar(curve.values[inside], curve.probabilities[inside], width, color=colour, linewidth=0)
                axes.bar(
                    curve.values[~inside], curve.probabilities[~inside], width, color=colour, alpha=0.35, linewidth=0
                )
            else:
                axes.plot(curve.values, curve.probabilities, color=colour, linestyle=style, linewidth=2)
                shade = np.where(inside, curve.probabilities, np.nan)
                axes.fill_between(curve.values, 0, shade, color=colour, alpha=0.12, linewidth=0)
        top = max(float(curve.probabilities.max()) for curve in curves)
        lowest = -0.07 * top
        for k, (curve, colour) in enumerate(zip(curves, COLOURS, strict=False)):
            y = lowest - 0.13 * top * k
            axes.plot([-curve.margin, curve.margin], [y, y], color=colour, linewidth=3, solid_capstyle="butt")
            text = f"±{curve.margin:,}" if narrow or only else f"±{curve.margin:,}, {curve.which}"
            axes.annotate(
                text, (curve.margin, y), xytext=(6, 0), textcoords="offset points", va="center", color=INK,
                annotation_clip=False,
            )  # fmt: skip
        axes.set_ylim(lowest - 0.13 * top * len(curves), 1.08 * top)
        axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= 1.08 * top])
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        axes.axhline(0, color=QUIET, linewidth=0.8)
        axes.xaxis.set_major_locator(MaxNLocator(5 if narrow else 9, integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
        axes.set_xlabel("noise added to a count")
        axes.set_title("probability", loc="left", color=QUIET)

    simulated = [curve.draws for curve in curves if curve.draws]
    source = f" From {min(simulated):,} simulated draws." if simulated else " Computed, not simulated."
    bars = "The bar below the axis is" if len(curves) == 1 else "The bars below the axis are"
    caption = f"How probable each value of the noise is. {bars} the {share} margin of error.{source}"
    return _picture("noise", title, description, caption, draw)


def uncertainty_figure(uncertainty: Uncertainty, level: float) -> Picture | None:
    """Relative margins against counts; None if there is nothing to draw."""
    points = uncertainty.points
    if not len(points.cells):
        return None
    share = percent(level)
    cells = int(points.cells.sum())

    def draw(axes: Axes, narrow: bool) -> None:
        from matplotlib.ticker import LogLocator

        area = 32 if (points.cells == 1).all() else 6 + 60 * (points.cells / points.cells.max()) ** 0.5
        axes.set_xscale("log")
        axes.set_yscale("log")
        for height, name in ((1.0, "as large as the count"), (0.1, "a tenth of it")):
            axes.axhline(height, color=QUIET, linewidth=0.8, linestyle=(0, (3, 3)))
            axes.annotate(
                name, (1, height), xycoords=("axes fraction", "data"), xytext=(0, 4), textcoords="offset points",
                ha="right", color=QUIET,
            )  # fmt: skip
        axes.scatter(points.counts, points.relative, s=area, color=FIRST, alpha=0.55, linewidth=0, zorder=3)
        for axis, values in ((axes.xaxis, points.counts), (axes.yaxis, points.relative)):
            near = float(values.max()) < 60 * float(values.min())
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if near else (1.0,), numticks=6 if narrow else 12))
        axes.xaxis.set_major_formatter(lambda value, _: _brief(value))
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:,.10g}%")
        axes.minorticks_off()
        axes.set_xlabel("released count (log scale)")
        name = "margin ÷ count" if narrow else "margin of error, relative to the count"
        axes.set_title(f"{name} (log scale)", loc="left", color=QUIET)

    together = "" if (points.cells == 1).all() else " Larger dots stand for more cells."
    caption = (
        f"The {share} margin of error relative to its count, for {cells:,} counts above 0 that have noise: the "
        f"larger a count, the better it is known.{together}"
    )
    description = (
        f"Relative margins fall as counts grow. {uncertainty.at_least_all:,} of these margins are at least as large as "
        f"the count, {uncertainty.within_tenth:,} at most a tenth of it."
    )
    return _picture("uncertainty", "Margins of error relative to counts", description, caption, draw)


def chain_figure(curve: ChainCurve, number: int) -> Picture:
    """How near a chain comes to its target."""
    share = percent(curve.confidence)
    lowest = 1e-9

    def draw(axes: Axes, narrow: bool) -> None:
        axes.set_yscale("log")
        for values, colour, style, width in ((curve.bound, FIRST, "-", 2.2), (curve.limit, FIRST, (0, (4, 2)), 1.4)):
            seen = values > 0
            axes.step(curve.at[seen], values[seen], where="post", color=colour, linestyle=style, linewidth=width)
        axes.axvline(curve.steps, color=QUIET, linewidth=0.9)
        axes.annotate(
            f"{curve.steps:,} steps\nper draw", (curve.steps, 0.6), xytext=(-6, 0), textcoords="offset points",
            ha="right", va="top", color=QUIET,
        )  # fmt: skip
        axes.set_ylim(max(lowest, 0.3 * float(curve.limit.min())), 2)
        axes.set_xlim(0, curve.at[-1])
        axes.xaxis.set_major_formatter(lambda value, _: _brief(value))
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("steps of the chain")
        axes.set_title("total variation, at most (log scale)", loc="left", color=QUIET)

    caption = (
        f"{curve.name}: the bound on the total variation from the target, estimated from {curve.pairs:,} pairs of "
        f"coupled chains (solid), and its {share} limit (dashed). A draw takes {curve.steps:,} steps, after which "
        f"the limit is {curve.upper}."
    )
    description = f"The bound falls with the number of steps; after {curve.steps:,} steps its limit is {curve.upper}."
    return _picture(f"chain{number}", "How near the chain comes to its target", description, caption, draw)


def _picture(name: str, title: str, description: str, caption: str, draw: Draw) -> Picture:
    wide, narrow = (
        inline_svg(_figure(size, draw, size == NARROW), f"{name}-{width}", title, description)
        for size, width in ((WIDE, "wide"), (NARROW, "narrow"))
    )
    return Picture(wide, narrow, caption)


def _figure(size: tuple[int, int], draw: Draw, narrow: bool) -> Figure:
    from matplotlib.figure import Figure

    look: dict[Any, Any] = {
        "font.size": TEXT, "axes.titlesize": TEXT, "axes.labelsize": TEXT, "xtick.labelsize": TEXT,
        "ytick.labelsize": TEXT, "axes.edgecolor": QUIET, "axes.labelcolor": QUIET, "text.color": INK,
        "xtick.color": QUIET, "ytick.color": QUIET, "grid.color": GRID, "axes.facecolor": PAPER,
        "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "ytick.left": False,
        "axes.titlepad": 10, "font.family": "DejaVu Sans",
    }  # fmt: skip
    with plain_settings(look):
        figure = Figure(figsize=(size[0] / DOTS, size[1] / DOTS), layout="constrained", dpi=DOTS)
        axes = figure.add_subplot()
        axes.grid(visible=True, axis="y", linewidth=0.7)
        axes.set_axisbelow(True)
        draw(axes, narrow)
        figure.draw_without_rendering()
    return figure


def _brief(value: float) -> str:
    """A tick in few characters.

    >>> [_brief(value) for value in (0, 0.5, 2000, 10_000, 1e6)]
    ['0', '0.5', '2,000', '10k', '1m']
    """
    if value >= 1e15:
        return f"{value:.0e}"
    for size, name in ((1e12, "tn"), (1e9, "bn"), (1e6, "m"), (1e3, "k")):
        if value >= max(size, 10_000):
            return f"{value / size:g}{name}"
    return f"{value:,.10g}"
