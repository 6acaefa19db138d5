"""docs/pipelines.md: the job for a timer is run, and the container's file is read and held to its rules."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import HANG

REPO = Path(__file__).parent.parent
CONTAINER = REPO / "examples" / "Containerfile"
PAGE = (REPO / "docs" / "pipelines.md").read_text(encoding="utf-8")
TABLE = "county,sex,n\nAlpha,f,15\nAlpha,m,1\nBeta,f,20\nBeta,m,10\n"


# -- the job ----------------------------------------------------------------------------------------


def monthly(folder: Path, month: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [str(REPO / "examples" / "monthly"), str(folder), month]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG, check=False)


def test_the_job_releases_each_month_once_and_says_what_to_try_again(tmp_path):
    """The spec is that of the page; its ledger has a budget for one month."""
    spec = re.search(r"```toml\n# monthly.toml\n(.*?)```", PAGE, re.DOTALL)[1]
    (tmp_path / "monthly.toml").write_text(spec)
    ledger = [sys.executable, "-m", "keepsum", "ledger", "init", "ledger.db", "--dataset", "counts", "--budget", "0.4"]
    subprocess.run(ledger, cwd=tmp_path, timeout=HANG, check=True, capture_output=True)

    early = monthly(tmp_path, "2026-11")
    assert early.returncode == 5
    assert early.stderr.endswith("monthly: 2026-11: to be tried again by the next run\n")
    (tmp_path / "counts-2026-11.csv").write_text(TABLE)
    done = monthly(tmp_path, "2026-11")
    assert done.returncode == 0, done.stderr
    released = (tmp_path / "2026-11" / "table.csv").read_bytes()
    again = monthly(tmp_path, "2026-11")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (tmp_path / "2026-11" / "table.csv").read_bytes() == released

    (tmp_path / "counts-2026-12.csv").write_text(TABLE)
    spent = monthly(tmp_path, "2026-12")
    assert spent.returncode == 4
    assert "monthly: 2026-12: the budget is spent" in spent.stderr
    assert not (tmp_path / "2026-12").exists()
    (tmp_path / "2026-12").mkdir()
    assert monthly(tmp_path, "2026-12").returncode == 1
    assert monthly(tmp_path / "none", "2026-12").returncode == 2


# -- the container ----------------------------------------------------------------------------------


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Containerfile with what they say; comments and continued lines are taken care of."""
    lines = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*\n", "", text)).splitlines()
    return [(name.upper(), said.strip()) for name, _, said in (line.strip().partition(" ") for line in lines) if name]


KNOWN = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT", "CMD", "LABEL", "ENV", "ARG"}


def faults(text: str) -> list[str]:
    """What is wrong with a container's file, by rules that any reviewer has."""
    found = []
    read = instructions(text)
    names = [name for name, _ in read]
    found += [f"unknown: {name}" for name in names if name not in KNOWN]
    found += [] if names[:1] == ["FROM"] else ["FROM is not first"]
    for name, said in read:
        if name == "FROM" and not re.fullmatch(r"[a-z0-9]+(/[a-z0-9-]+)*:\d+\.\d+\.\d+[\w.-]*( AS \w+)?", said):
            found.append(f"no version of its own: {said}")
        if name in ("ENV", "ARG") and re.search(r"(?i)pass|secret|token|key", said):
            found.append(f"a secret: {said}")
        if name in ("ENTRYPOINT", "CMD") and not is_list(said):
            found.append(f"no list: {said}")
        if name == "COPY":
            *sources, _ = shlex.split(said)
            found += [
                f"no such file: {one}" for one in sources if not one.startswith("dist/") and not (REPO / one).exists()
            ]
        if name == "RUN":
            parsed = subprocess.run(["sh", "-n", "-c", said], capture_output=True, timeout=HANG, check=False)
            found += [] if parsed.returncode == 0 else [f"no shell: {said}"]
            found += ["a cache stays"] if "pip install" in said and "--no-cache-dir" not in said else []
            found += ["versions are open"] if "pip install" in said and "--constraint" not in said else []
    users = [said for name, said in read if name == "USER"]
    found += [] if users and re.fullmatch(r"[1-9]\d*", users[-1]) else ["runs as root"]
    return found


def is_list(said: str) -> bool:
    try:
        words = json.loads(said)
    except ValueError:
        return False
    return isinstance(words, list) and all(isinstance(word, str) for word in words)


def test_the_container_follows_the_rules():
    text = CONTAINER.read_text(encoding="utf-8")
    assert faults(text) == []
    said = dict(instructions(text))
    assert json.loads(said["ENTRYPOINT"]) == ["keepsum"]
    command = [sys.executable, "-m", "keepsum", *json.loads(said["CMD"]), "--help"]
    assert subprocess.run(command, capture_output=True, timeout=HANG, check=False).returncode == 0


GOOD = "FROM python:3.12.8-slim\nUSER 1\n"


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ("FROM python:latest\nUSER 1\n", "no version"),
        ("FROM python\nUSER 1\n", "no version"),
        ("USER 1\nFROM python:3.12.8\n", "FROM is not first"),
        ("FROM python:3.12.8\n", "runs as root"),
        (GOOD + "USER root\n", "runs as root"),
        (GOOD + "ENV API_TOKEN=x\n", "a secret"),
        (GOOD + "CMD keepsum release\n", "no list"),
        (GOOD + "COPY nothing.txt /x\n", "no such file"),
        (GOOD + "RUN if true; then\n", "no shell"),
        (GOOD + "RUN pip install keepsum\n", "a cache stays"),
        (GOOD + "INSTALL x\n", "unknown"),
    ],
)
def test_the_rules_can_fail(wrong, fault):
    assert any(one.startswith(fault) for one in faults(wrong))
