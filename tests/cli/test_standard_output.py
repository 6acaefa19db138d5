"""``--output -``: nothing but the table is on standard output."""

import hashlib
import io
import os
import sys

import numpy as np
import polars as pl
import pytest

import keepsum as ks
import keepsum_shell
from cli.to_stream import COUNTS, DECLARED, TO_STREAM, forked, names, release
from keepsum.cli import app, releases
from keepsum.releasing.release import Prepared
from support import mostly_audit, refusal

# What is written.


def test_the_table_and_nothing_else(run, folder):
    done = run(*release(*TO_STREAM))
    assert done.returncode == 0
    certificate = ks.Certificate.from_json((folder / "r.certificate.json").read_bytes())
    assert hashlib.sha256(done.stdout).hexdigest() == certificate.table.sha256
    for words in (b"One person ", b"Released     to standard output", b"Certificate  r.certificate.json"):
        assert words in done.stderr
    (folder / "r.csv").write_bytes(done.stdout)
    assert run("verify", "r.csv").returncode == 0
    assert names(folder) == {"r.certificate.json", "r.csv"}


def test_from_standard_input(run, folder):
    done = run(*release(*TO_STREAM, table="-"), stdin=COUNTS.encode())
    assert done.returncode == 0
    assert done.stdout.startswith(b"county,age,n\nA,0-17,")
    asked = run("release", "-", *DECLARED, *TO_STREAM, "--force", stdin=COUNTS.encode())
    assert (asked.returncode, asked.stdout) == (refusal(asked), b"")
    assert b"No terminal to confirm on" in asked.stderr


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (COUNTS, []),
        (COUNTS.replace(",", ";").replace("\n", "\r\n"), []),
        ("\ufeff" + COUNTS, []),
        ("county,fips,sex,n\nA,01,f,5\nA,01,m,6\nB,02,f,7\nB,02,m,8\n", ["--carry", "fips:county"]),
        (COUNTS.replace("age,n", "Ä,n"), ["--keep-order"]),
    ],
)
def test_the_bytes_are_those_of_the_file(run, folder, text, options):
    (folder / "counts.csv").write_bytes(text.encode())
    options = [*options, "--seed", "test"]
    assert run(*release("--output", "out.csv", *options)).returncode == 0
    assert run(*release(*TO_STREAM, *options)).stdout == (folder / "out.csv").read_bytes()


def test_a_parquet_file_comes_out_as_csv(run, folder):
    pl.read_csv(io.StringIO(COUNTS)).write_parquet(folder / "counts.parquet")
    done = run(*release(*TO_STREAM, table="counts.parquet"))
    assert done.stdout.startswith(b"county,age,n\nA,0-17,")
    (folder / "r.csv").write_bytes(done.stdout)
    assert run("verify", "r.csv").returncode == 0


@pytest.mark.parametrize(
    ("certificate", "table", "others"),
    [
        ("r.certificate.json", "r.csv", {"r.invariants.json", "r.unbiased.csv"}),
        ("certificate.json", "table.csv", {"invariants.json", "table.unbiased.csv"}),
        ("other.json", "r.csv", {"other.invariants.json", "other.unbiased.csv"}),
    ],
)
def test_what_belongs_to_it_is_found(run, folder, certificate, table, others):
    weights = np.arange(1, 7).reshape(1, 6)
    np.savetxt(folder / "weights.csv", weights, fmt="%d", delimiter=",")
    options = ["--keep-file", "weights.csv", "--keep-order", "--nonnegative", "--output", "-"]
    done = run(*release(*options, "--certificate", certificate))
    assert done.returncode == 0, done.stderr
    assert names(folder) == {certificate, "weights.csv", *others}
    (folder / table).write_bytes(done.stdout)
    checked = run("verify", table, certificate)
    assert checked.returncode == 0, checked.stdout
    assert b"nearest in l1, worked out again" in checked.stdout
    # A release without them leaves none of those before it.
    (folder / table).unlink()
    again = run(*release("--output", "-", "--certificate", certificate, "--force"))
    assert again.returncode == 0
    assert not names(folder) & others


def test_a_margin(run, folder):
    assert run(*release("--output", "out.csv")).returncode == 0
    done = run("marginal", "out.csv", "--axes", "county", "--output", "-")
    assert (done.returncode, done.stdout) == (0, b"county,n\nA,18\nB,27\n")
    assert b"Marginal  to standard output" in done.stderr
    refused = run("marginal", "out.csv", "--output", "-", "--json")
    assert (refused.returncode, refused.stdout) == (refusal(refused), b"")
    status, _, complaints = forked(["marginal", "out.csv", "--output", "-"], folder, stdout="/dev/full")
    assert status == 3
    assert "may be incomplete: No space left on device. Run the command again: it costs no privacy." in complaints


