"""The installed command, as a user runs it: what it prints, what it writes, and its status."""

import json
import os
import pty
import resource
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import keepsum as ks
from command import KEEPSUM, installed
from support import HANG, mostly_audit, refusal

CHILDREN = Path(__file__).parents[2] / "examples" / "children.csv"


RELEASE = ["release", CHILDREN, "--count", "n", "--keep", "county", "--keep", "education", "--epsilon", "1"]
DECLARED = ["--categories", "county=Alpha,Beta,Gamma,Delta", "--categories", "education=Low,Medium,High,Very High"]


def test_the_whole_job(tmp_path):
    """The children's table: plan, keys, release, verify, and a change that is found; by the installed program."""
    run = partial(installed, cwd=tmp_path)
    plan = run("plan", *RELEASE[1:], *DECLARED)
    assert plan.returncode == 0
    assert b"4 totals of county, 4 totals of education" in plan.stdout
    assert run("keygen", "key.pem").returncode == 0
    done = run(*RELEASE, *DECLARED, "--output", "released.csv", "--sign", "key.pem", "--yes")
    assert (done.returncode, done.stderr) == (0, b"")
    out = done.stdout.decode()
    for words in (
        "Kept exactly",
        "per-person epsilon 1 (l1 distance 4: two people exchange values)",
        "margin of error ±6",
        "Bounded cells   none",
        "The loss is not tracked in a ledger.",
    ):
        assert words in out
    table = pl.read_csv(tmp_path / "released.csv")
    before = pl.read_csv(CHILDREN)
    for axis in ("county", "education"):
        assert (
            table.group_by(axis).agg(pl.sum("n")).sort(axis).equals(before.group_by(axis).agg(pl.sum("n")).sort(axis))
        )
    assert table.drop("n").equals(before.drop("n"))
    good = run("verify", "released.csv", "released.certificate.json", "--key", "key.pub.pem")
    assert (good.returncode, good.stderr) == (0, b"")
    text = (tmp_path / "released.csv").read_text()
    (tmp_path / "released.csv").write_text(text.replace("Beta,High,", "Beta,High,1"))
    bad = run("verify", "released.csv")
    assert bad.returncode == 1
    assert b"2 differ: total of county=Beta (55 in the certificate, " in bad.stdout
    assert b"; total of education=High (30 in the certificate, " in bad.stdout


@pytest.mark.audit
def test_a_forked_command_does_what_the_installed_one_does(run, tmp_path):
    """Status, output and errors of a release, of bad input and of a pipe; the other tests run forks."""
    seeded = [*RELEASE, "--seed", "7", "--yes", "--force", "--output", "out.csv"]
    piped = ["plan", "-", "--count", "n", "--keep-total", "--epsilon", "1"]
    for arguments, stdin in (
        (seeded, None),
        (["release", "none.csv", *RELEASE[2:]], None),
        (piped, b"a,n\nx,5\ny,6\n"),
    ):
        seen = []
        for way in (run, partial(installed, cwd=tmp_path)):
            done = way(*arguments, stdin=stdin)
            files = {file.name: file.read_bytes() for file in tmp_path.glob("*.csv")}
            seen.append((done.returncode, done.stdout, done.stderr, files))
        assert seen[0] == seen[1]


def test_forked_commands_draw_their_own_noise(run, tmp_path):
    for name in ("a.csv", "b.csv"):
        assert run(*RELEASE, "-o", name, "-y").returncode == 0
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "b.csv").read_bytes()


