"""What is written as TOML is read as the same spec, whatever the names and labels."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsum.specs.spec import Axes, Keep, NoiseSpec, Output, Postprocess, RecordsSpec, SourceSpec, Spec, SpecFile
from keepsum.specs.writing import in_folder_of, toml_of

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
labels = names | st.integers(-(2**62), 2**62)
lists = st.lists(names, max_size=12)
numbers = st.integers(0, 10**6) | st.floats(0, allow_nan=False, allow_infinity=False) | names
specs = st.builds(
    Spec,
    source=st.builds(
        SourceSpec,
        data=st.none() | names | st.lists(names, min_size=1),
        count=st.none() | names,
        drop=lists,
        drop_rows=st.dictionaries(names, labels | st.lists(labels, min_size=1), max_size=3),
        carry=lists | st.dictionaries(names, names, min_size=1, max_size=3),
        wide=st.none() | names | st.dictionaries(names, lists, min_size=1, max_size=1),
        keep_order=st.booleans(),
        flags=st.dictionaries(names, names, max_size=3),
    ),
    records=st.builds(
        RecordsSpec,
        by=lists,
        bins=st.dictionaries(names, st.lists(numbers, min_size=1), max_size=3),
        unit=st.none() | names,
    ),
    axes=st.builds(
        Axes,
        quote_formulas=st.booleans(),
        within=st.dictionaries(names, names, max_size=3),
        categories=st.dictionaries(
            names,
            st.lists(labels, min_size=1) | st.dictionaries(names, st.lists(labels), min_size=1, max_size=3),
            max_size=3,
        ),
    ),
    keep=st.builds(
        Keep,
        margins=st.lists(names | st.lists(names, min_size=1), max_size=3),
        total=st.booleans(),
        nothing=st.booleans(),
    ),
    mechanism=st.builds(NoiseSpec, epsilon=st.none() | numbers, per_unit=st.booleans()),
    postprocess=st.builds(Postprocess, nonnegative=st.booleans(), norm=st.sampled_from([None, "l1", "l2"])),
    output=st.builds(Output, path=st.none() | names, accept_pinned=lists),
)


@settings(max_examples=60)
@given(specs)
def test_a_spec_is_read_as_it_was_written(spec: Spec) -> None:
    again = msgspec.convert(tomllib.loads(toml_of(spec)), SpecFile)
    assert all(getattr(again, part) == getattr(spec, part) for part in Spec.__struct_fields__)


def test_categories_of_the_command_line_have_their_parents_as_keys() -> None:
    one = {"county": {("IL",): ["Cook", "Lake"], ("WI",): ["Lake"]}}
    two = {"town": {("IL", "Cook"): ["A"], ("WI", "Lake"): ["B", "C"]}}
    text = toml_of(Spec(axes=Axes(categories={**one, **two})))  # type: ignore[dict-item]
    assert tomllib.loads(text)["axes"]["categories"] == {
        "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]},
        "town": [["IL", "Cook", "A"], ["WI", "Lake", "B"], ["WI", "Lake", "C"]],
    }


def test_paths_are_written_as_they_are_seen_from_the_spec() -> None:
    spec = Spec(source=SourceSpec(data="data/counts.csv"), output=Output(path="out/", sign="/keys/key.pem"))
    seen = in_folder_of(spec, Path("specs/monthly.toml"))
    assert seen.source.data == "../data/counts.csv"
    assert (seen.output.path, seen.output.sign) == ("../out/", "/keys/key.pem")
    assert in_folder_of(spec, Path("keepsum.toml")) == spec
    address = Spec(source=SourceSpec(data="postgres://user@host/db"))
    assert in_folder_of(address, Path("specs/monthly.toml")) == address
