"""Every option comes back from what is written of it: as a command, as a file, and as Python."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keepsum as ks
from keepsum.cli.declaration import parsed
from keepsum.planning.plan import compile_plan
from keepsum.specs import option
from keepsum.specs.building import kept_of, noise_of, table_of
from keepsum.specs.option import ValueKind, by_parent, parse_names
from keepsum.specs.options import OPTIONS, value_of, with_values
from keepsum.specs.reading import read_spec
from keepsum.specs.spec import Axes, FocusSubset, NoiseSpec, Spec, Subset, asks
from keepsum.specs.writing import arguments_of, command_of, snippet_of, toml_of

names = st.text("aB zü,:=\"'-$;|\\#", min_size=1, max_size=6).filter(lambda text: text.strip() and text[0] != "-")
texts = st.text("aB zü,:=\"'-$;|\\#", min_size=1, max_size=6)
files = st.text("abc.ü_", min_size=1, max_size=6).map(lambda text: f"x{text}.toml")
numbers = st.sampled_from(["1", "0.25", "1/3", "1e-6"])
some = st.lists(names, min_size=1, max_size=3, unique=True)
margins = st.one_of(some, st.text("abc", min_size=1, max_size=3))
nested = st.dictionaries(st.tuples(names), some, min_size=1, max_size=2)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    id(option.DATA): files,
    id(option.TEXT): texts,
    id(option.TEXTS): st.lists(texts, min_size=1, max_size=3),
    id(option.FILE): files,
    id(option.FILES): st.lists(files, min_size=1, max_size=2),
    id(option.WHOLE): st.integers(1, 9),
    id(option.SWITCH): st.just(value=True),
    id(option.NAME): names,
    id(option.NAMES): some,
    id(option.MECHANISM): st.sampled_from(["laplace", "gaussian"]),
    id(option.NESTING): st.dictionaries(names, names, min_size=1, max_size=2),
    id(option.CATEGORIES): st.dictionaries(names, some, min_size=1, max_size=2),
    id(option.ROWS): st.dictionaries(names, some, min_size=1, max_size=2),
    id(option.CARRIED): st.one_of(some, st.dictionaries(names, names, min_size=1, max_size=2)),
    id(option.WIDE): st.one_of(names, st.dictionaries(names, some, min_size=1, max_size=1)),
    id(option.FLAGS): st.dictionaries(names, texts, min_size=1, max_size=2),
    id(option.BINS): st.dictionaries(names, st.just(["0", "18", ""]), min_size=1, max_size=2),
    id(option.MISSING): st.dictionaries(names, names, min_size=1, max_size=2),
    id(option.MARGINS): st.lists(margins, min_size=1, max_size=3),
    id(option.FOCUS): st.dictionaries(some.map(option.listed), numbers, min_size=1, max_size=2),
}
TYPED = [one for one in OPTIONS.values() if one.flag is not None or one.key == "source.data"]
IN_FILES_ALONE = {"keep.subset", "mechanism.subset"}


def strategy(kind: ValueKind) -> st.SearchStrategy[Any]:
    return VALUES[id(kind)]


def again(spec: Spec) -> Spec:
    """The spec that the command says, in another process's words."""
    words = shlex.split(command_of(spec).replace("\\\n", ""))
    assert words[:2] == ["keepsum", "release"]
    return parsed(words[2:]).options(spec.axes.within)


def plain(one: option.Option, value: Any) -> Any:
    """A value in its one form: a margin may be text with commas, and a list of one name that name."""
    if one.kind is option.MARGINS:
        return [margin if isinstance(margin, list) else parse_names([margin], "") for margin in value]
    return value


def test_no_option_is_left_out():
    assert {one.key for one in TYPED} | IN_FILES_ALONE == set(OPTIONS)