def test_without_negative_counts_later(run, folder):
    (folder / "counts.csv").write_text("a,n\n" + "".join(f"x{k},{50 * (k == 0)}\n" for k in range(40)))
    assert run("release", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "0.2", "--seed", "test", "--yes",
               "--output", "out/").returncode == 0  # fmt: skip
    before = names(folder / "out")
    later = ["postprocess", "out/", "--nonnegative", "--allow-seeded", "--output", "-", "--certificate"]
    for wrong in ("out/certificate.json", "out/../out/certificate.json"):
        refused = run(*later, wrong, "--force")
        assert (refused.returncode, refused.stdout) == (refusal(refused), b"")
        assert b"The new certificate must not replace that of the release" in refused.stderr
    done = run(*later, "r.certificate.json")
    assert done.returncode == 0
    assert b"Changed      " in done.stderr
    (folder / "r.csv").write_bytes(done.stdout)
    assert pl.read_csv(done.stdout)["n"].min() == 0
    assert run("verify", "r.csv", "--allow-seeded").returncode == 0
    assert names(folder / "out") == before
    status, _, complaints = forked([*later, "s.certificate.json"], folder, stdout="/dev/full")
    assert status == 3
    assert "written: 's.certificate.json'. Run the command again with --force: it costs no privacy" in complaints


# What is refused, before anything is drawn.


@mostly_audit(
    ("options", "sentence"),
    [
        (["--output", "-"], "Option --certificate must be given with --output -, such as"),
        (["--output", "out.csv", "--certificate", "r.json"], "--certificate must be given with --output - only"),
        ([*TO_STREAM, "--json"], "Option --json must not be given with --output -"),
        (
            ["--output", "-", "--certificate", "r.txt"],
            "such as 'released.certificate.json', got 'r.txt'",
        ),
        (["--output", "-", "--certificate", ""], "must be a file such as 'released.certificate.json', got"),
        (["--output", "-", "--certificate", "-"], "must be a file such as 'released.certificate.json', got '-'"),
        (["--output", "-", "--certificate", "no/r.json"], "must be in an existing folder, but 'no' does not exist"),
        (["--output", "-", "--certificate", "there.json"], "Output 'there.json' already exists"),
        (["--output", "-", "--certificate", "folder.json"], "must be a file, but it is a folder"),
        (["--output", "-", "--certificate", "s.json"], "Output 's.unbiased.csv' already exists"),
        (
            ["--output", "-", "--certificate", "s.json", "--force"],
            "'s.unbiased.csv', which has a certificate of",
        ),
    ],
)
def test_bad_options(run, folder, options, sentence):
    (folder / "folder.json").mkdir()
    for name in ("there.json", "s.unbiased.csv", "s.unbiased.certificate.json"):
        (folder / name).write_text("{}")
    before = names(folder)
    done = run(*release(*options))
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    assert sentence in done.stderr.decode()
    assert done.stderr.count(b"keepsum: ") == len(done.stderr.splitlines()) == 1
    assert names(folder) == before


def test_not_over_the_confidential_table(run, folder):
    (folder / "counts.json").write_text(COUNTS)
    done = run(*release("--output", "-", "--certificate", "counts.json", "--force", table="counts.json"))
    assert (done.returncode, done.stdout) == (refusal(done), b"")
    assert b"Output must not be the confidential table itself" in done.stderr
    assert (folder / "counts.json").read_text() == COUNTS


@pytest.mark.parametrize("target", ["counts.csv", "r.certificate.json", "r.unbiased.csv"])
def test_not_redirected_to_a_file_of_its_own(folder, target):
    before = b"" if target != "counts.csv" else COUNTS.encode()

    def start(arguments):
        """As a shell does for ``>>``."""
        os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
        return app.run(arguments)

    status, _, complaints = forked(release(*TO_STREAM, "--force"), folder, start=start)
    assert status == 2
    assert f"Standard output must not be redirected to '{target}'" in complaints
    assert (folder / target).read_bytes() == before


def test_nobody_listens(folder, monkeypatch):
    """A pipe without a reader, as before a mistyped command, or a stream that is closed: nothing is drawn."""

    def draw(*_, **__):
        raise AssertionError

    def start(arguments):
        if stdout == "closed":
            os.close(1)
            sys.stdout = sys.__stdout__ = None
        sys.argv = ["keepsum", *arguments]
        keepsum_shell.main()

    monkeypatch.setattr(Prepared, "draw", draw)
    for stdout in ("closed", "broken"):
        options = {"stdout": "broken"} if stdout == "broken" else {}
        status, _, complaints = forked(release(*TO_STREAM), folder, start=start, **options)
        assert status == 2
        assert complaints.startswith("keepsum: Standard output must be ")
        assert complaints.endswith("but it is closed. Nothing was released.\n")
        assert names(folder) == set()


def test_a_reader_who_leaves_before_the_draw(folder, monkeypatch):
    """The pipe is looked at again once everything is shown and confirmed."""
    monkeypatch.setattr(releases, "check_free", lambda *_: None)  # the first look sees a reader
    status, _, complaints = forked(release(*TO_STREAM), folder, stdout="broken")
    assert status == 2
    assert "One person " in complaints
    assert "Standard output must be read by somebody" in complaints
    assert names(folder) == set()


# A terminal to confirm on.


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 1)])
def test_the_question_is_on_standard_error(commands, folder, answer, status):
    """The library for prompts prints the last character of a question to standard output."""
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = commands.run("release", "counts.csv", *DECLARED, *TO_STREAM, cwd=folder, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == status
    assert b"Release this table? [y/N]: " in done.stderr
    if status:
        assert (done.stdout, names(folder)) == (b"", set())
    else:
        assert done.stdout.startswith(b"county,age,n\nA,0-17,")
        assert names(folder) == {"r.certificate.json"}
