"""``keepsum ledger`` and ``keepsum release --ledger``: what a curator sees, from the first budget to a cut ledger."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from faults import Fork, in_shell
from keepsum.cli import app
from keepsum.releasing.release import Prepared
from support import mostly_audit, refusal

COUNTS = "county,sex,n\nAlpha,f,15\nAlpha,m,1\nBeta,f,20\nBeta,m,10\n"
RELEASE = ["release", "counts.csv", "--count", "n", "--yes", "--ledger", "l.db"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    (tmp_path / "counts.csv").write_text(COUNTS)
    return tmp_path


@pytest.fixture
def ledger(run: Callable[..., Any], here: Path) -> Path:
    """A ledger with a budget of 1."""
    assert run("ledger", "init", "l.db", "--dataset", "pop", "--budget", "1.0").returncode == 0
    return here / "l.db"


def release(run: Callable[..., Any], name: str, *more: str, keep: str = "county", epsilon: str = "0.25") -> Any:
    return run(*RELEASE, "--keep", keep, "--epsilon", epsilon, "-o", name, *more)


def refused(done: Any) -> str:
    """The one sentence with which a command is refused."""
    message: str = done.stderr.decode()
    assert (done.returncode, done.stdout) == (refusal(done), b""), message
    assert message.count("\n") == 1
    assert "Traceback" not in message
    return message


def words(done: Any) -> str:
    assert done.returncode == 0, done.stderr.decode()
    return " ".join(done.stdout.decode().split())


def test_a_release_is_charged_and_its_certificate_names_the_entry(run, ledger, here):
    done = words(release(run, "r.csv", epsilon="0.65"))
    assert "pop: this release costs epsilon 0.65 per person, and leaves 0.35 of 1." in done
    assert "Ledger l.db, entry 4 of dataset 'pop'" in done
    charged = ks.Certificate.from_json((here / "r.certificate.json").read_bytes()).ledger
    entries = [json.loads(line) for line in run("ledger", "export", "l.db").stdout.splitlines()]
    assert (charged.dataset, charged.entry, charged.head) == ("pop", 4, entries[3]["hash"])
    assert "Charged to dataset 'pop', entry 4 of its ledger" in words(run("show", "r.csv"))
    assert words(run("ledger", "check", "l.db", "--against", "r.csv")).startswith("ok 5 entries, each with the hash")
    assert run("verify", "r.csv").returncode == 0


def test_what_does_not_fit_is_refused_with_what_would(run, ledger, here):
    assert release(run, "r.csv", epsilon="0.65").returncode == 0
    message = refused(release(run, "s.csv", epsilon="0.5"))
    assert "0.35 of 1 left; this release needs 0.5 per person" in message
    assert "Epsilon 0.35 per person would fit" in message
    assert not (here / "s.csv").exists()
    assert release(run, "s.csv", epsilon="0.35").returncode == 0
    assert "0 of 1 left" in refused(release(run, "t.csv", epsilon="0.001"))


def test_totals_that_fix_a_cell_together_are_refused(run, ledger, here):
    (here / "totals.toml").write_text(
        '[[total]]\nname = "three"\ncells = [{county = "Alpha"}, {county = "Beta", sex = "f"}]\n'
    )
    assert release(run, "r.csv").returncode == 0
    message = refused(run(*RELEASE, "--keep-file", "totals.toml", "--epsilon", "0.25", "-o", "s.csv"))
    assert "together determine 2 cells" in message
    assert "county=Beta, sex=m" in message
    assert not (here / "s.csv").exists()


def test_show_says_what_is_left_for_whom_and_lists_every_release(run, ledger):
    assert release(run, "r.csv").returncode == 0
    assert release(run, "s.csv", keep="sex").returncode == 0
    shown = words(run("ledger", "show", "l.db"))
    for sentence in (
        "epsilon 0.5 of 1 per person spent by 2 releases, 0.5 left.",
        "agree on the kept totals of all of these releases",
        "a change of county: epsilon 0.5, so that nothing is more than 1.65 times as likely as it would be otherwise",
        "(l1 distance 4) a change of sex: epsilon 0.5",
        "3 county 2, sex 2: 4 cells; kept exactly: county",
        "Laplace.per_unit(epsilon=0.0625, norm='l1') released",
    ):
        assert sentence in shown
    facts = json.loads(run("ledger", "show", "l.db", "--json").stdout)
    assert facts["datasets"][0]["left"] == "1/2"
    assert [release["outcome"] for release in facts["datasets"][0]["releases"]] == ["released", "released"]
    assert "Without output" not in shown


def test_a_release_that_fails_after_it_was_charged_stays_charged(here, ledger, monkeypatch, capsys):
    monkeypatch.chdir(here)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Prepared, "draw", fail)
    assert app.run([*RELEASE, "--keep", "county", "--epsilon", "0.25", "-o", "r.csv"]) == 5
    err = capsys.readouterr().err
    assert "stays charged: entry 4 of dataset 'pop'" in err
    monkeypatch.undo()
    assert app.run(["ledger", "show", str(ledger)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "epsilon 0.25 of 1" in shown
    assert "failed, stays charged" in shown
    assert "1 release charged without a known output: entries 4." in shown
    assert not (here / "r.csv").exists()


def test_a_release_whose_report_cannot_be_printed_is_in_the_ledger_and_says_so(run, ledger, here):
    (here / "beside").mkdir()  # from which the command is run
    command = [*RELEASE, "--keep", "county", "--epsilon", "0.25", "-o", "r.csv", "--json"]
    found = Fork(in_shell(command, here / "beside", stdout="/dev/full"), here).wait()
    assert found.error is None, found.error
    status, _, complaints = found.result
    assert status == 3
    assert "It is charged as entry 4 of the ledger." in complaints
    assert (here / "r.csv").exists()
    assert words(run("ledger", "check", "l.db", "--against", "r.csv"))


def test_a_cut_end_and_a_restored_copy_show_against_certificates(run, ledger, here):
    assert release(run, "r.csv").returncode == 0
    shutil.copy(ledger, here / "backup.db")
    assert release(run, "s.csv").returncode == 0
    shutil.copy(here / "backup.db", ledger)
    assert run("ledger", "check", "l.db").returncode == 0  # a chain in itself
    done = run("ledger", "check", "l.db", "--against", "r.csv", "--against", "s.csv")
    assert done.returncode == 1
    assert b"the end of the ledger was cut off, or an older copy was restored" in done.stdout
    noted = json.loads(run("ledger", "check", "l.db", "--json").stdout)["head"]
    assert run("ledger", "check", "l.db", "--head", noted).returncode == 0
    assert run("ledger", "check", "l.db", "--head", "0" * 64).returncode == 1
    assert release(run, "t.csv").returncode == 0  # spends what s.csv had spent
    done = run("ledger", "check", "l.db", "--against", "s.csv", "--json")
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)


def test_an_edited_entry_stops_everything(run, ledger, here):
    assert release(run, "r.csv", epsilon="0.5").returncode == 0
    with sqlite3.connect(ledger) as database:
        database.execute("drop trigger no_update")
        database.execute("update entries set content = replace(content, '1/2', '1/20') where number = 4")
    for command in (["ledger", "show", "l.db"], [*RELEASE, "--keep", "county", "--epsilon", "0.5", "-o", "s.csv"]):
        assert "is damaged" in refused(run(*command))
    done = run("ledger", "check", "l.db")
    assert done.returncode == 1
    assert done.stdout.startswith(b"FAILED  Ledger 'l.db' is damaged")
    assert not (here / "s.csv").exists()


def test_the_environment_and_a_spec_name_a_ledger(run, ledger, here, monkeypatch):
    (here / "keepsum.toml").write_text(
        'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n[keep]\nmargins = ["county"]\n'
        "[mechanism]\nepsilon = 0.25\n"
        '[output]\npath = "out/"\n[ledger]\npath = "l.db"\n'
    )
    assert "entry 4 of dataset 'pop'" in words(run("release", "--yes"))
    monkeypatch.setenv("KEEPSUM_LEDGER", "l.db")
    plain = ["release", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "0.25", "--yes", "-o"]
    assert "entry 6 of dataset 'pop'" in words(run(*plain, "r.csv"))
    monkeypatch.setenv("KEEPSUM_LEDGER", "none.db")
    assert "'none.db' does not exist. Create it: keepsum ledger init." in refused(run(*plain, "s.csv"))
    assert "entry 8 of dataset 'pop'" in words(release(run, "t.csv"))  # an option comes first


def test_several_tables_of_a_spec_must_fit_together(run, ledger, here):
    (here / "keepsum.toml").write_text(
        'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n[keep]\nmargins = ["county"]\n'
        '[ledger]\npath = "l.db"\n'
        '[[table]]\nname = "a"\nmechanism = { epsilon = 0.6 }\noutput = { path = "a.csv" }\n'
        '[[table]]\nname = "b"\nmechanism = { epsilon = 0.6 }\noutput = { path = "b.csv" }\n'
    )
    assert "0.4 of 1 left; this release needs 0.6" in refused(run("release", "--yes"))
    assert not (here / "a.csv").exists()
    assert run("release", "--yes", "--only", "a").returncode == 0
    assert "0.6 of 1" in words(run("ledger", "show", "l.db"))


def test_releases_made_before_are_imported_once(run, ledger, here):
    plain = ["release", "counts.csv", "--count", "n", "--keep", "county", "--yes", "-o"]
    assert run(*plain, "old.csv", "--epsilon", "0.75").returncode == 0
    assert "epsilon 0.75 of 1" in words(run("ledger", "import", "l.db", "old.csv"))
    assert "in the ledger already" in refused(run("ledger", "import", "l.db", "old.csv"))
    assert run(*plain, "older.csv", "--epsilon", "0.875").returncode == 0
    assert "epsilon 1.625 of 1 per person spent by 2 releases, 0.625 too much, 0 left." in words(
        run("ledger", "import", "l.db", "older.csv")
    )
    assert "imported" in words(run("ledger", "show", "l.db"))


def test_a_budget_is_changed_by_an_entry(run, ledger):
    assert release(run, "r.csv", epsilon="0.9").returncode == 0
    assert "epsilon 0.9 of 2" in words(run("ledger", "budget", "l.db", "--budget", "2"))
    assert release(run, "s.csv", epsilon="0.9").returncode == 0
    assert "1.8 of 0.5 per person spent by 2 releases, 1.3 too much, 0 left" in words(
        run("ledger", "budget", "l.db", "--budget", "0.5")
    )
    contents = [json.loads(line)["content"] for line in run("ledger", "export", "l.db").stdout.splitlines()]
    assert sum('"entry":"budget"' in content for content in contents) == 2


def test_a_changed_budget_stays_per_person_and_its_history_is_shown(run, here):
    budget = ["--budget", "2", "--budget-delta", "1e-6", "--note", "the board, 1 March"]
    assert run("ledger", "init", "l.db", "--dataset", "pop", *budget).returncode == 0
    assert "Budget epsilon 3, delta 1e-6 per person" in words(run("ledger", "budget", "l.db", "--budget", "3"))
    message = refused(run("ledger", "budget", "l.db", "--per-unit"))  # 3 of one person is not 3 per unit
    assert "Option --per-unit must be given with --budget or --budget-rho, because the unit changes." in message
    message = refused(run("ledger", "budget", "l.db", "--per-unit", "--budget", "2"))  # nor is its delta
    assert "Option --per-unit must be given with --budget-delta, because the unit changes." in message
    changed = words(run("ledger", "budget", "l.db", "--per-unit", "--budget", "2", "--budget-delta", "1e-7"))
    assert "Budget epsilon 2, delta 1e-7 per unit" in changed
    for number in ("--budget", "--budget-delta"):  # as help has it, one person's
        message = refused(run("ledger", "budget", "l.db", number, "1e-8"))
        assert "must be given with --per-unit or --per-person, because the one so far is per unit of" in message
    again = words(run("ledger", "budget", "l.db", "--budget", "1", "--per-unit"))
    assert "Budget epsilon 1, delta 1e-7 per unit" in again
    assert "--per-person must be given with --budget" in refused(run("ledger", "budget", "l.db", "--per-person"))
    shown = words(run("ledger", "show", "l.db"))
    assert "before: epsilon 2, delta 1e-6 per person, from" in shown
    assert "(the board, 1 March)" in shown
    facts = json.loads(run("ledger", "show", "l.db", "--json").stdout)["datasets"][0]
    assert [budget["per_person"] for budget in facts["budgets"]] == [True, True, False, False]


@pytest.mark.parametrize("unit", ["--per-person", "--per-unit"])
def test_why_nothing_is_stated_of_one_person_names_options(run, here, unit):
    """Records without a bound per person; a budget per unit of distance is not told to become one."""
    (here / "people.csv").write_text("county,sex\nA,f\nA,m\nB,f\n")
    counted = ["--by", "county,sex", "--categories", "county=A,B", "--categories", "sex=f,m", "--keep-total"]
    made = run("release", "people.csv", *counted, "--epsilon", "0.5", "-o", "old.csv", "--yes")
    assert made.returncode == 0, made.stderr
    budget = ["--budget", "1", *(["--per-unit"] if unit == "--per-unit" else [])]
    assert run("ledger", "init", "l.db", "--dataset", "pop", *budget).returncode == 0
    said = [words(run("ledger", *command)) for command in (["import", "l.db", "old.csv"], ["show", "l.db"])]
    said.append(words(run("ledger", "show", "l.db", "--json")))
    assert not [argument for argument in ("unit=", "with per_unit") if argument in " ".join(said)]
    for shown in said[1:]:
        assert "Count with --unit and --max-rows-per-unit, with --max-rows-per-unit 1 alone if every record" in shown
        assert ("or use a budget per unit of distance, with --per-unit." in shown) == (unit == "--per-person")
        assert ("not stated: the loss of one person must be for" in shown) == (unit == "--per-unit")


def test_a_forged_release_is_not_imported(run, ledger, here):
    plain = ["release", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "0.75", "--yes", "-o"]
    assert run(*plain, "old.csv").returncode == 0
    certificate = here / "old.certificate.json"
    certificate.write_text(certificate.read_text().replace('"3/16"', '"1/400"'))
    assert "must verify to be imported" in refused(run("ledger", "import", "l.db", "old.csv"))
    assert "0.01 of 1" in words(run("ledger", "import", "l.db", "old.csv", "--unverified"))
    assert "imported, not verified" in words(run("ledger", "show", "l.db"))


def test_of_several_imports_none_is_charged_if_one_cannot_be(run, ledger, here):
    plain = ["release", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "0.1", "--yes", "-o"]
    for name in ("a.csv", "b.csv"):
        assert run(*plain, name).returncode == 0
    (here / "b.csv").write_text((here / "b.csv").read_text().replace("Alpha,f,", "Alpha,f,1"))
    before = ledger.read_bytes()
    assert "'b.csv' does not" in refused(run("ledger", "import", "l.db", "a.csv", "b.csv"))
    assert ledger.read_bytes() == before


def test_an_import_that_discloses_is_told_and_stops_what_comes_after(run, here):
    (here / "domain.toml").write_text('county = ["Alpha", "Beta"]\nsex = ["f", "m"]\nage = ["young", "old"]\n')
    rows = "".join(f"{c},{s},{a},7\n" for c in ("Alpha", "Beta") for s in "fm" for a in ("young", "old"))
    (here / "fine.csv").write_text(f"county,sex,age,n\n{rows}")
    fine = ["release", "fine.csv", "--count", "n", "--keep", "county,sex", "--epsilon", "0.1", "--yes", "-o", "old.csv"]
    assert run(*fine).returncode == 0
    init = ["ledger", "init", "l.db", "--dataset", "pop", "--budget", "5", "--domain", "domain.toml"]
    assert run(*init).returncode == 0
    assert release(run, "r.csv").returncode == 0
    done = run("ledger", "import", "l.db", "old.csv")
    assert done.returncode == 0
    assert b"together determine 4 cells of the table of entry 3" in done.stderr
    assert "together determine 4 cells of the table of entry 3" in words(run("ledger", "show", "l.db"))
    assert "together determine 4 cells" in refused(release(run, "again.csv"))


def test_the_order_of_axes_and_categories_does_not_matter(run, ledger, here):
    assert release(run, "r.csv").returncode == 0
    (here / "turned.csv").write_text("sex,county,n\nm,Beta,10\nf,Beta,20\nm,Alpha,1\nf,Alpha,15\n")
    (here / "totals.toml").write_text(
        '[[total]]\nname = "three"\ncells = [{county = "Alpha"}, {county = "Beta", sex = "f"}]\n'
    )
    turned = ["release", "turned.csv", "--count", "n", "--yes", "--ledger", "l.db", "--categories", "sex=m,f"]
    message = refused(run(*turned, "--keep-file", "totals.toml", "--epsilon", "0.25", "-o", "s.csv"))
    assert "together determine 2 cells" in message


def test_a_seed_is_shown(run, ledger):
    assert release(run, "r.csv", "--seed", "5").returncode == 0
    assert "released, from a seed: not for publication" in words(run("ledger", "show", "l.db"))


def test_a_damaged_ledger_can_be_exported(run, ledger, here):
    assert release(run, "r.csv").returncode == 0
    data = ledger.read_bytes()
    assert data.count(b'"1/16"') > 0
    ledger.write_bytes(data.replace(b'"1/16"', b'"1/19"'))
    done = run("ledger", "export", "l.db")
    assert done.returncode == 1
    assert b"the chain is broken at entry 4" in done.stderr
    assert len(done.stdout.splitlines()) == 5


def test_a_declared_domain_puts_different_tables_together(run, here):
    (here / "domain.toml").write_text('county = ["Alpha", "Beta"]\nsex = ["f", "m"]\nage = ["young", "old"]\n')
    budget = ["--dataset", "pop", "--budget", "9", "--domain", "domain.toml"]
    assert run("ledger", "init", "l.db", *budget).returncode == 0
    assert release(run, "r.csv").returncode == 0
    rows = "".join(f"{c},{s},{a},7\n" for c in ("Alpha", "Beta") for s in "fm" for a in ("young", "old"))
    (here / "fine.csv").write_text(f"county,sex,age,n\n{rows}")
    fine = [
        "release",
        "fine.csv",
        "--count",
        "n",
        "--keep",
        "county,sex",
        "--epsilon",
        "1",
        "--yes",
        "--ledger",
        "l.db",
    ]
    message = refused(run(*fine, "-o", "fine-out.csv"))
    assert "4 cells of the table of entry 3, which was released with noise" in message
    (here / "counts.csv").write_text("town,n\nX,3\nY,4\n")
    other = ["release", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1", "--yes", "--ledger", "l.db"]
    assert "'town' is not one of 'county', 'sex', 'age'" in refused(run(*other, "-o", "town.csv"))


WRONG = {
    "no budget": (["ledger", "init", "x.db", "--dataset", "pop"], "--budget must be given"),
    "no dataset": (["ledger", "init", "x.db", "--budget", "1"], "--dataset must name"),
    "two currencies": (["ledger", "init", "x.db", "--dataset", "p", "--budget", "1", "--budget-rho", "1"], "not both"),
    "no number": (["ledger", "init", "x.db", "--dataset", "p", "--budget", "much"], "must be a positive number"),
    "a delta of 1": (["ledger", "init", "x.db", "--dataset", "p", "--budget", "1", "--budget-delta", "1"], "below 1"),
    "a blank name": (["ledger", "init", "x.db", "--dataset", " p", "--budget", "1"], "without spaces around it"),
    "a nesting alone": (
        ["ledger", "init", "x.db", "--dataset", "p", "--budget", "1", "--within", "a:b"],
        "with --domain",
    ),
    "no folder": (["ledger", "init", "no/x.db", "--dataset", "p", "--budget", "1"], "does not exist"),
    "the same dataset": (["ledger", "init", "l.db", "--dataset", "pop", "--budget", "1"], "in the ledger already"),
    "no ledger": (["ledger", "show", "x.db"], "does not exist. Create it: keepsum ledger init."),
    "no ledger to check": (["ledger", "check", "x.db"], "does not exist"),
    "a table": (["ledger", "show", "counts.csv"], "must be a ledger of Keepsum"),
    "a folder": (["ledger", "check", "."], "is a folder"),
    "a table to check": (["ledger", "check", "counts.csv"], "must be a ledger of Keepsum"),
    "an unknown dataset": (["ledger", "show", "l.db", "--dataset", "pip"], "one of the ledger: 'pop'"),
    "a dataset without ledger": (
        [
            "release",
            "counts.csv",
            "--count",
            "n",
            "--keep",
            "county",
            "--epsilon",
            "1",
            "-o",
            "r.csv",
            "--dataset",
            "p",
        ],
        "--ledger, or",
    ),
    "the ledger as output": ([*RELEASE, "--keep", "county", "--epsilon", "1", "-o", "l.db", "--force"], "must"),
    "an export over the ledger": (["ledger", "export", "l.db", "-o", "l.db", "--force"], "must not be the ledger"),
    "no certificate": (["ledger", "import", "l.db", "none.csv"], "must be a file, and there is none"),
    "Gaussian noise on a pure budget": (
        [*RELEASE, "--keep", "county", "--mechanism", "gaussian", "--rho", "0.01", "-o", "r.csv"],
        "Gaussian noise must be charged to a budget with a delta or in rho",
    ),
}


@mostly_audit(("command", "reason"), WRONG.values(), ids=WRONG.keys())
def test_wrong_calls_get_one_sentence(run, ledger, here, command, reason):
    before = ledger.read_bytes()
    assert reason in refused(run(*command))
    assert sorted(path.name for path in here.iterdir()) == ["counts.csv", "l.db"]
    assert ledger.read_bytes() == before


def test_help_without_a_command(run, here):
    done = run("ledger")
    assert done.returncode == 0
    assert b"init" in done.stdout
    assert b"check" in done.stdout


def test_a_ledger_is_readable_by_its_owner_only(ledger):
    assert ledger.stat().st_mode & 0o077 == 0


def test_a_plan_says_what_it_would_cost(run, ledger):
    plan = ["plan", "counts.csv", "--count", "n", "--keep", "county", "--ledger", "l.db"]
    assert "pop: this release costs epsilon 0.25 per person, and leaves 0.75 of 1." in words(
        run(*plan, "--epsilon", "0.25")
    )
    before = ledger.read_bytes()
    assert "It would be refused: The budget of 'pop'" in words(run(*plan, "--epsilon", "2"))
    facts = json.loads(run(*plan, "--epsilon", "0.25", "--json").stdout)
    assert facts["ledger"][0].startswith("pop: this release costs")
    assert ledger.read_bytes() == before


AGES = "county,age,n\nAlpha,old,9\nAlpha,young,7\nBeta,old,22\nBeta,young,8\n"


def test_a_second_table_of_other_axes_is_charged_and_one_of_other_categories_once_they_are_declared(run, ledger, here):
    words(release(run, "r.csv"))
    (here / "ages.csv").write_text(AGES)
    second = ["release", "ages.csv", "--axes", "county,age", "--count", "n", "--yes", "--ledger", "l.db"]
    more = [*second, "--keep", "county", "--epsilon", "0.25"]
    message = refused(run(*more, "-o", "ages-r.csv"))
    assert "nobody has said that they count the same people. Say so, or declare" in message
    assert "count the same people" in words(run("ledger", "domain", "l.db", "--same-people", "--note", "one register"))
    assert "for tables that count the same people (one register)" in words(run("ledger", "show", "l.db"))
    assert "leaves 0.5 of 1" in words(run(*more, "-o", "ages-r.csv"))
    (here / "third.csv").write_text(f"{COUNTS}Gamma,f,9\nGamma,m,4\n")
    third = ["release", "third.csv", "--count", "n", "--yes", "--ledger", "l.db", "--keep-total", "--epsilon", "0.1"]
    message = refused(run(*third, "-o", "third-r.csv"))
    assert "cannot: the categories of 'county' are not the same in all of them" in message
    assert "declare the full cross-classification (keepsum ledger domain)" in message
    (here / "all.toml").write_text('county = ["Alpha", "Beta", "Gamma"]\nsex = ["f", "m"]\nage = ["old", "young"]\n')
    done = run("ledger", "domain", "l.db", "--domain", "all.toml", "--note", "all counties")
    assert "Domain county 3, sex 2, age 2: 12 cells" in words(done)
    assert "age 2: 12 cells (all counties)" in words(run("ledger", "show", "l.db"))
    words(run(*third, "-o", "third-r.csv"))
    message = refused(run("ledger", "domain", "l.db"))
    assert "Cells must be given by a file of all categories, or else --same-people, and not both." in message
    message = refused(run("ledger", "init", "l.db", "--dataset", "pop", "--budget", "2"))
    assert "Use keepsum ledger budget to change its budget" in message


def test_a_release_that_was_a_mistake_is_withdrawn_and_verify_says_so(run, ledger, here):
    words(release(run, "r.csv"))
    words(release(run, "s.csv"))
    assert "entry 4 of dataset 'pop', not withdrawn" in words(run("verify", "r.csv", "--ledger", "l.db"))
    done = words(run("ledger", "withdraw", "l.db", "r.csv", "--note", "counted twice"))
    assert (
        done == "Withdrawn the release of entry 4; it stays charged Spent epsilon 0.5 of 1 per person spent by 2 "
        "releases, 0.5 left."
    )
    done = run("verify", "r.csv", "--ledger", "l.db")
    assert done.returncode == 1
    assert "(counted twice): it is not to be used" in done.stdout.decode()
    facts = json.loads(run("verify", "r.csv", "--ledger", "l.db", "--json").stdout)
    assert (facts["passed"], facts["checks"][-1]["check"]) == (False, "ledger")
    words(run("verify", "s.csv", "--ledger", "l.db"))
    words(run("verify", "r.csv"))
    shown = words(run("ledger", "show", "l.db"))
    assert "(counted twice), stays charged" in shown
    assert json.loads(run("ledger", "show", "l.db", "--json").stdout)["datasets"][0]["releases"][0]["withdrawn"]
    assert "must be the charge of a release" in refused(run("ledger", "withdraw", "l.db", "--entry", "2"))
    assert "and not both" in refused(run("ledger", "withdraw", "l.db"))
    assert "and not both" in refused(run("ledger", "withdraw", "l.db", "s.csv", "--entry", "6"))
    assert "withdrawn already" in refused(run("ledger", "withdraw", "l.db", "--entry", "4"))
    words(run("ledger", "check", "l.db", "--against", "r.csv"))