@pytest.mark.parametrize("one", TYPED, ids=lambda one: one.key)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_each_option_comes_back_from_the_command(one, data):
    value = data.draw(strategy(one.kind))
    if one.key == "postprocess.norm":
        value = data.draw(st.sampled_from(["l1", "l2"]))
    spec = with_values(Spec(), {one.key: value})
    back = again(spec)
    found = value_of(back, one)
    assert plain(one, found) == plain(one, value) if value != one.default else found is None
    assert list(arguments_of(back)) == list(arguments_of(spec))


@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_all_options_together_come_back_from_the_command_and_from_the_file(data):
    values = {one.key: data.draw(strategy(one.kind)) for one in TYPED if data.draw(st.booleans())}
    if "postprocess.norm" in values:
        values["postprocess.norm"] = "l2"
    values.pop("axes.within", None)  # without which categories are not nested
    spec = with_values(Spec(), values)
    back = again(spec)
    for one in TYPED:
        value = value_of(spec, one)
        expected = None if value == one.default else value
        assert plain(one, value_of(back, one) or []) == plain(one, expected or [])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keepsum.toml"
        path.write_text(toml_of(spec), encoding="utf-8")
        file, _ = read_spec(path)
    for one in TYPED:
        if not one.kind.is_path:  # these are then in the folder
            assert value_of(file, one) == value_of(spec, one)
        else:
            assert asks(value_of(file, one)) == asks(value_of(spec, one))


@given(categories=st.dictionaries(st.just("county"), nested, min_size=1))
@settings(max_examples=25, deadline=None)
def test_nested_categories_come_back(categories):
    spec = Spec(axes=Axes(within={"county": "state"}, categories=categories))
    assert by_parent(again(spec).axes.categories["county"]) == by_parent(categories["county"])


def test_a_copy_that_drops_an_option_is_noticed(monkeypatch):
    """What was wrong before there was one table: the command without the files of a focus."""
    spec = Spec(mechanism=NoiseSpec(epsilon="1", focus={"coast": "1"}, focus_files=["coast.toml"]))
    assert again(spec) == spec
    less = {key: one for key, one in OPTIONS.items() if key != "mechanism.focus_files"}
    monkeypatch.setattr("keepsum.specs.writing.OPTIONS", less)
    assert again(spec) != spec


# -- as Python --------------------------------------------------------------------------------------

