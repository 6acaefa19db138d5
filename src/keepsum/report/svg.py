"""Figures of matplotlib as SVG for a page: colours from the page, text as text, and no style of their own.

matplotlib writes ``style`` attributes, a style sheet and metadata with a date. A page with a strict policy allows none
of these, two figures of one page must not share identifiers, and the same facts must give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        _rename(element, name, used)
    return _written(root, name, title, description)


def _references(root: Any) -> set[str]:
    """The identifiers that something refers to."""
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


def _rename(element: Any, name: str, used: set[str]) -> None:
    """Identifiers that are used begin with the name of the figure; others are removed."""
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", f"{name}-{own}")
    for key, value in element.attrib.items():
        if key == f"{{{LINK}}}href" or "url(" in value:
            element.set(key, _REFERENCE.sub(lambda match: f"#{name}-{match[1]}", value))


def _written(root: Any, name: str, title: str, description: str) -> str:
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
