"""``keepsum report`` and ``keepsum release --report``: where files go, what they replace, and what is refused."""

from __future__ import annotations

import csv
import errno
import json
from pathlib import Path

import pytest

import keepsum as ks
from keepsum import _extras
from keepsum.report.page import MOST_CELLS, Names
from keepsum.report.registry import registry_entry
from keepsum.report.review import as_markdown
from keepsum.report.writing import ReportFiles
from support import refusal

CHILDREN = Path(__file__).parents[2] / "examples" / "children.csv"
RELEASE = ["release", CHILDREN, "--count", "n", "--keep", "county", "--epsilon", "1", "--yes", "-o"]


MADE = ("report.html", "registry.json", "reviewer-questions.md")


def refused(done) -> str:
    """One sentence, and nothing else."""
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    assert said.startswith("keepsum: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    return said


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def hash_in(page: Path) -> bool:
    """Whether a page is that of the release beside it."""
    certificate = page.with_name(page.name.removesuffix("report.html") + "certificate.json")
    return json.loads(certificate.read_text())["table"]["sha256"] in page.read_text()


def test_a_page_in_the_folder_of_a_release(run, tmp_path):
    assert run(*RELEASE, "out/").returncode == 0
    done = run("report", "out/")
    said = "Report   out/report.html\nRegistry out/registry.json\nReview   out/reviewer-questions.md\n"
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, said, b"")
    assert hash_in(tmp_path / "out" / "report.html")
    assert "keepsum verify out/" in (tmp_path / "out" / "report.html").read_text()
    assert names(tmp_path / "out") == {"table.csv", "certificate.json", *MADE}
    assert run("verify", "out/").returncode == 0
    certificate = ks.Certificate.from_json((tmp_path / "out" / "certificate.json").read_bytes())
    assert json.loads((tmp_path / "out" / "registry.json").read_bytes()) == registry_entry(certificate)
    assert (tmp_path / "out" / "reviewer-questions.md").read_text() == as_markdown(certificate)


def test_files_that_it_does_not_know_are_left_alone(inside, tmp_path):
    """Such as the answers that an earlier version wrote under another name."""
    assert inside(*RELEASE, "out/").returncode == 0
    stray = tmp_path / "out" / "other-questions.md"
    stray.write_text("not ours")
    for command in (["verify", "out/"], ["report", "out/"], ["report", "out/", "--force"], ["show", "out/"]):
        done = inside(*command)
        assert (done.returncode, done.stderr) == (0, b"")
    assert stray.read_text() == "not ours"
    assert names(tmp_path / "out") == {"table.csv", "certificate.json", "other-questions.md", *MADE}


def test_a_page_beside_a_table_with_its_margins(inside, tmp_path):
    assert inside(*RELEASE, "r.csv").returncode == 0
    done = inside("report", "r.csv", "r.certificate.json", "--margins", "m.csv", "--level", "0.9", "--json")
    assert json.loads(done.stdout) == {
        "report": "r.report.html",
        "margins": "m.csv",
        "registry": "r.registry.json",
        "review": "r.reviewer-questions.md",
    }
    assert hash_in(tmp_path / "r.report.html")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    margins = ks.read_release(tmp_path / "r.csv").accuracy(0.9).margins.tolist()
    assert [int(row["margin_90"]) for row in rows] == margins
    done = inside("report", "r.certificate.json", "-o", "page.htm")
    assert done.stdout.decode().split()[1::2] == ["page.htm", "page.registry.json", "page.reviewer-questions.md"]
    assert "keepsum verify r.csv" in (tmp_path / "page.htm").read_text()


def test_what_is_wrong_is_told_in_one_sentence(inside, tmp_path):
    assert inside(*RELEASE, "out/").returncode == 0
    assert inside(*RELEASE, "r.csv").returncode == 0
    (tmp_path / "there.html").write_text("mine")
    for options, words in (
        (["none/"], "there is none"),
        (["out/", "-o", "there.html"], "already exists. Choose another name, or replace it with --force."),
        (["out/", "-o", "report.pdf"], "must be a file such as 'report.html'"),
        (["out/", "-o", "-"], "must be a file such as 'report.html'"),
        (["out/", "-o", "nowhere/report.html"], "'nowhere' does not exist"),
        (["out/", "--margins", "m.parquet"], "must be a file such as 'margins.csv'"),
        (["out/", "--margins", "out/table.csv", "--force"], "must not replace a file of a release"),
        (["out/", "--margins", "r.csv", "--force"], "must not replace a file of a release"),
        (["out/", "--level", "1.5"], "Level must lie between 0 and 1"),
    ):
        assert words in refused(inside("report", *options))
    assert (tmp_path / "there.html").read_text() == "mine"
    assert names(tmp_path / "out") == {"table.csv", "certificate.json"}
    assert inside("report", "out/", "-o", "there.html", "--force").returncode == 0


