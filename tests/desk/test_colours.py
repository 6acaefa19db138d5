"""The colours of the page, read from its styles: text on every ground it may be on is legible, light and dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = files("keepsum.desk").joinpath("static", "desk.css").read_text(encoding="utf-8")
TEXT, PART = 4.5, 3.0  # WCAG AA: of text, and of the parts of a control or a figure
TEXTS = [
    ("ink", ("paper", "panel", "raised", "kept", "danger-panel", "alert-panel")),
    ("quiet", ("paper", "panel", "raised")),
    ("link", ("paper", "panel", "raised")),
    ("first", ("paper",)),
    ("on-link", ("first",)),
    ("alert", ("paper", "alert-panel")),
    ("danger", ("paper", "danger-panel")),
    ("good", ("paper",)),
]
PARTS = [
    ("link", ("paper", "panel", "raised", "danger-panel", "alert-panel")),  # the ring of the focus
    ("quiet", ("paper", "panel", "raised")),  # the borders of fields
    ("first", ("paper", "panel", "kept")),
    ("second", ("paper",)),
    ("third", ("paper",)),
    ("danger", ("paper", "danger-panel")),
]


def themes() -> dict[str, dict[str, str]]:
    """The colours by their names; what the dark theme does not name is as in the light one."""
    light, dark = CSS.split("@media (prefers-color-scheme: dark)")
    named = [dict(re.findall(r"--([a-z-]+): #([0-9a-f]+)", part.partition("* {")[0])) for part in (light, dark)]
    return {"light": named[0], "dark": named[0] | named[1]}


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    digits = "".join(2 * digit for digit in colour) if len(colour) == 3 else colour
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_the_measure_is_that_of_the_standard():
    assert contrast("000", "fff") == pytest.approx(21)
    assert contrast("777777", "ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, TEXT), (PARTS, PART)], ids=["text", "parts"])
def test_contrasts_are_enough(theme, pairs, least):
    colours = themes()[theme]
    low = {
        (name, ground): round(contrast(colours[name], colours[ground]), 2)
        for name, grounds in pairs
        for ground in grounds
        if contrast(colours[name], colours[ground]) < least
    }
    assert low == {}


def test_every_colour_that_is_used_is_named_in_both_themes():
    light, dark = (
        set(names) for names in (themes()["light"], dict(re.findall(r"--([a-z-]+): (#)", CSS.split("dark)")[1])))
    )
    assert set(re.findall(r"var\(--([a-z-]+)\)", CSS)) <= light
    assert light == dark
