"""``keepsum release`` by a spec: the same release as by options, and errors that name the key and the line."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from keepsum.privacy.guarantee import USUAL_DELTA
from keepsum.privacy.numbers import Loss
from keepsum.privacy.profile import holds, smallest_epsilon
from keepsum.sources.atomic import BUSY, claimed
from support import mostly_audit, refusal

COUNTS = "county,sex,n\n" + "".join(f"{county},{sex},{7 * k}\n" for k, county in enumerate("ABC") for sex in "fm")
SPEC = """version = 1
[source]
data = "counts.csv"
count = "n"

[keep]
margins = ["county"]

[mechanism]
epsilon = 0.5

[output]
path = "out/"
"""
OPTIONS = ["counts.csv", "--count", "n", "--keep", "county", "--epsilon", "0.5"]
PEOPLE = "person,county,sex,age\n1,A,f,3\n1,A,f,4\n2,B,m,40\n3,B,f,80\n"
TOGETHER = "Together Where the 2 tables are about the same people, their losses add up. {}"
SEVERAL = """version = 1
[source]
data = "people.csv"

[axes.categories]
county = ["A", "B"]
sex = ["f", "m"]

[records]
bins = { age = [0, 18, 65, ""] }
unit = "person"
max_rows_per_unit = 2

[keep]
total = true

[mechanism]
epsilon = 1

[[table]]
name = "county by sex"
records.by = ["county", "sex"]
output.path = "county_sex/"

[[table]]
name = "age"
records.by = ["age"]
mechanism.epsilon = 2
output.path = "age.csv"

[[marginal]]
of = "county by sex"
axes = ["sex"]
output = "sex.csv"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "keepsum.toml").write_text(SPEC)
    return tmp_path