def test_only_a_release_that_verifies_has_a_report(inside, tmp_path):
    assert inside(*RELEASE, "r.csv", "--seed", "1").returncode == 0
    assert "fails: randomness" in refused(inside("report", "r.csv"))
    assert inside("report", "r.csv", "--allow-seeded").returncode == 0
    text = (tmp_path / "r.csv").read_text()
    (tmp_path / "r.csv").write_text(text.replace("Beta,High,", "Beta,High,1"))
    said = refused(inside("report", "r.csv", "-o", "other.html", "--allow-seeded"))
    assert "fails: hash (does not match the certificate)" in said
    assert not (tmp_path / "other.html").exists()


# -- with the release, and after it ----------------------------------------------------------------


def test_the_report_of_a_signed_release_says_who_signed_it(run, tmp_path):
    """What is written with the release is what its files give afterwards."""
    assert run("keygen", "key.pem").returncode == 0
    assert run(*RELEASE, "out/", "--sign", "key.pem", "--report").returncode == 0
    folder = tmp_path / "out"
    key = json.loads((folder / "certificate.json").read_bytes())["signature"]["public_key"]
    written = {name: (folder / name).read_text() for name in MADE}
    assert key in written["report.html"]
    assert f"Signed by {key}" in written["registry.json"]
    assert "--key" in written["report.html"]
    assert run("report", "out/", "--force").returncode == 0
    assert {name: (folder / name).read_text() for name in MADE} == written
    assert run("verify", "out/", "--key", "key.pub.pem").returncode == 0


def test_a_release_with_its_report(inside, tmp_path):
    done = inside(*RELEASE, "out/", "--report")
    assert done.returncode == 0
    assert done.stdout.decode().endswith(
        "Certificate  out/certificate.json\nReport       out/report.html\nRegistry     out/registry.json\n"
        "Review       out/reviewer-questions.md\n"
    )
    assert hash_in(tmp_path / "out" / "report.html")
    as_json = json.loads(inside(*RELEASE, "r.csv", "--report", "--json").stdout)
    assert as_json["reports"] == [["r.report.html", "r.registry.json", "r.reviewer-questions.md"]]
    own = (tmp_path / "r.report.html").read_text()
    assert inside("report", "r.csv", "-o", "again.html").returncode == 0
    assert (tmp_path / "again.html").read_text() == own


@pytest.mark.parametrize("output", ["out/", "r.csv"])
def test_a_new_release_leaves_no_old_report_behind(inside, tmp_path, output):
    page = tmp_path / ("out/report.html" if output == "out/" else "r.report.html")
    margins = page.with_name(page.name.replace("report.html", "margins.csv"))
    assert inside(*RELEASE, output, "--report").returncode == 0
    assert inside("report", output, "--force", "--margins", margins).returncode == 0
    assert b"already exists" in inside(*RELEASE, output).stderr
    assert page.exists()
    assert inside(*RELEASE, output, "--force").returncode == 0
    assert not page.exists()
    assert not margins.exists()
    assert inside(*RELEASE, output, "--force", "--report").returncode == 0
    assert hash_in(page)


def test_a_report_without_its_release_is_not_taken_for_that_of_another(inside, tmp_path):
    assert inside(*RELEASE, "r.csv", "--report").returncode == 0
    (tmp_path / "r.csv").unlink()
    (tmp_path / "r.certificate.json").unlink()
    assert "'r.report.html' already exists" in refused(inside(*RELEASE, "r.csv"))
    assert inside(*RELEASE, "r.csv", "--force").returncode == 0
    assert names(tmp_path) == {"r.csv", "r.certificate.json"}


def test_a_release_replaces_no_table_that_only_has_the_name_of_one_of_its_files(inside, tmp_path):
    """Neither another release nor the confidential table, which would be deleted."""
    assert inside(*RELEASE, "r.margins.csv").returncode == 0
    assert "which has a certificate of its own" in refused(inside(*RELEASE, "r.csv", "--force"))
    (tmp_path / "c.margins.csv").write_bytes(CHILDREN.read_bytes())
    options = ["--count", "n", "--keep", "county", "--epsilon", "0.25", "--yes", "-o", "c.csv", "--force"]
    assert "must not be the confidential table" in refused(inside("release", "c.margins.csv", *options))
    assert (tmp_path / "c.margins.csv").read_bytes() == CHILDREN.read_bytes()


def test_a_report_cannot_go_with_standard_output(inside, tmp_path):
    said = refused(inside(*RELEASE, "-", "--certificate", "r.certificate.json", "--report"))
    assert "Option --report must not be given with --output -" in said
    assert names(tmp_path) == set()


def test_nothing_is_released_if_a_report_could_not_be_made(inside, tmp_path, monkeypatch):
    monkeypatch.setitem(_extras.PACKAGES, "report", ("not_there",))
    said = refused(inside(*RELEASE, "out/", "--report"))
    assert "A report needs not_there, which is not installed. Run in a clone of Keepsum: pip" in said
    assert names(tmp_path) == set()


