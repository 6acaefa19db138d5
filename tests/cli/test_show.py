"""``keepsum show`` and ``keepsum marginal``: what was published, in words and as sums."""

import csv
import json
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.cli import app
from support import mostly_audit, refusal

CHILDREN = Path(__file__).parents[2] / "examples" / "children.csv"
RELEASE = ["release", CHILDREN, "--count", "n", "--keep", "county", "--epsilon", "1", "-y", "-o"]


@pytest.mark.parametrize(("output", "named"), [("out/", "out/"), ("out/", "out/certificate.json"), ("o.csv", "o.csv")])
def test_a_certificate_in_plain_words(run, output, named):
    assert run(*RELEASE, output).returncode == 0
    done = run("show", named)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    titles = [line.split("  ")[0] for line in lines if not line.startswith(" ")]
    assert titles[:6] == ["Released", "Table", "Kept exactly", "One person", "Accuracy", "In plain words"]
    assert "per unit of" not in done.stdout.decode()
    more = run("show", named, "--details").stdout.decode()
    for title in ("Noise", "Blocks", "Guarantee", "Software", "SHA-256"):
        assert f"\n{title} " in more
        assert title not in titles
    assert "epsilon 0.25 per unit of l1 distance" in more
    assert titles[-2:] == ["Not verified", "Warning"]
    text = " ".join(done.stdout.decode().split())
    for words in (
        "county 4, education 4: 16 cells, counts in 'n'",
        "4 totals of county 4 totals, published exactly; whatever follows from them is not protected",
        "per-person epsilon 1 (l1 distance 4: two people exchange values)",
        "Only the certificate was read. Run keepsum verify to check it and its table.",
        "The loss is not tracked in a ledger.",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("output", "named"),
    [("out/", "out/certificate.json"), ("o.csv", "o.certificate.json"), ("o.parquet", "o.certificate.json")],
)
def test_what_is_shown_by_its_certificate_is_verified_by_it(run, output, named):
    assert run(*RELEASE, output).returncode == 0
    done = run("verify", named)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"ok      kept totals" in done.stdout


def test_a_certificate_without_its_table(run, tmp_path):
    assert run(*RELEASE, "o.csv").returncode == 0
    (tmp_path / "o.csv").unlink()
    done = run("verify", "o.certificate.json")
    assert done.returncode == refusal(done)
    assert b"The table 'o.csv' must be a file, and there is none." in done.stderr


def test_records_are_not_called_persons(run):
    records = Path(__file__).parents[1] / "certificates" / "records_alone" / "certificate.json"
    shown = run("show", records).stdout.decode()
    assert "\nOne record  " in shown
    assert "One person" not in shown


def test_the_facts_as_json(run, tmp_path):
    assert run(*RELEASE, "out.csv").returncode == 0
    facts = json.loads(run("show", "out.csv", "--json").stdout)
    assert facts == json.loads((tmp_path / "out.certificate.json").read_text())


@mostly_audit(
    ("name", "data", "words"),
    [
        ("none.json", None, "must be a file, and there is none"),
        ("none", None, "The release 'none' must be a file or the folder of a release, and there is none"),
        ("a.json", b"\xff\xfe", "must follow the schema"),
        ("a.json", b"{}", "must follow the schema"),
        ("a.json", b'{"schema": "keepsum.certificate/9"}', "update Keepsum"),
        ("a.json", b'[{"name": "somebody"}]', "must follow the schema"),
        ("a.csv", b"a,n\nx,8675309\n", "must be a file, and there is none"),
    ],
)
def test_other_files_get_one_sentence(run, tmp_path, name, data, words):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    done = run("show", name)
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    (line,) = done.stderr.decode().splitlines()
    assert words in line
    assert "8675309" not in line


def test_every_sample_certificate_can_be_shown(capsys):
    for folder in sorted((Path(__file__).parents[1] / "certificates").iterdir()):
        for certificate in folder.glob("*certificate.json") if folder.is_dir() else ():
            assert app.run(["show", str(certificate)]) == 0, (certificate, capsys.readouterr().err)


def test_a_margin_of_a_saved_release(run, tmp_path):
    assert run(*RELEASE, "out/").returncode == 0
    done = run("marginal", "out/", "--axes", "education", "-o", "education.csv")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Each total is a sum of 4 released counts" in done.stdout.decode()
    expected = ks.read_release(tmp_path / "out").marginal(["education"]).table.to_dict()
    rows = [line.split(",") for line in (tmp_path / "education.csv").read_text().splitlines()]
    assert rows[0] == ["education", "n"]
    assert [[label, str(n)] for label, n in zip(*expected.values(), strict=True)] == rows[1:]
    kept = json.loads(run("marginal", "out/", "--axes", "county", "-o", "county.csv", "--json").stdout)
    assert (kept["kept"], kept["axes"], kept["cells"]) == (True, ["county"], [4] * 4)
    assert run("marginal", "out/", "-o", "total.csv").returncode == 0
    assert (tmp_path / "total.csv").read_text() == "total,n\ngrand total,135\n"


