"""``keepsum accuracy`` as a user runs it: before any budget is spent, and without looking at a count."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

import keepsum as ks
from support import mostly_audit, refusal

LABELS = [(county, sex) for county in "ABCDE" for sex in "fm"]
COUNTS = "county,sex,n\n" + "".join(f"{county},{sex},{100 + 7 * k}\n" for k, (county, sex) in enumerate(LABELS))
OTHER = "county,sex,n\n" + "".join(
    f"{county},{sex},{0 if k % 3 else 10**9}\n" for k, (county, sex) in enumerate(LABELS)
)
DOMAIN = 'county = ["A", "B", "C", "D", "E"]\nsex = ["f", "m"]\n'
SPEC = """version = 1
[source]
data = "counts.csv"
count = "n"

[axes]
domain = "domain.toml"

[keep]
margins = ["sex"]

[mechanism]
epsilon = 0.5
"""
BASE = ["--domain", "domain.toml", "--keep", "sex"]
KEEP = ks.Invariants.margins(ks.Domain({"county": list("ABCDE"), "sex": ["f", "m"]}), [["sex"]])


@pytest.fixture(autouse=True)
def files(tmp_path):
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "domain.toml").write_text(DOMAIN)


def words(done) -> str:
    assert (done.returncode, done.stderr) == (0, b"")
    return " ".join(done.stdout.decode().split())


def failure(done) -> str:
    assert done.returncode == refusal(done)
    assert done.stdout == b""
    message = done.stderr.decode()
    assert message.startswith("keepsum: ")
    assert message.count("\n") == 1
    return message.strip().removeprefix("keepsum: ")


def test_margins_totals_and_losses(run):
    shown = words(run("accuracy", "counts.csv", "--count", "n", *BASE, "--epsilon", "0.25"))
    plan = ks.plan(keep=KEEP, mechanism=ks.Laplace("0.25"))
    county = plan.noise.interval({"county": "A"})[1]
    assert (
        f"Each count {plan.accuracy()} Totals by county: typical ±{county}, the sum of 2 counts by sex: exact" in shown
    )
    assert "grand total: exact" in shown
    assert "One person per-person epsilon 0.25 (l1 distance 4: two people exchange values)" in shown
    assert f"> 0.25 ±{plan.accuracy().typical} epsilon 0.0625 0.5 ±" in shown
    assert "little protection" not in shown
    assert "Target" not in shown


def test_nothing_depends_on_a_count(run, tmp_path):
    """The same words for other counts, and for none."""
    by_counts = run("accuracy", "counts.csv", "--count", "n", *BASE, "--target-moe", "7").stdout
    (tmp_path / "counts.csv").write_text(OTHER)
    assert run("accuracy", "counts.csv", "--count", "n", *BASE, "--target-moe", "7").stdout == by_counts
    assert run("accuracy", *BASE, "--target-moe", "7").stdout == by_counts


def test_the_level(run):
    found = json.loads(run("accuracy", *BASE, "--epsilon", "0.25", "--level", "0.8", "--json").stdout)
    assert found["level"] == 0.8
    assert found["margin_of_error"]["typical"] == ks.plan(keep=KEEP, mechanism=ks.Laplace("0.25")).accuracy(0.8).typical


TARGETS = {
    "l1": ([], ks.Laplace(1), "--epsilon {}"),
    "l2": (["--norm", "l2"], ks.Laplace(1, "l2"), "--epsilon {} --norm l2"),
    "per unit": (["--per-unit"], ks.Laplace.per_unit(1), "--epsilon {} --per-unit"),
    "rho per unit": (
        ["--mechanism", "gaussian", "--per-unit"],
        ks.Gaussian.per_unit(rho=1),
        "--mechanism gaussian --rho {} --per-unit",
    ),
    "gaussian": (
        ["--mechanism", "gaussian", "--delta", "1e-6"],
        ks.Gaussian(1, "1e-6"),
        "--mechanism gaussian --epsilon {} --delta 1e-6",
    ),
    "rho": (["--mechanism", "gaussian"], ks.Gaussian(rho=1), "--mechanism gaussian --rho {}"),
    "rho for an attribute": (
        ["--mechanism", "gaussian", "--attributes", "county"],
        ks.Gaussian(rho=1, attributes=["county"]),
        "--mechanism gaussian --rho {} --attributes county",
    ),
}


@mostly_audit("name", TARGETS)
def test_what_it_finds_can_be_passed_on(run, name):
    """The answer is that of Python; with the options that it names, a plan has that margin."""
    options, mechanism, passed = TARGETS[name]
    done = run("accuracy", *BASE, *options, "--target-moe", "9", "--json")
    found = json.loads(done.stdout)
    chosen = ks.mechanism_for(keep=KEEP, mechanism=mechanism, margin=9)
    value = found["target"][found["parameter"]]
    assert str(float(getattr(chosen, found["parameter"]))) == str(float(value))
    assert found["target"]["options"] == passed.format(value)
    assert found["margin_of_error"]["typical"] <= 9 < found["target"]["one_step_before"]["margin"]
    made = json.loads(run("plan", *BASE, *found["target"]["options"].split(), "--json").stdout)
    assert made["margin_of_error"]["typical"] == found["margin_of_error"]["typical"]
    assert made["mechanism"] == found["mechanism"]


@pytest.mark.audit
def test_a_target_in_words(run):
    shown = words(run("accuracy", *BASE, "--target-moe", "9"))
    value = float(ks.mechanism_for(keep=KEEP, mechanism=ks.Laplace(1), margin=9).epsilon)
    assert shown.startswith(
        f"Target a typical 95% margin of error of at most ±9 per cell Epsilon {value} per person: the smallest of "
        f"three digits that reaches it; at {round(value - 0.001, 3)} the margin is ±10 To use it pass --epsilon "
        f"{value} to keepsum"
    )
    assert "simulated" not in shown
    simulated = words(run("accuracy", *BASE, "--keep", "county", "--target-moe", "9", "--target", "largest"))
    assert "Target a largest 95% margin" in simulated
    assert "Margins are simulated here, so a step more or less may do as well." in simulated
    little = words(run("accuracy", *BASE, "--target-moe", "1", "--level", "0.9999"))
    assert "Warning The per-person loss is epsilon" in little
    assert "this gives little protection" in little
    wide = words(run("accuracy", *BASE, "--target-moe", "1000000"))
    least = json.loads(run("accuracy", *BASE, "--target-moe", "1000000", "--json").stdout)["target"]["epsilon"]
    margin = int(ks.plan(keep=KEEP, mechanism=ks.Laplace(least)).accuracy().typical)
    assert (
        f"Epsilon {least} per person: the smallest of three digits at which noise can be drawn; its margin is "
        f"±{margin:,} To use it"
    ) in wide


def test_a_spec(run, tmp_path):
    """Its epsilon is what is compared; a target replaces it, and says where to write it."""
    (tmp_path / "keepsum.toml").write_text(SPEC)
    assert "0.5 ±" in words(run("accuracy"))
    shown = words(run("accuracy", "--target-moe", "9"))
    value = float(ks.mechanism_for(keep=KEEP, mechanism=ks.Laplace(1), margin=9).epsilon)
    assert f"set epsilon = {value} in [mechanism] of keepsum.toml, or pass --epsilon {value}" in shown
    shown = words(run("accuracy", "counts.csv", "--count", "n", *BASE, "--target-moe", "9", "--no-spec"))
    assert f"pass --epsilon {value} to keepsum plan" in shown  # the options alone, as other commands take them
    (tmp_path / "keepsum.toml").write_text(SPEC.replace("epsilon = 0.5", "epsilon = -1"))
    assert failure(run("accuracy")).startswith("keepsum.toml, line 13: Epsilon must be")


PAIR = 'kind = "gaussian"\nepsilon = 1\ndelta = 1e-6'
OVER_SPECS = {
    "another mechanism": ("epsilon = 1", ["--mechanism", "gaussian", "--delta", "1e-6"]),
    "Laplace noise": (PAIR, ["--mechanism", "laplace"]),
    "another norm": ('epsilon = 1\nnorm = "l2"', ["--norm", "l1"]),
    "an attribute": ("epsilon = 1", ["--attributes", "county"]),
    "per unit": ("epsilon = 1\nper_unit = true", []),
    "per unit over a person's": (PAIR, ["--per-unit", "--delta", "1e-7"]),
}


@pytest.mark.parametrize("name", OVER_SPECS)
def test_what_it_finds_over_a_spec_can_be_passed_on(run, tmp_path, name):
    """The options that it names make the noise that it shows, with the same spec."""
    spec, options = OVER_SPECS[name]
    (tmp_path / "keepsum.toml").write_text(SPEC.replace("epsilon = 0.5", spec))
    found = json.loads(run("accuracy", *options, "--target-moe", "9", "--json").stdout)
    passed = found["target"]["options"]
    shown = words(run("accuracy", *options, "--target-moe", "9"))
    assert f"pass {passed}" in shown
    assert ("set epsilon" in shown) == (not options)  # what is written alone would be another noise
    assert json.loads(run("plan", *passed.split(), "--json").stdout)["mechanism"] == found["mechanism"]


def test_several_tables(run, tmp_path):
    tables = '\n[[table]]\nname = "one"\n\n[[table]]\nname = "two"\nmechanism.epsilon = 1\n'
    (tmp_path / "keepsum.toml").write_text(SPEC + tables)
    found = json.loads(run("accuracy", "--json").stdout)
    assert [(one["name"], one["mechanism"]) for one in found] == [
        ("one", "Laplace.per_unit(epsilon=0.125, norm='l1')"),
        ("two", "Laplace.per_unit(epsilon=0.25, norm='l1')"),
    ]
    assert "Release two" in words(run("accuracy"))
    problem = failure(run("accuracy", "--plot", "curve.png"))
    assert problem == "Options --margins and --plot must be used with --only NAME, one of the tables (one, two)."
    assert not (tmp_path / "curve.png").exists()
    assert "Plot curve.png" in words(run("accuracy", "--only", "two", "--plot", "curve.png"))


def test_the_margin_of_every_cell(run, tmp_path):
    shown = words(run("accuracy", *BASE, "--epsilon", "0.25", "--margins", "margins.csv", "--plot", "curve.svg"))
    assert shown.endswith("Margins margins.csv Plot curve.svg")
    with (tmp_path / "margins.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["county"], row["sex"]) for row in rows] == LABELS
    assert [int(row["margin"]) for row in rows] == ks.plan(
        keep=KEEP, mechanism=ks.Laplace("0.25")
    ).accuracy().margins.tolist()
    assert b"<svg" in (tmp_path / "curve.svg").read_bytes()
    problem = failure(run("accuracy", *BASE, "--epsilon", "0.25", "--margins", "margins.csv"))
    assert "'margins.csv' already exists" in problem
    words(run("accuracy", *BASE, "--epsilon", "0.5", "--margins", "margins.csv", "--force"))
    domain = DOMAIN.replace("sex", "margin")
    (tmp_path / "domain.toml").write_text(domain)
    words(run("accuracy", "--domain", "domain.toml", "--keep", "margin", "--epsilon", "1", "--margins", "m.csv"))
    assert (tmp_path / "m.csv").read_text().startswith("county,margin,margin_\n")


def test_no_file_replaces_the_data(run, tmp_path):
    """Not even with --force."""
    options = ["accuracy", "counts.csv", "--count", "n", *BASE, "--epsilon", "1", "--force"]
    assert "must not be the confidential table itself" in failure(run(*options, "--margins", "counts.csv"))
    assert (tmp_path / "counts.csv").read_text() == COUNTS


@mostly_audit(
    ("arguments", "sentence"),
    [
        ([], "Option --epsilon must be given, or --target-moe 10 to find it for that margin of error."),
        (["--target-moe", "0"], "Option --target-moe must be a whole number from 1 to 1,000,000,000, got '0'."),
        (["--target-moe", "-3"], "Option --target-moe must be a whole number from 1 to 1,000,000,000, got '-3'."),
        (["--target-moe", "ten"], "Option --target-moe must be a whole number from 1 to 1,000,000,000, got 'ten'."),
        (["--target-moe", "2.5"], "Option --target-moe must be a whole number from 1 to 1,000,000,000, got '2.5'."),
        (["--target-moe", "9", "--level", "2"], "Option --level must lie between 0 and 1, such as 0.95, got '2'."),
        (["--target-moe", "9" * 20], "Option --target-moe must be a whole number from 1 to 1,000,000,000, got '999"),
        (["--target-moe", "9", "--level", "0.0"], "Option --level must lie between 0 and 1, such as 0.95, got '0.0'."),
        (["--target-moe", "9", "--level", "x"], "Option --level must lie between 0 and 1, such as 0.95, got 'x'."),
        (
            ["--target-moe", "9", "--epsilon", "1"],
            "Option --target-moe must not be combined with --epsilon, which it finds. Leave out --epsilon.",
        ),
        (
            ["--target-moe", "9", "--mechanism", "gaussian", "--sigma", "1"],
            "Option --target-moe must not be combined with --sigma, which it finds. Leave out --sigma.",
        ),
        (["--target-moe", "9", "--delta", "1e-6"], "Option --delta requires --mechanism gaussian."),
        (["--target-moe", "9", "--target", "smallest"], "Option --target must be typical or largest, got 'smallest'."),
        (["--target", "largest", "--epsilon", "1"], "Option --target requires --target-moe, such as --target-moe 10."),
        (["--epsilon", "-1"], "Epsilon must be a positive number, got '-1'."),
        (["--epsilon", "1", "--plot", "curve.jpg"], "Option --plot must end in .png, .svg or .pdf, got 'curve.jpg'."),
        (
            ["--epsilon", "1", "--plot", "nowhere/curve.png"],
            "Output must be in an existing folder, but 'nowhere' does not exist.",
        ),
        (["--epsilon", "1", "--margins", "m.xlsx"], "The file name of a table must end in .csv, .parquet or .arrow"),
        (
            ["--target-moe", "1", "--mechanism", "gaussian", "--delta", "1e-6", "--calibration", "paper"],
            "No epsilon gives a margin of error of at most 1: the smallest is ",
        ),
    ],
)
def test_bad_input_is_one_sentence(run, tmp_path, arguments, sentence):
    before = sorted(tmp_path.iterdir())
    assert failure(run("accuracy", *BASE, *arguments)).startswith(sentence)
    assert sorted(tmp_path.iterdir()) == before


def test_mostly_pinned_tables(run, tmp_path):
    (tmp_path / "domain.toml").write_text(
        'state = ["A", "B", "C", "D"]\n\n[county]\nA = ["p"]\nB = ["q"]\nC = ["r"]\nD = ["s", "t"]\n'
    )
    nested = ["--domain", "domain.toml", "--within", "county:state", "--keep", "state", "--target-moe", "9"]
    problem = failure(run("accuracy", *nested))
    assert "typical margin of error is 0 at any epsilon" in problem
    assert problem.endswith("Ask for the largest margin, with --target largest.")
    assert "(±0 to ±9)" in words(run("accuracy", *nested, "--target", "largest"))


@pytest.mark.audit
def test_without_matplotlib(run, tmp_path):
    """One sentence, and no other file is written either."""
    (tmp_path / "blocked" / "matplotlib").mkdir(parents=True)
    (tmp_path / "blocked" / "matplotlib" / "__init__.py").write_text("raise ModuleNotFoundError('no matplotlib')\n")
    path = ":".join([str(tmp_path / "blocked"), str(Path(ks.__file__).parents[1]), *filter(None, sys.path)])
    options = ["accuracy", *BASE, "--epsilon", "1", "--plot", "curve.png", "--margins", "m.csv"]
    done = run(*options, env={"PYTHONPATH": path, "PATH": ""})
    assert failure(done).startswith("A plot needs matplotlib, which is not installed. Run in a clone of")
    assert not (tmp_path / "m.csv").exists()