def certificate(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_a_spec_and_options_make_the_same_release(run: Callable[..., Any], here: Path) -> None:
    by_spec = run("release", "--yes", "--seed", "1")
    assert by_spec.returncode == 0, by_spec.stderr
    assert by_spec.stdout.startswith(b"Spec            keepsum.toml\n")
    assert run("release", *OPTIONS, "-o", "other/", "--yes", "--seed", "1").returncode == 0
    assert (here / "out/table.csv").read_bytes() == (here / "other/table.csv").read_bytes()
    assert certificate(here / "out/certificate.json") | {"released": ""} == certificate(
        here / "other/certificate.json"
    ) | {"released": ""}
    assert run("verify", "out/", "--allow-seeded").returncode == 0


def test_options_override_the_spec(run: Callable[..., Any], here: Path) -> None:
    done = run("release", "--epsilon", "2", "--keep", "sex", "-o", "released.csv", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["guarantee"]["per_unit"].startswith("epsilon 0.5 per unit")
    assert result["kept"] == "2 totals of sex"
    assert not (here / "out").exists()


def test_a_spec_elsewhere_has_paths_of_its_own(run: Callable[..., Any], here: Path) -> None:
    (here / "monthly").mkdir()
    for name in ("counts.csv", "keepsum.toml"):
        (here / name).rename(here / "monthly" / name)
    assert run("release", "--spec", "monthly/keepsum.toml", "--yes").returncode == 0
    assert (here / "monthly/out/certificate.json").is_file()


def test_a_table_on_the_command_line_is_not_mixed_with_the_spec_of_the_folder(
    run: Callable[..., Any], here: Path
) -> None:
    failed = run("release", "counts.csv", "--yes")
    assert failed.returncode == refusal(failed)
    assert b"Option --epsilon must be given, or --spec keepsum.toml" in failed.stderr
    (here / "other.csv").write_text(COUNTS)
    assert run("release", "other.csv", "--spec", "keepsum.toml", "--yes").returncode == 0


def test_a_plan_by_a_spec(run: Callable[..., Any], here: Path) -> None:
    by_spec, by_options = run("plan"), run("plan", *OPTIONS)
    assert by_spec.returncode == 0, by_spec.stderr
    assert by_spec.stdout == by_options.stdout


def test_several_tables_and_a_marginal(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SEVERAL)
    done = run("release", "--yes")
    assert done.returncode == 0, done.stderr
    words = done.stdout.decode()
    assert words.index("Release         county by sex") < words.index("Release         age")
    assert TOGETHER.format("For one person they are epsilon 1, epsilon 2, and") in " ".join(words.split())
    for place in ("county_sex/", "age.csv"):
        assert run("verify", place).returncode == 0
    again = run("marginal", "county_sex/", "--axes", "sex", "-o", "again.csv")
    assert again.returncode == 0, again.stderr
    assert (here / "sex.csv").read_bytes() == (here / "again.csv").read_bytes()
    facts = certificate(here / "age.certificate.json")
    assert facts["records"] == {"unit": "person", "max_rows_per_unit": 2}
    assert facts["mechanism"]["parameters"]["epsilon"] == "1/2"


@pytest.mark.parametrize(("second", "norm"), [("", "l2"), ('records.by = ["county"]', "l1")], ids=["same", "other"])
def test_a_plan_of_several_tables_states_their_total(
    run: Callable[..., Any], here: Path, second: str, norm: str
) -> None:
    """That of one person where all tables have the same cells; else that in each, per unit of distance with details."""
    common = SEVERAL.split("[[table]]")[0].replace("epsilon = 1", "kind = 'gaussian'\nrho = 0.25")
    common = common.replace("[records]", "[records]\nby = ['county', 'sex']")
    tables = f"[[table]]\nname = 'a'\noutput.path = 'a/'\n[[table]]\nname = 'b'\noutput.path = 'b/'\n{second}\n"
    (here / "keepsum.toml").write_text(common + tables)
    done = run("plan")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.decode().split())
    if norm == "l2":
        # Two fixed together are one lattice: the delta of their sum is less than the conversion of rho says.
        usual = Loss(smallest_epsilon(Fraction(1, 2), USUAL_DELTA), USUAL_DELTA)
        assert holds(usual.epsilon, USUAL_DELTA, Fraction(1, 2))
        assert not holds(usual.epsilon * Fraction(97, 100), USUAL_DELTA, Fraction(1, 2))
        same = (
            f"2 releases together: at most rho 0.5 (zCDP), so {usual} for one person, with the kept totals of all of "
            "them the same."
        )
        assert TOGETHER.format(same) in words
        return
    each = "For one person they are rho 0.25 (zCDP), rho 0.25 (zCDP), and together may be more than the sum"
    assert TOGETHER.format(each) in words
    per_unit = "2 releases together: rho 0.0625 (zCDP) at l1 distance 1, growing with the square of the l1 distance"
    assert "l1 distance 1" not in words  # a smaller number than that of either table
    words = " ".join(run("plan", "--details").stdout.decode().split())
    assert TOGETHER.format(each) in words
    assert per_unit in words
    assert "Distance is measured in l1" in words


def test_one_of_several_tables(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SEVERAL)
    done = run("release", "--only", "age", "--epsilon", "3", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["person"].startswith("per-person epsilon 3 ")
    assert not (here / "county_sex").exists()
    for arguments, words in [
        (["release", "--epsilon", "3", "--yes"], b"must be used with --only NAME"),
        (["release", "--only", "sex", "--yes"], b"Option --only must be a table of 'keepsum.toml'"),
        (["convergence"], b"Option --only must name one table: county by sex, age."),
    ]:
        failed = run(*arguments)
        assert (failed.returncode, words in failed.stderr) == (2, True), failed.stderr
    assert run("plan", "--only", "age").returncode == 0
    both = run("plan").stdout
    assert both.index(b"Release         county by sex") < both.index(b"Release         age")


def test_several_tables_as_json(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SEVERAL)
    result = json.loads(run("release", "--yes", "--json").stdout)
    assert [table["name"] for table in result["tables"]] == ["county by sex", "age"]
    assert [marginal["axes"] for marginal in result["marginals"]] == [["sex"]]


def test_what_is_written_is_told_if_a_later_table_fails(run: Callable[..., Any], here: Path) -> None:
    """Somebody else writes where the second table goes: the first stays, and that is said."""
    (here / "keepsum.toml").write_text(SEVERAL)
    with claimed(here / "age.certificate.json", BUSY, here / "age.csv"):
        failed = run("release", "--yes")
    message = failed.stderr.decode()
    assert failed.returncode == 3, message
    assert "The release is written: 'county_sex/table.csv'" in message
    assert "What was still to be written failed: " in message
    assert run("verify", "county_sex/").returncode == 0
    assert not (here / "age.csv").exists()
    assert not (here / "sex.csv").exists()
    assert run("release", "--only", "age", "--yes").returncode == 0


SUMS = '[[marginal]]\naxes = ["sex"]\noutput = "sex.csv"\n'


@pytest.mark.parametrize(
    ("output", "sums"),
    [("december/", "december.sex.csv"), ("d.csv", "d.sex.csv"), ("m/d.csv", "m/d.sex.csv")],
)
def test_sums_go_with_a_release_that_is_put_elsewhere(
    run: Callable[..., Any], here: Path, output: str, sums: str
) -> None:
    """Next month's release does not meet the sums of this month's."""
    (here / "keepsum.toml").write_text(SPEC + SUMS)
    (here / "m").mkdir()
    assert run("release", "--yes").returncode == 0
    before = (here / "sex.csv").read_bytes()
    done = run("release", "-o", output, "--yes")
    assert done.returncode == 0, done.stderr
    assert (here / sums).is_file()
    assert (here / "sex.csv").read_bytes() == before
    assert max(map(len, done.stdout.decode().splitlines())) <= 100


def test_sums_are_not_for_standard_output(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SPEC + SUMS)
    done = run("release", "-o", "-", "--certificate", "c.json", "--yes")
    assert done.returncode == refusal(done)
    assert b"if the spec has sums over it ([[marginal]]), got standard output." in done.stderr


NOTHING_WRITTEN = {
    "the same place twice": (SEVERAL.replace("age.csv", "county_sex/"), "Outputs must be different places"),
    "within another": (SEVERAL.replace("age.csv", "county_sex/age.csv"), "Outputs must be different places"),
    "beside another": (SEVERAL.replace('"sex.csv"', '"age.certificate.json"'), "must end in .csv"),
    "the table of another": (SEVERAL.replace('"sex.csv"', '"age.csv"'), "Outputs must be different places"),
    "the data": (SEVERAL.replace('"sex.csv"', '"people.csv"'), "exists"),
    "standard output": (
        SEVERAL.replace('"age.csv"', '"-"\noutput.certificate = "c.json"'),
        "must be a file or a folder if there are several tables",
    ),
    "an unknown axis of a marginal": (SEVERAL.replace('axes = ["sex"]', 'axes = ["age"]'), "An axis must be one of"),
    "a wrong second table": (
        SEVERAL.replace("mechanism.epsilon = 2", "mechanism.epsilon = -2"),
        "keepsum.toml, line 28: Epsilon must be a positive number, got -2.",
    ),
    "a key": (SPEC.replace("epsilon", "epsilom"), "line 10: mechanism must not have a key 'epsilom'"),
    "a count column": (SPEC.replace('"n"', '"m"'), "keepsum.toml, line 4: The count column must be one of the columns"),
    "a margin": (SPEC.replace('["county"]', '["country"]'), "keepsum.toml, line 7: An axis must be one of"),
    "a file": (SPEC.replace("counts.csv", "count.csv"), "keepsum.toml, line 3: File 'count.csv' must be readable"),
    "a bound without columns": (
        SPEC + "[records]\nmax_rows_per_unit = 2\n",
        "keepsum.toml, line 15: records.max_rows_per_unit requires records.by",
    ),
    "no output": (
        SPEC.replace('path = "out/"', ""),
        'line 12: output.path must be given, such as output.path = "released.csv" or output.path = "out/".',
    ),
    "a key file": (SPEC + 'sign = "key.pem"\n', "keepsum.toml, line 14: "),
    "a password": (
        SEVERAL.replace("people.csv", "postgres://u:hunter2@host/db"),
        "must not contain a password",
    ),
}


@mostly_audit("what", NOTHING_WRITTEN)
def test_wrong_specs_write_nothing(what: str, run: Callable[..., Any], here: Path) -> None:
    spec, words = NOTHING_WRITTEN[what]
    (here / "keepsum.toml").write_text(spec)
    (here / "county_sex").mkdir()
    before = sorted(path.name for path in here.iterdir())
    failed = run("release", "--yes")
    message = failed.stderr.decode()
    assert (failed.returncode, failed.stdout) == (refusal(failed), b""), message
    assert words in message
    assert message.count("\n") == 1
    assert "hunter2" not in message
    assert sorted(path.name for path in here.iterdir()) == before


def test_force_never_overwrites_the_data_of_another_table(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SEVERAL.replace('"sex.csv"', '"people.csv"'))
    failed = run("release", "--yes", "--force")
    assert failed.returncode == refusal(failed)
    assert b"Output must not be the confidential table itself" in failed.stderr
    assert (here / "people.csv").read_text() == PEOPLE


def test_a_spec_may_name_standard_output(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SPEC.replace('"out/"', '"-"\ncertificate = "r.certificate.json"'))
    done = run("release", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"county,sex,n\n")
    (here / "r.csv").write_bytes(done.stdout)
    assert run("verify", "r.csv").returncode == 0
    assert run("release", "--yes", "-o", "elsewhere/").returncode == 0  # without the certificate of the spec


def test_no_spec_and_no_table(run: Callable[..., Any], tmp_path: Path) -> None:
    failed = run("release", "--yes", "--epsilon", "1", "-o", "x.csv")
    assert failed.returncode == refusal(failed)
    assert b"A table must be given" in failed.stderr
    failed = run("release", "--spec", "missing.toml", "--yes")
    assert b"File 'missing.toml' must be readable" in failed.stderr
    failed = run("release", "--only", "age", "--yes")
    assert b"Option --only requires --spec" in failed.stderr