def test_a_release_whose_report_failed_stands(inside, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("keepsum.report.writing.write_file", full)
        done = inside(*RELEASE, "out/", "--report")
    assert done.returncode == 3
    said = done.stderr.decode()
    assert "The release is written: 'out/table.csv'" in said
    assert "The report failed: No space left on device. keepsum report makes it from the release" in said
    assert inside("report", "out/").returncode == 0


def test_a_release_that_is_replaced_meanwhile_gets_no_report_of_the_old_one(run, inside, tmp_path, monkeypatch):
    from keepsum.sources.atomic import write_file

    assert inside(*RELEASE, "r.csv").returncode == 0

    def replaced_first(path: Path, data: bytes, force: bool = False) -> None:
        if not list(tmp_path.glob("r.*-*")):  # before the first of the files
            assert run(*RELEASE, "r.csv", "--force").returncode == 0
        write_file(path, data, force)

    monkeypatch.setattr("keepsum.report.writing.write_file", replaced_first)
    assert "was replaced by another while its report was made" in refused(inside("report", "r.csv"))
    assert names(tmp_path) == {"r.csv", "r.certificate.json"}


# -- files ------------------------------------------------------------------------------------------


def test_a_page_without_room_for_all_cells_has_the_margins_beside_it(tmp_path):
    files = ReportFiles.of(tmp_path / "r.csv")
    assert files.margins_of(MOST_CELLS) is None
    assert files.margins_of(MOST_CELLS + 1) == tmp_path / "r.margins.csv"
    (tmp_path / "r.margins.csv").write_text("mine")
    files.check([], force=False, cells=MOST_CELLS)
    with pytest.raises(ks.InputError, match=r"r\.margins\.csv' already exists"):
        files.check([], force=False, cells=MOST_CELLS + 1)
    assert ReportFiles.of(tmp_path).margins_of(MOST_CELLS + 1) == tmp_path / "margins.csv"


@pytest.mark.usefixtures("inside")
def test_python_writes_it_too(tmp_path, released):
    path = released.report(tmp_path / "report.html")
    assert path.read_text() == released.to_html()
    with pytest.raises(ks.InputError, match="already exists"):
        released.report(path)
    assert released.report(path, level=0.5, force=True) == path
    assert "50% margins of error" in path.read_text()


def test_what_a_publisher_filled_in_stays(inside, tmp_path):
    """A report that is made again replaces the page, not the work of the publisher."""
    assert inside(*RELEASE, "out/", "--report").returncode == 0
    file = tmp_path / "out" / "registry.json"
    document = json.loads(file.read_text())
    document["entry"]["url_slug"] = "children-2026"
    document["entry"]["deployment"]["basic"]["name"] = "Children"
    file.write_text(json.dumps(document))
    assert inside("report", "out/", "--force").returncode == 0
    again = json.loads(file.read_text())
    assert again["entry"]["url_slug"] == "children-2026"
    assert again["entry"]["deployment"]["basic"]["name"] == "Children"
    assert "url_slug" not in again["fill_in"]["required"]
    file.write_text("not an entry")
    assert inside("report", "out/", "--force").returncode == 0
    assert json.loads(file.read_text())["entry"]["url_slug"] is None


@pytest.mark.parametrize(
    ("page", "entry"),
    [
        ("a/report.html", "registry.json"),
        ("a/my_report.html", "my_report.registry.json"),
        ("a/r.report.html", "r.registry.json"),
        ("a/page.htm", "page.registry.json"),
    ],
)
def test_names_beside_a_page(page, entry):
    assert ReportFiles(Path(page), None, Names()).registry == Path("a") / entry


def test_a_report_has_a_title_and_a_publisher(inside, tmp_path):
    """From options, from a spec, and for a release that is made already."""
    (tmp_path / "counts.csv").write_text("county,n\nA,3\nB,4\nC,5\n")
    release = ["release", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1", "-o", "r.csv", "--yes"]
    done = inside(*release, "--report", "--title", "People <1>", "--publisher", "Office & Co")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "r.report.html").read_text(encoding="utf-8")
    assert page.count("People &lt;1&gt;</") == 2
    assert "Published by Office &amp; Co. " in page
    done = inside("report", "r.csv", "--title", "Counties", "--force")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "r.report.html").read_text(encoding="utf-8")
    assert "<h1>Counties</h1>" in page
    assert "Published by" not in page
    spec = 'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n[keep]\ntotal = true\n[mechanism]\nepsilon = 1\n'
    (tmp_path / "keepsum.toml").write_text(f'{spec}[output]\npath = "s.csv"\ntitle = "T"\npublisher = "P"\n')
    assert inside("release", "--yes", "--report").returncode == 0
    assert "Published by P. " in (tmp_path / "s.report.html").read_text(encoding="utf-8")
