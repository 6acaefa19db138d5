"""What commands say of one person where nothing can be stated, and against whom a loss does not hold."""

from __future__ import annotations

import json
from itertools import product

import pytest

from support import refusal

WEAK = "for b not against somebody who knows the attributes of others"
NOT_KNOWN = "no per-person loss is stated: how far a change of a or b or c reaches is not known for these totals"
CHAIN = ["--keep", "a,b", "--keep", "b,c"]
GAUSSIAN = ["--mechanism", "gaussian", "--rho", "0.1"]
PER_UNIT = [*GAUSSIAN, "--per-unit"]


@pytest.fixture
def cube(tmp_path):
    """A table of n categories on each of three declared axes, as arguments."""

    def made(n):
        axes = {axis: [f"{axis}{k}" for k in range(n)] for axis in "abc"}
        (tmp_path / "domain.toml").write_text("\n".join(f"{axis} = {json.dumps(own)}" for axis, own in axes.items()))
        rows = [",".join([*cell, str(40 + k)]) for k, cell in enumerate(product(*axes.values()))]
        (tmp_path / "counts.csv").write_text("\n".join(["a,b,c,n", *rows]) + "\n")
        return ["counts.csv", "--count", "n", "--domain", "domain.toml"]

    return made


def words(done) -> str:
    assert (done.returncode, done.stderr) == (0, b"")
    return " ".join(done.stdout.decode().split())


def test_a_distance_that_is_not_known_is_said_and_null(run, cube, tmp_path):
    """All two-way margins of 4 x 4 x 4."""
    declared = [*cube(4), *CHAIN, "--keep", "a,c", *PER_UNIT]
    shown = words(run("plan", *declared))
    assert NOT_KNOWN in shown
    assert "No limit is guaranteed to what the released counts say about one person." in shown
    assert "a: not known for these totals" in shown
    person = json.loads(run("plan", *declared, "--json").stdout)["person"]
    assert (person["distance"], person["reading"]) == (None, NOT_KNOWN)
    assert "typical per unit of distance" in words(run("accuracy", *declared))
    words(run("release", *declared, "--output", "out.csv", "--yes"))
    person = json.loads((tmp_path / "out.certificate.json").read_text())["guarantee"]["person"]
    assert [person[name] for name in ("distance", "epsilon", "delta", "rho")] == [None] * 4
    assert NOT_KNOWN in words(run("show", "out.csv"))
    assert NOT_KNOWN in words(run("verify", "out.csv"))


@pytest.mark.parametrize("command", [["plan"], ["accuracy"], ["release", "--output", "out.csv", "--yes"]])
def test_a_loss_of_one_person_that_is_not_known_is_refused_with_a_way_on(run, cube, command):
    done = run(*command, *cube(4), *CHAIN, "--keep", "a,c", *GAUSSIAN)
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    assert done.stderr.decode() == (
        "keepsum: The loss for a change of a is not known for these totals. Ask for a loss per unit of distance, "
        "with --per-unit, or keep fewer totals, such as one margin less.\n"
    )


def test_whom_a_loss_does_not_hold_against_is_said_wherever_it_is_stated(run, cube):
    declared = [*cube(2), *CHAIN, "--epsilon", "1"]
    shown = words(run("plan", *declared))
    assert "per-person epsilon 1 (l1 distance at most 6: 3 people change cells together), for a change of any" in shown
    assert f"to any value that the kept totals allow; {WEAK} a: to any" in shown
    assert "for a change of b only if others may differ in any way, not against somebody who knows their" in shown
    assert json.loads(run("plan", *declared, "--json").stdout)["person"]["reading"].endswith(f"; {WEAK}")
    assert WEAK in words(run("accuracy", *declared))
    assert json.loads(run("accuracy", *declared, "--json").stdout)["person"].endswith(f"; {WEAK}")
    assert WEAK in words(run("release", *declared, "--output", "out.csv", "--yes"))
    assert WEAK in words(run("show", "out.csv"))
    assert WEAK in words(run("verify", "out.csv"))


def test_a_ledger_says_whom_the_loss_of_one_person_does_not_hold_against(run, cube):
    words(run("ledger", "init", "ledger.db", "--dataset", "people", "--budget", "2"))
    charged = ["--ledger", "ledger.db", "--output", "out.csv", "--yes"]
    words(run("release", *cube(2), *CHAIN, "--epsilon", "1", *charged))
    shown = words(run("ledger", "show", "ledger.db"))
    assert "(l1 distance at most 6); not against somebody who knows the attributes of others a change of c:" in shown
    assert shown.count("not against somebody") == 2  # of the change of b, and of what is spent