def test_a_margin_with_intervals(run, tmp_path):
    """The file has two columns more, and JSON the margins with how they are known; by default the file is as ever."""
    assert run(*RELEASE, "out/").returncode == 0
    margin = ks.read_release(tmp_path / "out").marginal(["education"])
    summed = ["marginal", "out/", "--axes", "education"]
    done = run(*summed, "--intervals", "--level", "0.9", "-o", "education.csv")
    assert (done.returncode, done.stderr) == (0, b"")
    assert " a typical 90% margin of error of " in " ".join(done.stdout.decode().split())
    rows = [line.split(",") for line in (tmp_path / "education.csv").read_text().splitlines()]
    assert rows[0] == ["education", "n", "n_low", "n_high"]
    assert [[int(low), int(high)] for *_, low, high in rows[1:]] == margin.intervals(0.9).tolist()
    answer = json.loads(run(*summed, "--level", ".9", "-o", "plain.csv", "--json").stdout)
    found = margin.accuracy(0.9)
    assert answer["margins"] == found.margins.tolist()
    assert [answer[key] for key in ("level", "simultaneous", "basis", "draws", "standard_error")] == [
        0.9, False, found.basis, found.draws, found.error]  # fmt: skip
    assert (tmp_path / "plain.csv").read_text().splitlines()[0] == "education,n"
    both = run(*summed, "--intervals", "--simultaneous", "-o", "-")
    assert both.stdout.decode().splitlines()[0] == "education,n,n_low,n_high"
    lengths = [int(row[3]) - int(row[2]) for row in (line.split(",") for line in both.stdout.decode().splitlines()[1:])]
    assert lengths == (2 * margin.accuracy(simultaneous=True).margins).tolist()
    assert "for all totals at once" in " ".join(both.stderr.decode().split())
    kept = run("marginal", "out/", "--axes", "county", "--intervals", "-o", "county.csv")
    assert "kept exactly" in " ".join(kept.stdout.decode().split())
    assert all(n == low == high for _, n, low, high in csv.reader((tmp_path / "county.csv").open().readlines()[1:]))


def test_a_margin_is_refused_in_one_sentence(run, tmp_path):
    assert run(*RELEASE, "out.csv").returncode == 0
    (tmp_path / "there.csv").write_text("mine")
    for options, words in (
        (["out.csv"], "--output must be given"),
        (["out.csv", "--axes", "town", "-o", "a.csv"], "got 'town'"),
        (["out.csv", "-o", "there.csv"], "already exists"),
        (["out.csv", "-o", "a.doc"], "must end in .csv"),
        (
            ["out.csv", "-o", "a.csv", "--level", "95"],
            "Option --level must lie between 0 and 1, such as 0.95, got '95'",
        ),
        (["none.csv", "-o", "a.csv"], "there is none"),
    ):
        done = run("marginal", *options)
        assert done.returncode == refusal(done)
        assert words in done.stderr.decode()
    text = (tmp_path / "out.csv").read_text()
    (tmp_path / "out.csv").write_text(text.replace("Beta,High,", "Beta,High,1"))
    done = run("marginal", "out.csv", "-o", "a.csv")
    assert done.returncode == refusal(done)
    assert b"fails: hash (does not match the certificate), kept totals" in done.stderr
    assert not (tmp_path / "a.csv").exists()


def test_a_margin_replaces_no_file_of_a_release(run, tmp_path):
    """Whether it is in a folder, beside its certificate, or named with one elsewhere; nor does a file of margins."""
    assert run(*RELEASE, "out/", "--nonnegative").returncode == 0
    assert run(*RELEASE, "r.csv", "--nonnegative").returncode == 0
    assert run(*RELEASE, "s.csv").returncode == 0
    (tmp_path / "s.certificate.json").rename(tmp_path / "other.json")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for release, output in (
        (["out/"], "out/table.csv"),
        (["out/"], "out/table.parquet"),
        (["out/"], "out/table.unbiased.csv"),
        (["r.csv"], "r.unbiased.csv"),
        (["r.csv"], "out/table.csv"),
        (["s.csv", "other.json"], "s.csv"),
    ):
        done = run("marginal", *release, "-o", output, "--force")
        assert (done.returncode, done.stdout) == (refusal(done), b"")
        assert f"Output '{output}' must not replace a file of a release." in done.stderr.decode()
    options = ["--count", "n", "--keep", "county", "--epsilon", "1", "--force", "--margins", "out/table.csv"]
    done = run("accuracy", *RELEASE[1:2], *options)
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    assert b"Output 'out/table.csv' must not replace a file of a release." in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert run("marginal", "out/", "-o", "out.sums.csv").returncode == 0