def test_counties_within_states(run, tmp_path):
    """A nested axis, in a folder, with the loss of one person given."""
    generator = np.random.default_rng(0)
    rows = [f"{s};{s}-{c};{generator.integers(10**6)}" for s in "NMQ" for c in range(40)]
    (tmp_path / "counties.csv").write_text("\ufeffstate;county;pop\r\n" + "\r\n".join(rows) + "\r\n", newline="")
    options = ["--count", "pop", "--within", "county:state", "--keep", "state", "--epsilon", "1"]
    done = run("release", "counties.csv", *options, "--output", "out/", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["guarantee"]["per_unit"] == "epsilon 0.25 per unit of l1 distance"
    assert result["margin_of_error"]["typical_margin"] == 12
    data = (tmp_path / "out" / "table.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfstate;county;pop\r\n")
    assert data.count(b"\r\n") == 121
    assert run("verify", "out").returncode == 0


def test_parquet_with_subsets_and_a_matrix(run, tmp_path):
    frame = pl.DataFrame(
        {"g": [k // 4 for k in range(16)], "h": [f"h{k % 4}" for k in range(16)], "n": range(100, 116)}
    )
    frame.write_parquet(tmp_path / "in.parquet")
    (tmp_path / "totals.toml").write_text('[[total]]\nname = "low"\ncells = [{g = [0, 1]}, {h = "h0", g = 2}]\n')
    (tmp_path / "matrix.csv").write_text(",".join("1" if k % 2 else "0" for k in range(16)) + "\n")
    options = ["--count", "n", "--epsilon", "1/3", "--keep-file", "totals.toml", "--keep-file", "matrix.csv"]
    options += ["--axes", "g,h", "--keep-order"]
    done = run("release", "in.parquet", *options, "--keep-total", "-o", "out.parquet", "-y")
    assert done.returncode == 0, done.stderr
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.schema == frame.schema
    odd = (pl.col("h").is_in(["h1", "h3"]), "n")
    low = ((pl.col("g") <= 1) | ((pl.col("g") == 2) & (pl.col("h") == "h0")), "n")
    for mask, column in (odd, low):
        assert table.filter(mask)[column].sum() == frame.filter(mask)[column].sum()
    assert table["n"].sum() == frame["n"].sum()
    checked = run("verify", "out.parquet", "--json")
    assert checked.returncode == 0, checked.stdout
    assert json.loads(checked.stdout)["passed"]
    assert (tmp_path / "out.invariants.json").exists()


def test_standard_input_and_a_seed(run, tmp_path):
    options = ["--count", "n", "--keep-total", "--epsilon", "1", "--seed", "7", "--yes"]
    for name, threads in (("a.csv", []), ("b.csv", ["--threads", "1"])):
        assert run("release", "-", *options, *threads, "-o", name, stdin=CHILDREN.read_bytes()).returncode == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert run("verify", "a.csv").returncode == 1
    assert run("verify", "a.csv", "--allow-seeded").returncode == 0


def test_two_way_margins_a_declared_domain_and_dropped_columns(run, tmp_path):
    (tmp_path / "in.csv").write_text("sex,county,age,note,n\nf,A,0,x,5\nm,A,0,y,6\nf,B,1,z,7\n")
    (tmp_path / "c.toml").write_text('sex = ["f", "m"]\ncounty = ["A", "B"]\nage = ["0", "1"]\n')
    options = ["--count", "n", "--domain", "c.toml", "--keep", "county,sex", "--epsilon", "1", "-y"]
    options += ["--axes", "sex,county,age"]
    refused = run("release", "in.csv", *options, "-o", "out.csv")
    assert refused.returncode == refusal(refused)
    assert b"got 'note' as well" in refused.stderr
    assert run("release", "in.csv", *options, "--drop", "note", "-o", "out.csv").returncode == 0
    table = pl.read_csv(tmp_path / "out.csv")
    assert table.columns == ["sex", "county", "age", "n"]
    assert table.height == 8
    assert "x" not in (tmp_path / "out.csv").read_text().split("\n", 1)[1]


def test_a_plan_needs_no_data(run, tmp_path):
    (tmp_path / "c.toml").write_text('sex = ["f", "m"]\ncounty = ["A", "B", "C"]\n')
    done = run("plan", "--domain", "c.toml", "--keep", "sex", "--epsilon", "12", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["cells"] == 6
    assert plan["kept"]["totals"] == ["total of sex=f", "total of sex=m"]
    assert plan["warnings"] == ["The per-person loss is epsilon 12, above 10: this gives little protection."]


def test_pinned_and_bounded_cells(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,b,n\nx,p,2\nx,q,1\ny,p,900\ny,q,800\nz,p,4\n")
    (tmp_path / "c.toml").write_text('a = ["x", "y"]\nb = ["p", "q"]\n')
    within = ["--count", "n", "--within", "b:a", "--keep", "a", "--epsilon", "0.25", "-y"]
    refused = run("release", "in.csv", *within, "-o", "out.csv")
    assert refused.returncode == refusal(refused)
    assert b"'a=z, b=p'" in refused.stderr
    assert not (tmp_path / "out.csv").exists()
    done = run("release", "in.csv", *within, "-o", "out.csv", "--accept-pinned", "a=z, b=p")
    assert done.returncode == 0
    assert b"a=x, b=p: from 0 to 3" in done.stdout
    assert b"z,p,4" in (tmp_path / "out.csv").read_bytes()
    everything = run("release", "in.csv", *within, "--keep", "b", "-o", "all.csv", "--accept-pinned", "all")
    assert everything.returncode == refusal(everything)
    assert b"determine every cell" in everything.stderr


def test_published_figures_are_checked_before_anything_is_spent(run, tmp_path):
    (tmp_path / "published.csv").write_text("county,n\nAlpha,20\nBeta,55\n")
    assert run(*RELEASE, "-o", "a.csv", "-y", "--totals", "published.csv").returncode == 0
    (tmp_path / "published.csv").write_text("county,n\nAlpha,20\nBeta,56\n")
    wrong = run(*RELEASE, "-o", "b.csv", "-y", "--totals", "published.csv")
    assert wrong.returncode == 1
    assert b"1 differs: total of county=Beta" in wrong.stderr
    assert b"55" not in wrong.stderr
    assert not (tmp_path / "b.csv").exists()


def test_an_orphan_certificate_is_reported_and_replaced(run, tmp_path):
    (tmp_path / "out.certificate.json").write_text("{}")
    done = run(*RELEASE, "-o", "out.csv", "-y")
    assert done.returncode == 0
    assert b"certificate without a table" in done.stderr
    assert run("verify", "out.csv").returncode == 0


def test_it_asks(run, tmp_path):
    """Without --yes and without a terminal there is nobody to ask; with one, no means no."""
    assert run(*RELEASE, "-o", "out.csv", stdin=b"y\n").returncode == 2
    for answer, status in ((b"n\n", 1), (b"y\n", 0)):
        parent, child = pty.openpty()
        os.write(parent, answer)
        command = [KEEPSUM, *map(str, RELEASE), "-o", "out.csv"]
        done = subprocess.run(command, cwd=tmp_path, stdin=child, capture_output=True, timeout=HANG, check=False)
        os.close(parent)
        os.close(child)
        assert done.returncode == status, done.stderr
        assert b"Release this table?" in done.stderr
        assert (tmp_path / "out.csv").exists() == (status == 0)


GOOD = "county,education,n\nA,low,5\nA,high,6\nB,low,7\nB,high,8\n"
HUGE = """a = [{0}]\nb = [{0}]\nc = [{0}]\n""".format(", ".join(f'"{k}"' for k in range(700)))
OPTIONS = ["--count", "n", "--keep", "county", "--epsilon", "0.25", "--output", "out.csv", "--yes"]
BAD = {
    "missing column": (GOOD, ["--count", "m"], "one of the columns 'county', 'education', 'n', got 'm'"),
    "text in counts": (GOOD.replace("6", "six"), [], "line 3, column 'n'"),
    "fractions": (GOOD.replace("6", "6.5"), [], "line 3, column 'n'"),
    "negatives": (GOOD.replace("6", "-6"), [], "negative"),
    "thousands": (GOOD.replace("6", '"6,000"'), [], "without thousands separators"),
    "decimal commas": (GOOD.replace(",", ";").replace("6", "6,5"), [], "line 3, column 'n'"),
    "missing count": (GOOD.replace("6", ""), [], "is missing"),
    "duplicate cells": (GOOD + "A,low,9\n", [], "line 2 and line 6 are the same cell"),
    "unknown axis": (GOOD, ["--keep", "town"], "'county', 'education', got 'town'"),
    "unknown axis in --axes": (GOOD, ["--axes", "county,town"], "got 'town'"),
    "an axis left out": (
        GOOD,
        ["--axes", "county"],
        "got 'education' as well. Include more columns with --axes, carry them along with --carry, or leave them out "
        "with --drop",
    ),
    "bad epsilon": (GOOD, ["--epsilon", "much"], "Epsilon must be a positive number"),
    "epsilon with a comma": (GOOD, ["--epsilon", "0,5"], "got '0,5'. Write a decimal point, as in 0.5, and no comma."),
    "NaN epsilon": (GOOD, ["--epsilon", "nan"], "Epsilon must be a positive number"),
    "endless epsilon": (GOOD, ["--epsilon", "1e99999999"], "Epsilon must be a positive number"),
    "no output": (GOOD, ["--output", ""], "must be the name of a file"),
    "the table itself as output": (GOOD, ["--output", "in.csv", "--force"], "must not be the confidential table"),
    "a name too long": (GOOD, ["--output", "a" * 300 + ".csv"], "File name too long"),
    "a header that is data": (GOOD.split("\n", 1)[1], ["--drop", "x"], "may be data"),
    "two columns alike in data": ("A,77,77\nB,1,2\n", [], "got one twice"),
    "old newlines": (GOOD.replace("\n", "\r"), [], "end in a line feed"),
    "a second measure": (
        "county,last,n\nA,3,4\nB,5,6\nC,9,8\n",
        [],
        "'last' must be declared, because it contains numbers",
    ),
    "zero epsilon": (GOOD, ["--epsilon", "0"], "Epsilon must be a positive number"),
    "infinite epsilon": (GOOD, ["--epsilon", "inf"], "Epsilon must be a positive number"),
    "bad norm": (GOOD, ["--norm", "l3"], "Norm must be 'l1' or 'l2'"),
    "bad mechanism": (GOOD, ["--mechanism", "uniform"], "laplace or gaussian"),
    "Gaussian noise without delta": (GOOD, ["--mechanism", "gaussian"], "got epsilon. Add --delta, for example 1e-6."),
    "delta for Laplace": (GOOD, ["--delta", "1e-6"], "--delta requires --mechanism gaussian"),
    "missing parent folder": (GOOD, ["--output", "no/where.csv"], "'no' does not exist"),
    "the confidential table as output": (GOOD, ["--output", "in.csv"], "must not be the confidential table itself"),
    "compressed output": (
        GOOD,
        ["--output", "out.csv.gz"],
        "hash in a certificate is of the plain file, got 'out.csv.gz'",
    ),
    "odd output": (GOOD, ["--output", "out.doc"], "must end in .csv"),
    "nothing kept": (GOOD, None, "At least one total must be kept"),
    "kept file that is none": (GOOD, ["--keep-file", "none.toml"], "must be readable"),
    "kept cells that are none": (GOOD, ["--keep-file", "totals.toml"], "got 'C'"),
    "kept matrix of another size": (GOOD, ["--keep-file", "matrix.csv", "--keep-order"], "must have 4 numbers"),
    "kept matrix over rows in no public order": (GOOD, ["--keep-file", "matrix.csv"], "must be used with --keep-order"),
    "totals that are not kept": (GOOD, ["--totals", "published.csv"], "must belong to a kept total, but does not"),
    "empty file": ("", [], "must start with a header, but it is empty"),
    "header only": ("county,education,n\n", [], "must be declared if the data has no rows"),
    "not UTF-8": (GOOD.replace("high", "höh").encode("latin-1"), [], "must be UTF-8"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), [], "pass --encoding utf-16-le, else"),
    "no such encoding": (GOOD.encode(), ["--encoding", "klingon"], "Option --encoding must be the name of an encoding"),
    "UTF-8 after all": (GOOD.replace("high", "höh").encode(), ["--encoding", "latin-1"], "out --encoding, or save"),
    "a sheet of a text": (GOOD.encode(), ["--sheet", "Counts"], "Leave out --sheet."),
    "no workbook": (b"PK\x03\x04", [], "must be a complete .xlsx workbook"),
    "an old workbook": (bytes.fromhex("d0cf11e0a1b11ae1"), [], "password-protected or an old .xls"),
    "ragged rows": (GOOD + "A,low\n", [], "must have 3 values"),
    "no such file": (None, [], "must be readable"),
    "bad nesting": (GOOD, ["--within", "county"], "CHILD:PARENT"),
    "a key that is none": (GOOD, ["--sign", "in.csv"], "must be a private key in PEM"),
    "an option that is none": (GOOD, ["--espilon", "1"], "--espilon"),
    "a domain that is no TOML": (GOOD, ["--domain", "in.csv"], "must be valid TOML"),
    "undeclared category": (GOOD, ["--domain", "c.toml"], "line 4, column 'county', is not a declared category"),
}


@mostly_audit(("data", "extra", "words"), BAD.values(), ids=BAD)
def test_bad_input_gives_one_sentence_and_no_file(run, tmp_path, data, extra, words):
    if data is not None:
        (tmp_path / "in.csv").write_bytes(data.encode() if isinstance(data, str) else data)
    (tmp_path / "c.toml").write_text('county = ["A"]\neducation = ["low", "high"]\n')
    (tmp_path / "totals.toml").write_text('[[total]]\ncells = [{county = "C"}]\n')
    (tmp_path / "matrix.csv").write_text("1,1,0\n")
    (tmp_path / "published.csv").write_text("education,n\nlow,12\n")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    options = [*OPTIONS, *extra] if extra is not None else OPTIONS[:2] + OPTIONS[4:]
    done = run("release", "in.csv", *options)
    assert done.returncode == refusal(done), done.stdout
    message = done.stderr.decode()
    assert words in message
    assert "Traceback" not in message
    assert len([line for line in message.splitlines() if line.startswith("keepsum: ")]) == 1
    assert done.stdout == b""
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_table_that_does_not_fit_in_memory(run, tmp_path):
    """343 million cells under a limit of 6 GB."""
    (tmp_path / "in.csv").write_text("a,b,c,n\n1,1,1,5\n")
    (tmp_path / "c.toml").write_text(HUGE)
    limit = 6 * 10**9
    done = run(
        "release", "in.csv", "--count", "n", "--domain", "c.toml", "--keep", "a", "--epsilon", "1", "-o", "o.csv", "-y",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == refusal(done)
    assert b"343,000,000 cells must fit in memory" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "o.csv").exists()


def test_keys_are_not_overwritten(run):
    assert run("keygen", "key.pem").returncode == 0
    again = run("keygen", "key.pem")
    assert again.returncode == refusal(again)
    assert b"already exists" in again.stderr
    assert json.loads(run("keygen", "key.pem", "--force", "--json").stdout)["public"] == "key.pub.pem"


@pytest.mark.parametrize("command", [[], ["plan"], ["release"], ["verify"], ["keygen"]])
def test_help_teaches_by_example(run, command):
    done = run(*command, "--help")
    assert done.returncode == 0
    assert b"keepsum plan" in done.stdout or b"keepsum " + command[0].encode() in done.stdout
    assert "╭" not in done.stdout.decode()  # plain when piped


def test_version(run):
    assert run("--version").stdout.decode().split() == ["keepsum", ks.__version__]


def test_counts_are_in_no_message(run, tmp_path):
    """First lines that are data, and columns that are mixed up."""
    for text, options in [
        ("Alpha,Low,98765\n", ["--drop", "x"]),
        ("Alpha,98765,98765\n", []),
        ("Alpha;Low;98765\n", []),
        ("county,n\n98765,4\n", ["--domain", "c.toml"]),
    ]:
        (tmp_path / "in.csv").write_text(text)
        (tmp_path / "c.toml").write_text('county = ["A"]\n')
        done = run("plan", "in.csv", "--count", "n", "--keep", "county", "--epsilon", "1", *options)
        assert done.returncode == refusal(done)
        assert b"98765" not in done.stdout + done.stderr


@pytest.mark.audit
def test_a_pipe_that_nobody_reads(run, tmp_path):
    """Nothing is released if what must be known before cannot be shown; it is done if only the end is not read."""
    command = f"{KEEPSUM} {' '.join(map(str, RELEASE))} -o out.csv -y"
    for reader, made in (("true", False), ("head -1", True)):
        shell = f"set -o pipefail; {command} | {reader}"
        done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, timeout=HANG, check=False)
        assert (tmp_path / "out.csv").exists() == made
        assert done.returncode == (0 if made else 5), done.stderr
        assert b"Traceback" not in done.stderr
    full = subprocess.run(
        ["bash", "-c", f"{command} --force > /dev/full"], cwd=tmp_path, capture_output=True, timeout=HANG, check=False
    )
    assert full.returncode == refusal(full)
    assert b"No space left" in full.stderr


def test_without_arguments_it_helps(run):
    done = run()
    assert done.returncode == 0
    assert b"Usage: keepsum" in done.stdout


def test_hostile_declarations(run, tmp_path):
    (tmp_path / "in.csv").write_text(GOOD)
    deep = "county = " + "[" * 5000
    for domain in ("[county]\nA = 5\n", 'county = [[["A"], "f"]]\n', "county = 5\n", deep, f"county = [{'1' * 5000}]"):
        (tmp_path / "c.toml").write_text(domain)
        done = run("plan", "in.csv", *OPTIONS[:6], "--within", "county:education", "--domain", "c.toml")
        assert done.returncode == refusal(done), domain[:40]
        assert b"Traceback" not in done.stderr
    entry = '[[total]]\ncells = [{county = "A"}]\n'
    for keep in ("total = [1, 2]", entry + "weight = 1180591620717411303424\n", entry.replace('"A"', "[]"), entry * 2):
        (tmp_path / "k.toml").write_text(keep.replace(entry * 2, entry + 'name = "x"\n' + entry + 'name = "x"\n'))
        done = run("plan", "in.csv", "--count", "n", "--keep-file", "k.toml", "--epsilon", "1")
        assert done.returncode == refusal(done), keep[:40]
        assert b"Traceback" not in done.stderr


def test_a_domain_of_whole_numbers_fits_a_text_file(run, tmp_path):
    (tmp_path / "in.csv").write_text("age,n\n1,5\n2,6\n")
    (tmp_path / "c.toml").write_text("age = [1, 2, 3]\n")
    done = run(
        "release", "in.csv", "--count", "n", "--domain", "c.toml", "--keep-total", "--epsilon", "1", "-o", "o.csv", "-y"
    )
    assert done.returncode == 0, done.stderr
    assert run("verify", "o.csv").returncode == 0
