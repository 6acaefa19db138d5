"""``keepsum convergence``, and releases by chains, as a user runs them."""

import json
import re
from itertools import product
from pathlib import Path

import msgspec
import pytest

from support import CYCLE, mostly_audit, refusal

CHILDREN = Path(__file__).parents[2] / "examples" / "children.csv"
EXACT = ["convergence", CHILDREN, "--count", "n", "--keep", "county", "--keep", "education", "--epsilon", "0.25"]
PNG = b"\x89PNG"


@pytest.fixture
def domain(tmp_path):
    """Totals that a chain of mixture proposals draws."""
    labels = {axis: [f"{axis}{k}" for k in range(3)] for axis in "abcd"}
    (tmp_path / "domain.toml").write_text("\n".join(f"{axis} = {json.dumps(own)}" for axis, own in labels.items()))
    keep = [word for margin in CYCLE for word in ("--keep", ",".join(margin))]
    return ["--domain", "domain.toml", *keep, "--epsilon", "1", "--per-unit"]


@pytest.mark.audit
def test_the_curve_and_the_figures(run, domain, tmp_path):
    """No data at all: a plan depends on the cells and the totals only."""
    done = run("convergence", *domain, "--pairs", "500", "--output", "curve.png")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    out = " ".join(done.stdout.decode().split())
    assert "500 pairs with lag" in out
    assert ", 95% limit 0.0" in out
    assert ", extrapolation " in out
    assert "from sampling (95% confidence limit; " in out
    done = run("convergence", *domain, "--pairs", "500", "--json")
    (block,) = json.loads(done.stdout)["blocks"]
    assert block["convergence"]["pairs"] == 500
    done = run("convergence", *domain, "--pairs", "500", "--output", "curve.png")
    assert done.returncode == refusal(done)
    assert b"already exists" in done.stderr
    done = run("convergence", *domain, "--pairs", "500", "--output", "curve.svg", "--force")
    assert done.returncode == 0
    assert b"<svg" in (tmp_path / "curve.svg").read_bytes()


def test_an_exact_plan_has_nothing_to_show(run, tmp_path):
    done = run(*EXACT)
    assert done.returncode == 0
    assert b"none: no block is drawn by a chain" in done.stdout
    assert "One person per-person epsilon 0.25 (l1 distance 4: " in " ".join(done.stdout.decode().split())
    found = json.loads(run(*EXACT, "--json").stdout)
    assert found["person"].startswith("per-person epsilon 0.25 (")
    assert found["per_unit"] == "epsilon 0.0625 per unit of l1 distance"
    assert "guarantee" not in found
    done = run(*EXACT, "--output", "curve.png")
    assert done.returncode == refusal(done)
    assert b"Omit --output" in done.stderr
    assert not (tmp_path / "curve.png").exists()


def test_the_papers_chain(run, tmp_path):
    done = run(*EXACT, "--paper", "0.37", "--pairs", "50", "--lag", "2000", "--output", "paper.png")
    assert done.returncode == 0
    assert b"TV bound below 0.1 after: about" in done.stdout
    assert (tmp_path / "paper.png").read_bytes().startswith(PNG)
    done = run(*EXACT, "--paper", "0.37", "--pairs", "50", "--lag", "100", "--max-steps", "200", "--json")
    found = json.loads(done.stdout)
    assert found["unmet"] > 0
    assert found["steps_to_0.1"] is None


@mostly_audit(
    ("arguments", "words"),
    [
        (["--output", "curve.jpg"], b"Output must end in .png, .svg or .pdf, got 'curve.jpg'."),
        (["--output", "nowhere/curve.png"], b"'nowhere' does not exist"),
        (["--pairs", "3"], b"greater than or equal to 20"),
        (["--lag", "50"], b"Options --lag and --max-steps need --paper"),
        (["--paper", "1.5"], b"strictly between 0 and 1, got 1.5"),
        (["--paper", "0.4", "--lag", "10", "--max-steps", "5"], b"5"),
    ],
)
def test_bad_input_is_one_sentence(run, tmp_path, arguments, words):
    done = run(*EXACT, *arguments)
    assert done.returncode == refusal(done)
    assert words in done.stderr
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.audit
def test_a_release_by_chains(run, domain, tmp_path):
    """Certified on the way, stated in the certificate, verified, and a forged limit found."""
    rows = [f"a{i},b{j},c{k},d{m},{50 + i * j + k * m}" for i, j, k, m in product(range(3), repeat=4)]
    (tmp_path / "counts.csv").write_text("\n".join(["a,b,c,d,count", *rows]) + "\n")
    done = run("release", "counts.csv", *domain, "--output", "out.csv", "--yes")
    assert done.returncode == refusal(done)
    assert b"Sampling adds delta" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    done = run("release", "counts.csv", *domain, "--output", "out.csv", "--yes", "--accept-delta", "0.1")
    assert done.returncode == 0, done.stderr
    out = " ".join(done.stdout.decode().split())
    assert "One person no per-person loss is stated: how far a change of a or b or c or d reaches is not known" in out
    chains = re.search(r"Some noise is drawn by chains, so the guarantee is estimated, not proved: (.*?) L?l2 ", out)[1]
    assert chains.startswith("epsilon 1, plus delta ")
    assert chains.endswith(" per unit of distance.")
    done = run("verify", "out.csv")
    assert done.returncode == 0, done.stdout
    assert b"from sampling" in done.stdout
    path = tmp_path / "out.certificate.json"
    record = json.loads(path.read_bytes())
    record["guarantee"]["blocks"][0]["convergence"]["upper"] = 1e-9
    path.write_bytes(msgspec.json.encode(record))
    done = run("verify", "out.csv")
    assert done.returncode == 1
    assert b"the blocks" in done.stdout
