"""Errors that once misled: each says what is really wrong, in the words of whoever reads it."""

import contextlib
import json
import os
import pty
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from command import KEEPSUM
from keepsum._saying import Text, arg, the
from keepsum.planning.selection import general, l1, splitting
from keepsum.releasing.explain import compare, exact_instead
from keepsum.specs.faces import SHELL, in_shell, sections_in
from support import mostly_audit, refusal

CHILDREN = Path(__file__).parents[2] / "examples" / "children.csv"
PLAN = ["plan", CHILDREN, "--count", "n", "--keep", "county", "--epsilon", "0.25"]
RELEASE = ["release", *PLAN[1:]]
AXES = ks.Domain({axis: [f"{axis}{k}" for k in range(3)] for axis in "abcd"})
BY_CHAINS = (
    ks.Invariants.margins(AXES, [[axis] for axis in AXES.axes]),
    ks.Laplace.per_unit(epsilon=1),
)  # person at distance 4; if axes are not eliminated


def sentence(done) -> str:
    """The one line of a command that failed."""
    assert done.returncode == refusal(done), done.stdout
    (line,) = done.stderr.decode().splitlines()
    return line.removeprefix("keepsum: ")


# -- the order in which things are said --------------------------------------------------------------


def test_the_missing_file_comes_before_the_missing_terminal(run):
    assert "'none.csv' must be readable" in sentence(run("release", "none.csv", *RELEASE[2:], "-o", "out.csv"))


def test_the_misspelt_axis_comes_before_the_missing_terminal(run):
    assert "got 'conty'" in sentence(run(*RELEASE[:5], "conty", *RELEASE[6:], "-o", "out.csv"))


def test_without_a_terminal_nothing_is_planned(run, tmp_path):
    assert sentence(run(*RELEASE, "-o", "out.csv")) == "No terminal to confirm on; pass --yes to release."
    assert not list(tmp_path.iterdir())


def test_an_error_comes_without_the_warnings_before_it(run):
    """The categories are taken from the data: that is told of a plan that is shown, not of one that is not."""
    assert "got 'conty'" in sentence(run(*PLAN[:5], "conty", *PLAN[6:]))
    done = run(*PLAN)
    assert done.returncode == 0
    assert done.stderr.decode().startswith("warning: The categories of 'county', 'education' were taken from the data")


# -- parameters ------------------------------------------------------------------------------------


def test_an_epsilon_out_of_range_is_told_with_the_range(run):
    done = run(*RELEASE[:-1], "1000", "-o", "out.csv", "-y")
    assert sentence(done).startswith(
        "Epsilon per unit of distance must be from 0.0001 to 50 for l1 Laplace noise, got 250."
    )


def test_without_count_the_columns_are_named(run):
    words = "The column of counts must be named: one of the columns 'county', 'education', 'n'."
    assert sentence(run("plan", CHILDREN, "--keep", "county", "--epsilon", "1")) == f"{words} Pass --count COLUMN."


def test_a_column_called_count_needs_no_option(run, tmp_path):
    (tmp_path / "in.csv").write_text("county,count\nA,5\nB,6\n")
    assert run("plan", "in.csv", "--keep-total", "--epsilon", "1").returncode == 0


def test_a_row_of_data_is_not_named_as_columns(run, tmp_path):
    (tmp_path / "in.csv").write_text("A,8675309\nB,5\n")
    assert "8675309" not in sentence(run("plan", "in.csv", "--keep-total", "--epsilon", "1"))


# -- outputs ---------------------------------------------------------------------------------------


def test_a_folder_where_nothing_can_be_made_is_not_a_busy_one(run):
    done = run(*RELEASE, "-o", "/proc/out.csv", "-y")
    assert done.returncode == refusal(done)
    assert b"'/proc/out.csv' must be writable, but" in done.stderr
    assert b"another process" not in done.stderr


