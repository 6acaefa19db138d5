"""``--nonnegative`` and ``keepsum postprocess``."""

import json

import numpy as np
import polars as pl
import pytest

import keepsum as ks
from keepsum.releasing.destination import ABOUT, MARGINS
from support import refusal

DECLARED = ["--categories", "a=0,1,2,3,4", "--categories", "b=0,1,2,3,4"]
RELEASE = [
    "release",
    "counts.csv",
    "--count",
    "n",
    *DECLARED,
    "--keep",
    "a",
    "--keep",
    "b",
    "--epsilon",
    "0.5",
    "--yes",
]


@pytest.fixture
def run(run, tmp_path):
    """Commands in a folder with a table of many zeros."""
    counts = np.zeros((5, 5), dtype=np.int64)
    counts[::2, ::2] = 30
    rows, columns = np.indices(counts.shape)
    frame = {"a": rows.ravel().astype(str), "b": columns.ravel().astype(str), "n": counts.ravel()}
    pl.DataFrame(frame).write_csv(tmp_path / "counts.csv")
    return run


def test_a_release_without_negative_counts(run, tmp_path):
    done = run(*RELEASE, "--nonnegative", "--output", "out/")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"the nearest table in l1 without negative counts" in done.stdout
    assert b"Unbiased     out/table.unbiased.csv" in done.stdout
    assert pl.read_csv(tmp_path / "out" / "table.csv")["n"].min() >= 0
    checked = run("verify", "out/")
    assert checked.returncode == 0
    assert b"is the nearest in l1, worked out again" in checked.stdout


UNCHANGED = (
    "The published table is the nearest table in l1 without negative counts that keeps every total: no count was "
    "negative, so it is the unbiased table itself."
)


@pytest.mark.parametrize(("epsilon", "warnings"), [("0.5", 0), ("20", 1)])
def test_a_release_without_negative_counts_stays_as_it_is(run, tmp_path, epsilon, warnings):
    """What is told is what was done, also where the certificate has another warning, or none."""
    (tmp_path / "large.csv").write_text("a,n\nx,40000\ny,50000\n")
    large = ["large.csv", "--count", "n", "--categories", "a=x,y", "--keep-total", "--epsilon", epsilon, "--yes"]
    assert run("release", *large, "--output", "out/").returncode == 0
    done = run("postprocess", "out/", "--nonnegative")
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"Changed      {UNCHANGED}\n" in done.stdout.decode()
    assert len(ks.read_release(tmp_path / "out").certificate.warnings) == warnings