COUNTS = "state,county,sex,fips,n\n" + "".join(
    f"{state},{county},{sex},c{state}{county},{k + 3}\n"
    for k, (state, county, sex) in enumerate(
        (s, c, x) for s, c in (("IL", "Cook"), ("IL", "Lake"), ("WI", "Lake"), ("WI", "Rock")) for x in "fm"
    )
)
PEOPLE = "id,sex,age\na,f,3\nb,m,44\na,f,17\nc,m,70\nd,,12\n"
TOTALS = '[[total]]\nname = "coast"\ncells = [{ county = "Cook" }, { county = "Rock", sex = "f" }]\n'
DOMAIN = 'sex = ["m", "f"]\nstate = ["IL", "WI"]\n[county]\nIL = ["Cook", "Lake"]\nWI = ["Lake", "Rock"]\n'
BASE = {
    "source.data": "counts.csv", "source.count": "n", "source.drop": ["fips"], "axes.within": {"county": "state"},
    "keep.total": True, "mechanism.epsilon": "1", "output.path": "released.csv",
}  # fmt: skip
COAST = [{"county": "Cook"}, {"county": "Rock", "sex": "f"}]
GAUSSIAN = {"mechanism.kind": "gaussian", "mechanism.delta": "1e-6"}
# What an option needs to have a meaning.
SAID: dict[str, dict[str, Any]] = {
    "source.table": {"source.data": "sqlite:///people.db", "source.table": "people"},
    "source.drop_rows": {"source.drop_rows": {"sex": ["m"]}},
    "source.carry": {"source.carry": {"fips": "county"}, "source.drop": None},
    "source.wide": {"source.data": "wide.csv", "source.count": None, "source.drop": None, "axes.within": None,
                    "source.wide": {"sex": ["f", "m"]}},
    "source.keep_order": {"source.keep_order": True, "axes.within": None, "source.drop": None,
                          "source.data": "backwards.csv"},
    "source.sheet": {"source.data": "counts.xlsx", "source.sheet": "b"},
    "source.encoding": {"source.data": "latin.csv", "source.encoding": "latin-1"},
    "axes.names": {"axes.names": ["state", "county", "year"], "source.drop": None, "source.data": "years.csv"},
    "axes.domain": {"axes.domain": "domain.toml"},
    "axes.dense": {"axes.dense": True, "axes.within": None, "source.drop": None, "source.data": "sparse.csv"},
    "axes.quote_formulas": {"axes.quote_formulas": True, "axes.within": None, "source.drop": None,
                            "source.data": "formulas.csv"},
    "axes.categories": {"axes.categories": {"sex": ["m", "f", "x"]}},
    "keep.margins": {"keep.margins": ["state", ["sex"], ["state", "sex"]]},
    "keep.nothing": {"keep.nothing": True, "keep.total": None},
    "keep.files": {"keep.files": ["totals.toml"]},
    "keep.subset": {"keep.subset": [Subset(name="coast", cells=COAST), Subset(cells=[{"sex": "f"}], weight=2)]},
    "mechanism.kind": GAUSSIAN,
    "mechanism.delta": GAUSSIAN,
    "mechanism.rho": {"mechanism.kind": "gaussian", "mechanism.rho": "0.1", "mechanism.epsilon": None},
    "mechanism.sigma": {"mechanism.kind": "gaussian", "mechanism.sigma": "2", "mechanism.epsilon": None},
    "mechanism.norm": {"mechanism.norm": "l2"},
    "mechanism.per_unit": {"mechanism.per_unit": True},
    "mechanism.attributes": {"keep.margins": ["state"], "mechanism.attributes": ["sex"]},
    "mechanism.to": {"keep.margins": ["state"], "mechanism.attributes": ["county"],
                     "mechanism.to": "some other value"},
    "mechanism.calibration": {**GAUSSIAN, "mechanism.calibration": "tight"},
    "mechanism.focus": {"mechanism.focus": {"state": "1", "state,sex": "2"}},
    "mechanism.cell_share": {"mechanism.focus": {"state": "1"}, "mechanism.cell_share": "3"},
    "mechanism.focus_files": {**GAUSSIAN, "mechanism.focus": {"coast": "1"}, "mechanism.focus_files": ["totals.toml"]},
    "mechanism.subset": {**GAUSSIAN, "mechanism.focus": {"coast": "1", "sex": "1"},
                         "mechanism.subset": [FocusSubset("coast", COAST)]},
}  # fmt: skip
RECORDS = {
    "source.data": "people.csv", "source.count": None, "source.drop": None, "axes.within": None,
    "records.by": ["sex", "age"], "records.bins": {"age": [0, 18, 65, ""]}, "records.unit": "id",
    "records.missing": {"sex": "?"}, "records.max_rows_per_unit": 2, "axes.categories": {"sex": ["f", "m", "?"]},
}  # fmt: skip
LATER = ("postprocess", "output", "ledger")  # said of the release, not of its plan
ELSEWHERE = {"source.structure", "source.flags", "source.table"}  # tests/sources: SDMX and databases


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "years.csv").write_text("state,county,year,n\nIL,Cook,2010,3\nIL,Lake,2010,4\nWI,Lake,2010,5\n")
    (tmp_path / "sparse.csv").write_text("state,county,n\nIL,Cook,3\nIL,Lake,4\nWI,Rock,5\nWI,Dane,6\n")
    (tmp_path / "backwards.csv").write_text("county,n\nLake,3\nCook,4\n")
    (tmp_path / "formulas.csv").write_text("county,n\n=cmd(),3\nLake,4\n")
    (tmp_path / "wide.csv").write_text("county,f,m\nCook,3,4\nLake,5,6\n")
    (tmp_path / "latin.csv").write_bytes(COUNTS.replace("Cook", "Köln").encode("latin-1"))
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "totals.toml").write_text(TOTALS)
    (tmp_path / "domain.toml").write_text(DOMAIN)
    (tmp_path / "published.csv").write_text("n\n52\n")
    sheets(tmp_path / "counts.xlsx")
    return tmp_path


