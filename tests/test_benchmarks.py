"""`make bench` runs every case, whatever the first of them found, and then says what missed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from benchmarks import cases
from benchmarks.cases.nanoseconds import UsedRng
from benchmarks.measuring import Spread, Timing, Work, by_turns, exponent, ratio
from benchmarks.registry import Bench, Case, Point, at_least, at_most
from benchmarks.reporting import merged
from benchmarks.run import choose, main
from benchmarks.systems import groups
from keepsum.sampling.core.rng import Key
from support import mostly_audit

REPO = Path(__file__).parents[1]


def timing(*seconds: float) -> Timing:
    return Timing(np.array(seconds), np.array(seconds))


def ordinary(bench: Bench) -> None:
    times = {"ours": timing(1, 2, 3), "peer": timing(10, 20, 30)}
    bench.figure("ten times faster", ratio(times["peer"], times["ours"]), "×", at_least(9), times)
    bench.curve("cells", "a curve", [Point(n, timing(n**1.5)) for n in (10, 100, 1000)], (10, 1000))


def missing(bench: Bench) -> None:
    bench.figure("too slow", 7, "×", at_most(5))
    bench.figure("fast enough", 3, "×", at_most(5))


def broken(bench: Bench) -> None:
    bench.figure("before it broke", 1, "×")
    raise ValueError("broken on purpose")


def run(tmp_path, capsys, *works):
    status = main([Case(work.__name__, work) for work in works], tmp_path / "out")
    return status, capsys.readouterr(), json.loads((tmp_path / "out" / "results.json").read_text())["bench"]


def test_all_is_run_and_then_it_fails(tmp_path, capsys):
    status, shown, data = run(tmp_path, capsys, missing, broken, ordinary)
    assert status == 1
    assert [figure["what"] for figure in data["figures"]] == [
        "too slow",
        "fast enough",
        "before it broke",
        "ten times faster",
    ]
    assert [figure["what"] for figure in data["figures"] if figure["missed"]] == ["too slow"]
    assert data["failed"] == ["broken: ValueError: broken on purpose"]
    assert list(data["cases"]) == ["missing", "broken", "ordinary"]
    assert "ValueError: broken on purpose" in shown.err
    _, end = shown.out.split("keepsum: results are in")
    assert re.findall(r"^(missed|failed): (\w+): (.*)$", end, flags=re.MULTILINE) == [
        ("missed", "missing", "too slow 7 × target ≤ 5 MISSED"),
        ("failed", "broken", "ValueError: broken on purpose"),
    ]


@mostly_audit(("work", "status"), [(ordinary, 0), (missing, 1), (broken, 1)])
def test_a_miss_or_an_error_alone_makes_it_fail(tmp_path, capsys, work, status):
    found, shown, _ = run(tmp_path, capsys, work)
    assert found == status
    assert shown.out.endswith("keepsum: every target is met\n") == (status == 0)


def test_what_is_written(tmp_path, capsys):
    _, _, data = run(tmp_path, capsys, ordinary, missing)
    assert {"CPU", "cores", "system", "Python", "numpy", "opendp", "commit"} <= set(data["machine"])
    (figure,) = (figure for figure in data["figures"] if figure["what"] == "ten times faster")
    assert (figure["low"], figure["median"], figure["high"]) == (10, 10, 10)
    spread = {"best": 1, "median": 2, "low": 1.5, "high": 2.5}
    assert figure["times"]["ours"] == dict.fromkeys(("cpu", "wall"), spread)
    (curve,) = data["curves"]
    assert curve["exponent"] == pytest.approx(1.5)
    table = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert "| ten times faster | 1 s | peer 10 s | 10 × | ≥ 9 | yes |" in table
    assert "| too slow |  |  | 7 × | ≤ 5 | **no** |" in table
    for name in ("cells", "targets"):
        assert (tmp_path / "out" / f"{name}.svg").stat().st_size > 1000


def recorded(bench: Bench) -> None:
    bench.figure("new", 1, "×")
    bench.record_rate("two-way/4x4/0.25", timing(0.5, 0.25))
    bench.curve("cells", "another curve", [Point(10, timing(1.0))])


def test_a_run_replaces_what_its_cases_said_before(monkeypatch):
    """Other cases, and what other commands measured, stay as they are."""
    cases_now = [Case(name, recorded) for name in ("first", "second")]
    monkeypatch.setattr("benchmarks.reporting.CASES", cases_now)
    old = [{"case": name, "what": "old", "date": "2026-01-01"} for name in ("second", "gone", "first")]
    known = {
        "bench": {
            "figures": old,
            "curves": [{"case": "second", "plot": "cells"}],
            "cases": {"first": 1.0, "gone": 2.0},
        },
        "figures": {"spark/cell/seconds": {"value": 1}, "two-way/4x4/0.25/draws_per_second": {"value": 3}},
        "spark": {},
    }
    bench = Bench()
    bench.run(cases_now[1])
    found = merged(known, bench)
    assert [(one["case"], one["what"]) for one in found["bench"]["figures"]] == [("first", "old"), ("second", "new")]
    assert [curve["label"] for curve in found["bench"]["curves"]] == ["another curve"]
    assert set(found["bench"]["cases"]) == {"first", "second"}
    assert found["spark"] == {}
    assert found["figures"]["spark/cell/seconds"] == {"value": 1}
    assert found["figures"]["two-way/4x4/0.25/draws_per_second"]["value"] == 4  # the best round counts


def test_the_better_quartile_decides():
    """A few disturbed rounds miss nothing; work that is too slow in three quarters of the rounds does."""
    rounds = [0.9, 0.9, 1.1, 1.5, 2.0, 1.6, 1.4, 1.2]
    assert at_most(1.1).met(Spread.of(rounds))
    assert not at_most(1.0).met(Spread.of(rounds))
    faster = [1 / value for value in rounds]
    assert at_least(1 / 1.1).met(Spread.of(faster))
    assert not at_least(1.0).met(Spread.of(faster))


def test_work_is_timed_by_turns_and_per_unit(monkeypatch):
    calls: list[str] = []
    ticks = iter(range(10**6))
    monkeypatch.setattr("benchmarks.measuring.cpu_clock", lambda: float(next(ticks)))
    works = {name: Work(lambda name=name: calls.append(name), count) for name, count in (("ours", 2), ("peer", 5))}
    times = by_turns(works, 3, warm=False)
    assert calls == ["ours", "peer"] * 3
    assert times["ours"].cpu.tolist() == [0.5] * 3  # one tick for two units
    assert times["peer"].cpu.tolist() == [0.2] * 3


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law(power):
    sizes = [10**k for k in range(3, 9)]
    assert exponent(sizes, [3e-8 * size**power for size in sizes]) == pytest.approx(power)


def test_every_subject_is_on_the_list():
    """Whatever is in the folder is run, each case under a name of its own; a quick run is a part of a full one."""
    folder = REPO / "benchmarks" / "cases"
    assert sorted(cases.SUBJECTS) == sorted(path.stem for path in folder.glob("[!_]*.py"))
    names = [case.name for case in choose(quick=False, names="")]
    assert len(names) == len(set(names))
    assert {case.run.__module__.rpartition(".")[2] for case in choose(quick=False, names="")} == set(cases.SUBJECTS)
    quick = [case.name for case in choose(quick=True, names="")]
    assert set(quick) < set(names)
    assert [case.name for case in choose(quick=False, names="two threads")] == ["two threads"]


def test_words_that_are_handed_out_again_draw_noise_all_the_same():
    """The time without the keystream is that of real draws: every total is kept."""
    plan = ks.plan(keep=groups(300_000, 3), mechanism=ks.Laplace.per_unit(epsilon=1))
    (choice,) = plan.samplers
    out = np.empty((1, plan.size), dtype=np.int64)
    choice.sampler.draw_into(out, UsedRng(Key(bytes(32), seeded=True)))
    assert not out.reshape(3, -1).sum(axis=1).any()
    assert (
        0.5
        < out.var()
        / ks.plan(keep=groups(300_000, 3), mechanism=ks.Laplace.per_unit(epsilon=1)).sample(rng=ks.rng(seed=1)).var()
        < 2
    )


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (REPO / "Makefile").read_text(), flags=re.MULTILINE)
    assert found is not None
    return found[1].strip()


def test_make_bench_is_one_command():
    assert recipe("bench") == "@$(BIN)/python -m benchmarks.run"


def test_the_demo_needs_what_is_installed_for_it():
    """Its packages are some of those of the extra ``cli``; without pyarrow a CSV file is released as with it."""
    script = (REPO / "scripts" / "make-venv").read_text(encoding="utf-8")
    (packages,) = re.findall(r"--editable \. ([\w ]+)$", script, flags=re.MULTILINE)
    (extra,) = re.findall(r"^cli = \[(.*)\]$", (REPO / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert set(packages.split()) == set(re.findall(r'"([\w-]+)', extra))
    code = (
        "import sys; sys.modules.update(pyarrow=None, pandas=None, polars=None, matplotlib=None)\n"
        "from keepsum_shell import main\n"
        f"sys.argv[1:] = ['plan', {str(REPO / 'examples' / 'children.csv')!r}, '--count', 'n', '--keep', 'county',"
        " '--keep', 'education', '--epsilon', '0.25', '--details']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "both margins kept" in done.stdout


def task_end(stage, milliseconds, shuffled):
    metrics = {"Executor Run Time": milliseconds, "Shuffle Write Metrics": {"Shuffle Bytes Written": shuffled}}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}


def test_costs_in_spark_are_those_of_the_jobs_that_are_asked_for(tmp_path):
    from benchmarks.spark_costs import events_of, shuffled, stages

    info = {"Stage Name": "toArrow at x.py:1", "Submission Time": 1000, "Completion Time": 4000}
    events = []
    for stage, description in ((1, "warm"), (2, "measured")):
        about = {"Stage Info": info | {"Stage ID": stage}}
        properties = {"Properties": {"spark.job.description": description}}
        events += [{"Event": "SparkListenerStageSubmitted"} | about | properties]
        events += [task_end(stage, 500, 10), task_end(stage, 1500, 20)]
        events += [{"Event": "SparkListenerStageCompleted"} | about]
    (tmp_path / "events_1_app").write_text("\n".join(map(json.dumps, events)))
    found = events_of(tmp_path, "measured")
    assert shuffled(found) == 30
    expected = {"stage": 2, "name": "toArrow", "tasks": 2, "seconds": 3.0, "work": 2.0, "longest": 1.5, "shuffled": 30}
    assert stages(found) == [expected]


def test_cpu_time_is_that_of_all_processes_below():
    from benchmarks.spark_costs import Costs

    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'sum(range(10**7))'], check=True)"
    with Costs() as costs:
        subprocess.run([sys.executable, "-c", code], check=True)
    assert costs.cpu > 0.05
    assert costs.figures([])["memory"] == []
