"""Every command of docs/ledger.md runs as it stands, and says what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from keepsum.cli.app import run

PAGE = (Path(__file__).parent.parent / "docs" / "ledger.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
(SHOWN,) = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_runs_and_the_refusal_is_the_one_shown(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    Path("counts.csv").write_text("county,sex,n\nCook,f,15\nCook,m,1\nLake,f,20\nLake,m,10\n")
    Path("domain.toml").write_text('county = ["Cook", "Lake"]\nsex = ["f", "m"]\nage = ["0-17", "18+"]\n')
    first, *others = BLOCKS
    for command in first.splitlines():
        assert run(shlex.split(command)[1:]) == 0, command
    capfd.readouterr()
    command, answer = SHOWN
    assert run(shlex.split(command)[1:]) == 2
    assert capfd.readouterr().err == answer
    assert [run(shlex.split(command)[1:]) for block in others for command in block.splitlines()] == [0]