def sheets(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    rows = [line.split(",") for line in COUNTS.splitlines()]
    for name in "ab":
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append([*row[:-1], int(row[-1]) if row[-1].isdigit() else row[-1]])
    del book["Sheet"]
    book.save(path)


def planned(spec: Spec) -> Any:
    table = table_of(spec)
    return table, compile_plan(kept_of(spec, table), noise_of(spec.mechanism, table), records=table.records)


def planned_by(snippet: str, monkeypatch) -> Any:
    scope: dict[str, Any] = {}
    monkeypatch.setattr(ks, "release", lambda *_, **options: scope.setdefault("options", options))
    exec(snippet[: snippet.index("release.save(")].partition("\nrelease = ks.postprocess")[0], scope)  # noqa: S102
    table = scope["table"]
    return table, compile_plan(scope["keep"], scope["mechanism"], records=table.records)


def check(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    table, plan = planned(spec)
    other, planned_again = planned_by(snippet_of(spec), monkeypatch)
    assert other.domain == table.domain
    assert (other.counts == table.counts).all()
    assert planned_again.invariants == plan.invariants
    assert planned_again.invariants.names == plan.invariants.names
    assert planned_again.mechanism == plan.mechanism


def test_python_is_compared_for_every_option():
    of_plan = {one.key for one in OPTIONS.values() if one.section not in LATER}
    assert of_plan == {*SAID, *BASE, *RECORDS, *ELSEWHERE} - {"output.path"}


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
@pytest.mark.parametrize("key", [*(key for key in SAID if key not in ELSEWHERE), "records"])
def test_python_plans_the_same(key, here, monkeypatch):
    check(with_values(Spec(), {**BASE, **(RECORDS if key == "records" else SAID[key])}), monkeypatch)


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
def test_python_says_what_is_said_of_the_release(here, monkeypatch):
    said = {
        "output.accept_pinned": ["all"], "output.accept_delta": "0.1", "ledger.path": "l.db", "ledger.dataset": "d",
        "output.sign": "key.pem", "output.totals": "published.csv", "postprocess.nonnegative": True,
        "postprocess.norm": "l2",
    }  # fmt: skip
    spec = with_values(Spec(), {**BASE, **said})
    snippet = snippet_of(spec)
    check(spec, monkeypatch)
    assert "accept_pinned=['all'], accept_delta='0.1', ledger='l.db', dataset='d'" in snippet.replace("\n    ", " ")
    assert "release.save('released.csv', sign_with='key.pem')" in snippet
    assert "ks.postprocess.nonnegative(release, norm='l2')" in snippet
    (here / "published.csv").write_text("n\n53\n")
    with pytest.raises(SystemExit, match="Kept totals differ from the published figures"):
        check(spec, monkeypatch)


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
@pytest.mark.parametrize("key", [key for key in SAID if key not in {*ELSEWHERE, "keep.nothing"}])  # table.keep() alone
def test_python_that_drops_an_option_is_noticed(key, here, monkeypatch):
    """Each of the cases above is one that the option makes a difference to."""
    spec = with_values(Spec(), {**BASE, **SAID[key]})
    less = snippet_of(with_values(spec, {key: None}))
    monkeypatch.setattr(f"{__name__}.snippet_of", lambda spec: less)
    with pytest.raises((AssertionError, ks.KeepsumError)):
        check(spec, monkeypatch)


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
@pytest.mark.parametrize("key", [key for key, value in RECORDS.items() if value is not None])
def test_python_that_drops_an_option_of_records_is_noticed(key, here, monkeypatch):
    spec = with_values(Spec(), {**BASE, **RECORDS})
    less = snippet_of(with_values(spec, {key: None}))
    monkeypatch.setattr(f"{__name__}.snippet_of", lambda spec: less)
    with pytest.raises((AssertionError, ks.KeepsumError)):
        check(spec, monkeypatch)
