"""Three tables to try the page with, all made up: two margins, counties nested in states, and records of people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keepsum.sources.uploads import Upload
from keepsum.specs.spec import Axes, Keep, NoiseSpec, RecordsSpec, SourceSpec, Spec

CHILDREN = {"Alpha": (15, 1, 3, 1), "Beta": (20, 10, 10, 15), "Gamma": (3, 10, 10, 2), "Delta": (12, 14, 7, 2)}
EDUCATION = ("Low", "Medium", "High", "Very High")
STATES = {"North": 4, "East": 6, "South": 5, "West": 3}
SEXES, AGES = ("female", "male"), ("0-17", "18-64", "65+")
NOISE = NoiseSpec(kind="laplace", epsilon="1")
PEOPLE = 600


@dataclass(frozen=True)
class Example:
    """A table to try: its name, what it is, and how it is made."""

    name: str
    title: str
    words: str
    make: Callable[[], tuple[Upload, Spec]]


def _children() -> tuple[Upload, Spec]:
    rows = [
        f"{county},{level},{count}"
        for county, counts in CHILDREN.items()
        for level, count in zip(EDUCATION, counts, strict=True)
    ]
    spec = Spec(
        source=SourceSpec(data="children.csv", count="n"),
        axes=Axes(categories={"county": [*CHILDREN], "education": [*EDUCATION]}),
        keep=Keep(margins=["county", "education"]),
        mechanism=NOISE,
    )
    return _file("children.csv", ["county,education,n", *rows]), spec


def _counties() -> tuple[Upload, Spec]:
    rows = []
    for s, (state, counties) in enumerate(STATES.items()):
        for c in range(counties):
            for k, (sex, age) in enumerate((sex, age) for sex in SEXES for age in AGES):
                count = 40 + (37 * s + 53 * c + 29 * k) % 160  # made up, the same in every run
                rows.append(f"{state},{state} {c + 1},{sex},{age},{count}")
    spec = Spec(source=SourceSpec(data="counties.csv", count="people"), mechanism=NOISE, keep=Keep(margins=["state"]))
    return _file("counties.csv", ["state,county,sex,age,people", *rows]), spec


def _people() -> tuple[Upload, Spec]:
    rows = []
    for k in range(PEOPLE):
        person = k * 5 // 6  # some people have two records
        rows.append(f"p{person:04d},{SEXES[(person * 7) % 2]},{(person * 31) % 92},{'ABC'[(person * 5 + k) % 3]}")
    spec = Spec(
        source=SourceSpec(data="people.csv"),
        records=RecordsSpec(
            by=["sex", "age", "clinic"], bins={"age": ["0", "18", "65", ""]}, unit="id", max_rows_per_unit=2
        ),
        axes=Axes(categories={"sex": [*SEXES], "clinic": ["A", "B", "C"]}),
        keep=Keep(margins=["clinic"]),
        mechanism=NOISE,
    )
    return _file("people.csv", ["id,sex,age,clinic", *rows]), spec


def _file(name: str, lines: list[str]) -> Upload:
    return Upload(name, ("\n".join(lines) + "\n").encode())


EXAMPLES = {
    example.name: example
    for example in (
        Example("children", "Children", "16 counts by county and education, with both totals kept.", _children),
        Example(
            "counties", "Counties in states", "18 counties in 4 states, by sex and age: a column is nested.", _counties
        ),
        Example(
            "people", "Records of people", "600 visits to clinics, to be counted; some people came twice.", _people
        ),
    )
}