def test_a_read_only_folder_is_refused_and_stays(run, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(0o555)
    words = "Folder 'out' must be writable, but it is read-only. Choose another name."
    assert sentence(run(*RELEASE, "-o", "out/", "-y")) == words
    assert stat.S_IMODE(folder.stat().st_mode) == 0o555
    assert not list(folder.iterdir())


def test_a_folder_of_somebody_else_is_refused_with_the_way_on(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    table = ks.Table.from_array([[5, 1], [2, 9]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    release = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    with pytest.raises(ks.InputError, match=r"must be writable, but it is not\. Choose another folder\."):
        release.save(tmp_path / "out.csv")


@pytest.mark.parametrize("mode", [0o700, 0o770])
def test_a_folder_that_is_replaced_keeps_its_mode(run, tmp_path, mode):
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(mode)
    assert run(*RELEASE, "-o", "out/", "-y").returncode == 0
    assert run(*RELEASE, "-o", "out/", "-y", "--force").returncode == 0
    assert stat.S_IMODE(folder.stat().st_mode) == mode


# -- verify ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nodir/", "nodir"])
def test_a_folder_that_is_not_there(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ks.InputError, match=r"folder.*there is none"):
        ks.verify(name)
    assert "folder" in sentence(run("verify", name))
    (tmp_path / "nodir").write_text("a file")
    if name.endswith("/"):
        with pytest.raises(ks.InputError, match="must be a folder, but it is a file"):
            ks.verify(name)


def test_verify_shows_both_totals(run, tmp_path):
    assert run(*RELEASE, "-o", "out.csv", "-y").returncode == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    head, count = lines[1].rsplit(",", 1)
    (tmp_path / "out.csv").write_text("\n".join([lines[0], f"{head},{int(count) + 7}", *lines[2:]]) + "\n")
    done = run("verify", "out.csv")
    assert done.returncode == 1
    assert b"1 differs: total of county=Alpha (20 in the certificate, 27 in the table)" in done.stdout


@mostly_audit(
    ("path", "value", "words"),
    [
        (("table", "sha256"), "AB", "field 'table.sha256' must be 64 hexadecimal digits in small letters"),
        (("released",), "yesterday", "field 'released' must be a time such as 2026-01-31T12:00:00Z"),
        (("released",), "2026-13-31T12:00:00Z", "field 'released' must be a time that exists"),
        (("guarantee", "person", "epsilon"), "much", "field 'guarantee.person.epsilon' must be a decimal number"),
        (("mechanism", "name"), "X", "field 'mechanism.name' must be a name in small letters"),
        (("mechanism", "parameters"), {"epsilon": "0,25"}, "field 'mechanism.parameters[...]' must be "),
    ],
)
def test_a_field_of_a_certificate_is_named_and_no_pattern_is_shown(run, tmp_path, path, value, words):
    assert run(*RELEASE, "-o", "out.csv", "-y").returncode == 0
    file = tmp_path / "out.certificate.json"
    document = json.loads(file.read_text())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(document))
    said = run("verify", "out.csv").stdout.decode()
    assert words in " ".join(said.split())
    assert "regex" not in said
    assert "^" not in said


# -- each in its own terms -------------------------------------------------------------------------


def test_python_names_calls_and_the_shell_names_options(monkeypatch):
    monkeypatch.setattr(splitting, "choose_families", lambda *_: None)
    plan = ks.plan(keep=BY_CHAINS[0], mechanism=BY_CHAINS[1])
    python = plan.explain(details=True)
    assert "--" not in python
    assert "plan.certify()" in python
    sections = sections_in(
        SHELL, [("Guarantee", [plan.guarantee.sampling_words]), ("Other noise", compare(plan._record))]
    )
    shell = " ".join(line for _, lines in sections for line in lines)
    assert "ks." not in shell
    assert "plan.certify" not in shell
    assert "keepsum convergence measures it" in shell
    assert "l2 Laplace with --epsilon 4 --norm l2 " in shell
    assert "Gaussian with --mechanism gaussian --epsilon 4 --delta 1e-6 " in shell


def test_labels_are_not_translated():
    sections = [
        ("Bounded cells", ["county=with force=True: from 0 to 3"]),
        ("Warning", [Text(f"replace it {arg.force(True):with}.")]),
    ]
    bounded, warned = sections_in(SHELL, sections)
    assert bounded == ("Bounded cells", ["county=with force=True: from 0 to 3"])
    assert warned == ("Warning", ["replace it with --force."])


def test_what_is_no_call_is_named():
    assert in_shell(Text(f"{the.noise('ks.Laplace(epsilon)')}")) == "Laplace noise"
    assert in_shell("ks.Laplace(1)") == "ks.Laplace(1)"  # the name of something


@pytest.mark.audit
def test_what_is_exact_comes_before_what_is_to_be_accepted(monkeypatch):
    monkeypatch.setattr("keepsum.convergence.observe.WEIGHTS", 100)  # the sentence is about any figure
    monkeypatch.setattr(splitting, "choose_families", lambda *_: None)
    keep, mechanism = BY_CHAINS
    plan = ks.plan(keep=keep, mechanism=mechanism).certify(pairs=500)
    table = ks.Table(keep.domain, keep.coefficients.toarray().sum(axis=0) * 0 + 5, "n")
    with pytest.raises(ks.PlanError) as error:
        plan.release(table)
    words = error.value.text
    assert 0 < words.index("ks.Laplace(") < words.index("accept_delta=")
    shell = in_shell(words)
    assert 0 < shell.index("--norm l2") < shell.index("--accept-delta ")


@pytest.fixture
def no_sampler(monkeypatch) -> ks.Table:
    """A table under whose three margins l1 Laplace noise has no sampler, if axes are not eliminated."""
    monkeypatch.setattr(splitting, "choose_families", lambda *_: None)
    monkeypatch.setattr(general, "COORDINATES", 50)
    monkeypatch.setattr(l1, "BUDGET", 10**5)
    domain = ks.Domain({"county": list(range(10)), "age": list(range(5)), "sex": ["f", "m"]})
    return ks.Table(domain, np.ones(100, dtype=int))


def test_a_table_that_no_sampler_covers_names_what_is_exact(no_sampler, monkeypatch):
    """Before its factor, gigabytes for a large table, is laid out only to find that it is too large."""
    monkeypatch.setattr(general, "slabs_of", lambda system: pytest.fail("it was laid out"))
    with pytest.raises(ks.NoSamplerError) as refused:
        ks.release(no_sampler, keep=["county", "age", "sex"], mechanism=ks.Laplace.per_unit(epsilon="0.2"))
    words = str(refused.value)
    assert words.startswith("No sampler for 100 regions under 17 overlapping totals")
    assert "the block is too large for a chain. Exact at the same per-person epsilon: l2 Laplace with ks.Lap" in words


def test_where_no_noise_is_exact_two_margins_are(no_sampler):
    def plan(*keep):
        return ks.plan(keep=no_sampler.keep(*keep), mechanism=ks.Laplace.per_unit(epsilon="0.2"))

    words = (
        "No other noise is exact under these totals. Two margins usually are: keep two of these, or join some of them."
    )
    assert exact_instead(plan("county", "age", "sex")._record, []) == [words]
    for keep in (["county", "age"], [["county", "sex"], "age"]):
        assert plan(*keep).guarantee.sampling == "exact"


def test_named_totals_are_named(run, tmp_path):
    (tmp_path / "totals.toml").write_text(
        '[[total]]\nname = "coast"\nweight = 2\ncells = [{county = ["Alpha", "Beta"]}]\n'
    )
    done = run("plan", CHILDREN, "--count", "n", "--keep-file", "totals.toml", "--epsilon", "1")
    assert b"weighted total 'coast'" in done.stdout
    (tmp_path / "totals.toml").write_text(
        "".join(
            f'[[total]]\nname = "area {k}"\ncells = [{{county = "{c}"}}]\n' for k, c in enumerate(["Alpha", "Beta"])
        )
    )
    options = ["--count", "n", "--keep-file", "totals.toml", "--epsilon", "1", "-o", "out.csv", "-y"]
    done = run("release", CHILDREN, *options)
    assert b"2 named totals: area 0, area 1" in done.stdout
    assert b"2 named totals: area 0, area 1" in run("show", "out.csv").stdout


# -- help, and where things are --------------------------------------------------------------------


@pytest.mark.audit
@pytest.mark.parametrize(
    "command", ["plan", "release", "verify", "convergence", "keygen", "show", "marginal", "report", None]
)
def test_help_shows_no_types_of_python(run, tmp_path, command):
    arguments = ["--help"] if command is None else [command, "--help"]
    assert b"<" not in run(*arguments).stdout
    parent, child = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    seen = b""
    with subprocess.Popen([KEEPSUM, *arguments], stdout=child, cwd=tmp_path, env=environment):
        os.close(child)
        with contextlib.suppress(OSError):  # the end of a terminal
            while chunk := os.read(parent, 2**16):
                seen += chunk
    os.close(parent)
    assert b"Usage" in seen
    assert not any(kind in seen for kind in (b"bool", b"<str", b"path>", b"list["))


def test_convergence_says_where_the_curve_is_and_what_the_paper_shows(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,b,n\n" + "".join(f"{a},{b},1\n" for a in "xyz" for b in "pqr"))
    options = ["in.csv", "--count", "n", "--keep", "a", "--keep", "b", "--epsilon", "1", "--paper", "0.4"]
    done = run("convergence", *options, "--pairs", "20", "--lag", "200", "--output", "curve.svg")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.decode().split())
    assert "the paper's chain with pre-jumps of parameter 0.4 20 pairs with lag 200:" in text
    assert "MeetingTimes(" not in text
    assert "Curve curve.svg" in text