def test_later_and_elsewhere(run, tmp_path):
    assert run(*RELEASE, "--output", "out/").returncode == 0
    first = (tmp_path / "out" / "table.csv").read_bytes()
    done = run("postprocess", "out/", "--nonnegative", "--nonnegative-norm", "l2", "--output", "other.csv", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    shown = json.loads(done.stdout)
    assert shown["unbiased"] == "other.unbiased.csv"
    assert shown["postprocessing"]["norm"] == "l2"
    assert (tmp_path / "out" / "table.csv").read_bytes() == first
    assert run("verify", "other.csv").returncode == 0
    assert run("postprocess", "out/", "--nonnegative").returncode == 0
    assert (tmp_path / "out" / "table.unbiased.csv").read_bytes() == first
    assert run("verify", "out/").returncode == 0
    again = run("postprocess", "out/", "--nonnegative")
    assert again.returncode == refusal(again)
    assert b"removed already" in again.stderr


@pytest.mark.parametrize("output", ["out/", "r.csv"])
def test_a_report_that_describes_another_table_is_removed_and_named(run, tmp_path, output):
    assert run(*RELEASE, "--output", output, "--report").returncode == 0
    made = run("postprocess", output, "--nonnegative")
    names = [f"{'out/' if output == 'out/' else 'r.'}{name}" for name in ABOUT if name != MARGINS]
    assert made.returncode == 0
    assert not any((tmp_path / name).exists() for name in names)
    assert f"warning: Removed with the release that they described: {', '.join(names)}." in made.stderr.decode()


def test_a_signed_release_is_not_replaced_by_an_unsigned_one(run, tmp_path):
    run("keygen", "key.pem")
    assert run(*RELEASE, "--output", "out/", "--sign", "key.pem").returncode == 0
    for place in ([], ["--output", "out/", "--force"], ["--output", "./out", "--force"]):
        refused = run("postprocess", "out/", "--nonnegative", *place)
        assert refused.returncode == refusal(refused)
        assert b"must be replaced by a signed one" in refused.stderr
    elsewhere = run("postprocess", "out/", "--nonnegative", "--output", "other/")
    assert elsewhere.returncode == 0
    assert b"The new certificate is not signed" in elsewhere.stderr
    assert run("postprocess", "out/", "--nonnegative", "--output", "other/", "--force").returncode == 0
    for signed in ("signed/", "signed.csv"):
        assert run(*RELEASE, "--output", signed, "--sign", "key.pem").returncode == 0
        before = {path: path.read_bytes() for path in tmp_path.rglob("signed*/*") if path.is_file()}
        refused = run("postprocess", "out/", "--nonnegative", "--output", signed, "--force")
        assert refused.returncode == refusal(refused)
        assert b"must be replaced by a signed one" in refused.stderr
        assert {path: path.read_bytes() for path in tmp_path.rglob("signed*/*") if path.is_file()} == before
        assert run("verify", signed, "--key", "key.pub.pem").returncode == 0
    replaced = run("postprocess", "out/", "--nonnegative", "--output", "signed/", "--force", "--sign", "key.pem")
    assert replaced.returncode == 0
    done = run("postprocess", "out/", "--nonnegative", "--sign", "key.pem", "--key", "key.pub.pem")
    assert (done.returncode, done.stderr) == (0, b"")
    assert run("verify", "out/", "--key", "key.pub.pem").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*RELEASE, "--nonnegative-norm", "l2", "--output", "out/"], b"must be given with --nonnegative"),
        ([*RELEASE, "--nonnegative", "--nonnegative-norm", "l3", "--output", "out/"], b"must be 'l1' or 'l2'"),
        (["postprocess", "out/"], b"--nonnegative must be given"),
        (["postprocess", "nowhere/", "--nonnegative"], b"there is none"),
        (["postprocess", "counts.csv", "--nonnegative"], b"The certificate 'counts.certificate.json' must be a file"),
    ],
)
def test_wrong_calls(run, tmp_path, arguments, words):
    failed = run(*arguments)
    assert failed.returncode == refusal(failed)
    assert words in failed.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["counts.csv"]


def test_l2_is_refused_before_anything_is_drawn(run, tmp_path):
    totals = "".join(f'[[total]]\nname = "{k}"\ncells = [{{a = {a}}}, {{b = {b}}}]\n' for k, (a, b) in enumerate(
        [(["0", "1"], ["0"]), (["1", "2"], ["1", "2"]), (["3"], ["0", "2"])]
    ))  # fmt: skip
    (tmp_path / "totals.toml").write_text(totals)
    overlapping = [*RELEASE[:8], "--keep-file", "totals.toml", "--epsilon", "1", "--yes", "--nonnegative"]
    refused = run(*overlapping, "--nonnegative-norm", "l2", "--output", "out/")
    assert refused.returncode == refusal(refused)
    assert b"Use l1" in refused.stderr
    assert run(*overlapping, "--output", "out/").returncode == 0
    assert b"one of the nearest in l1" in run("verify", "out/").stdout


def test_the_confidential_file_is_not_replaced(run, tmp_path):
    (tmp_path / "counts.csv").rename(tmp_path / "r.unbiased.csv")
    refused = run("release", "r.unbiased.csv", *RELEASE[2:], "--nonnegative", "--output", "r.csv", "--force")
    assert refused.returncode == refusal(refused)
    assert b"must not be the confidential table itself" in refused.stderr


def test_what_is_drawn_is_published_even_if_it_cannot_be_projected(tmp_path, monkeypatch, capfd):
    """A second draw would have another law: one that a solver succeeds on."""
    from keepsum.cli.app import run as command

    (tmp_path / "counts.csv").write_text("a,n\n0,1\n1,0\n2,0\n")

    def gives_up(*_):
        raise ks.PlanError("The solver did not find the nearest table within its limits.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("keepsum.releasing.postprocess.nearest", gives_up)
    arguments = ["release", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "0.5", "--axes", "a"]
    assert command([*arguments, "--categories", "a=0,1,2", "--nonnegative", "--yes", "--output", "out/"]) == 1
    assert "written as it was drawn, with negative counts: The solver" in capfd.readouterr().err
    assert ks.verify(tmp_path / "out")
    assert not (tmp_path / "out" / "table.unbiased.csv").exists()
