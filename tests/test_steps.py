"""What is being done is logged, step by step, and what fails unexpectedly by its type and place: never a value."""

import logging

from keepsum.cli import app
from keepsum.desk.deriving import DOING, TABLE, Draft, Stages
from keepsum.desk.jobs import BackgroundJob
from keepsum.sources.uploads import Upload
from keepsum.specs.spec import SourceSpec, Spec

COUNTS = "county,n\nA,4711\nB,5\n"


def steps_of(tmp_path, monkeypatch, capsys, *more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text(COUNTS)
    assert app.run(["plan", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1", *more]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("keepsum: ")]


def test_each_step_is_a_line_and_no_line_has_a_count(tmp_path, monkeypatch, capsys):
    steps = steps_of(tmp_path, monkeypatch, capsys, "--verbose")
    assert "keepsum: compiling the plan" in steps
    assert "keepsum: choosing samplers" in steps
    assert "4711" not in "".join(steps)
    assert steps_of(tmp_path, monkeypatch, capsys) == []


def test_every_command_says_what_it_does(tmp_path, monkeypatch, capsys):
    steps_of(tmp_path, monkeypatch, capsys)
    release = "release counts.csv --count n --keep-total --epsilon 1 --yes -o o.csv"
    ledger = ["show l.db", "budget l.db --per-person --budget 4", "check l.db", "export l.db", "import l.db o.csv"]
    more = ["show o.csv", "verify o.csv", "marginal o.csv -o m.csv", "postprocess o.csv --nonnegative -o p.csv"]
    commands = [release, *more, "report o.csv", "keygen key.pem", "ledger init l.db --dataset d --budget 3"]
    commands += ["init counts.csv --count n --keep-total --epsilon 1"]
    commands += [f"ledger {command}" for command in ledger]
    for command in map(str.split, commands):
        capsys.readouterr()
        assert app.run([*command, "--verbose"]) == 0, command
        steps = [line for line in capsys.readouterr().err.splitlines() if line.startswith("keepsum: ")]
        assert steps, command
        assert "4711" not in "".join(steps)


def test_python_logs_the_same_steps(tmp_path, monkeypatch, capsys, caplog):
    steps_of(tmp_path, monkeypatch, capsys)
    with caplog.at_level(logging.INFO, logger="keepsum"):
        assert app.run(["plan", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1"]) == 0
    assert "choosing samplers" in caplog.messages
    assert "4711" not in caplog.text


def test_the_page_logs_the_type_and_the_place_of_a_failure(caplog):
    def work(job):
        raise RuntimeError("count 4711")

    job = BackgroundJob(work)
    with caplog.at_level(logging.ERROR, logger="keepsum"):
        job.run()
    assert job.problem == job.unknown
    (said,) = caplog.messages
    assert said.startswith("unexpected failure: RuntimeError at test_steps.py, line ")
    assert "keepsum/desk/jobs.py, line " in said
    assert "4711" not in caplog.text


def test_the_page_logs_its_stages(caplog):
    """What a job does is a line as well, with --verbose in the terminal that the page was started from."""
    draft = Draft(Upload("counts.csv", COUNTS.encode()), Spec(SourceSpec(count="n")))
    job = BackgroundJob(lambda job: Stages().make(draft, TABLE, job))
    with caplog.at_level(logging.INFO, logger="keepsum"):
        job.run()
    assert job.problem is None
    assert DOING[TABLE] in caplog.messages
    assert "4711" not in caplog.text
