"""Every example of every command's help can be copied from a screen of 80 columns, and runs."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from keepsum.cli import app
from keepsum.cli.help_text import folded
from keepsum.specs.option import GROUPS

MAKE_FILES = Path(__file__).parent.parent.parent / "examples" / "files.py"
COMMANDS = (
    *(
        "",
        "accuracy",
        "app",
        "convergence",
        "help",
        "init",
        "keygen",
        "marginal",
        "plan",
        "postprocess",
        "release",
        "report",
    ),
    *("show", "verify"),
    *("ledger", "ledger budget", "ledger check", "ledger domain", "ledger export", "ledger import", "ledger init"),
    *("ledger show", "ledger withdraw"),
)
SLOW = ("accuracy", "convergence", "report")
KEY, PUBLISHED, NESTED, LEDGER = (
    "keepsum keygen key.pem",
    "keepsum release counts.csv --count n --keep county --epsilon 0.25 --output released.csv --sign key.pem --yes",
    "keepsum release counties.csv --count n --within county:state --keep state --epsilon 1 --output out/ --yes",
    "keepsum ledger init ledger.db --dataset pop2010 --budget 1.0",
)
CHARGED = [*(KEY, LEDGER), f"{PUBLISHED} --ledger ledger.db"]
# What must have been done before: examples of other commands.
BEFORE = {
    **{name: [KEY, PUBLISHED, NESTED] for name in ("marginal", "postprocess", "report", "show", "verify")},
    "release": ["keepsum init counts.csv --count n --keep county --epsilon 0.5 --output spec/"],
    "app": [LEDGER],
    **{f"ledger {name}": CHARGED for name in ("budget", "check", "export", "show")},
    "ledger domain": [LEDGER],
    "ledger withdraw": [*CHARGED, f"{PUBLISHED.replace('released', 'second')} --ledger ledger.db"],
    "ledger import": [KEY, PUBLISHED, LEDGER],
}
# Examples that end only when they are interrupted, or that ask, and what runs them instead.
NOT_HERE = {"app": "tests/desk/test_command.py", "keepsum init counts.csv": "tests/cli/test_init_counts.py"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def examples(text: str) -> list[str]:
    """The commands that a help text shows, as the lines that one copies: those that are indented further than text."""
    return re.findall(r"^ {5,}(keepsum\b(?:.*\\\n)*.*)$", ANSI.sub("", text), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def shown() -> dict[bool, dict[str, str]]:
    """The help of every command on a screen of 80 columns: printed by rich on a terminal, and plain."""
    patch = pytest.MonkeyPatch()
    patch.setenv("COLUMNS", "80")
    texts: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for terminal, by_command in texts.items():
        patch.setattr(sys, "stdout", Terminal() if terminal else io.StringIO())
        program = get_command(app.build())
        for command in COMMANDS:
            patch.setattr(sys, "stdout", Terminal() if terminal else io.StringIO())
            program([*command.split(), "--help"], prog_name="keepsum", standalone_mode=False)
            by_command[command] = sys.stdout.getvalue()
    patch.undo()
    return texts


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of ``make examples``."""
    folder = tmp_path_factory.mktemp("files")
    subprocess.run([sys.executable, MAKE_FILES, folder], check=True)
    return folder


def test_all_commands_are_here():
    program = get_command(app.build())
    inner = {f"ledger {name}" for name in program.commands["ledger"].commands}
    assert {"", *program.commands, *inner} == set(COMMANDS)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_of_examples_can_be_copied(shown, command, terminal):
    """No line is wider than the screen, and none goes on after a backslash with blanks behind it."""
    text = ANSI.sub("", shown[terminal][command])
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\\ +$", text, flags=re.MULTILINE)
    assert examples(text)
    for example in examples(text):
        assert shlex.split(example.replace("\\\n", " "))[0] == "keepsum"
    assert [shlex.split(e.replace("\\\n", " ")) for e in examples(shown[False][command])] == [
        shlex.split(e.replace("\\\n", " ")) for e in examples(text)
    ]


def test_a_long_line_goes_on_after_a_backslash():
    line = "    keepsum plan 'a  b.csv' --note \"it's a long note\" --epsilon 1 -o - > 'x y.csv'"
    for width in (30, 40, 60):
        lines = folded(line, width)
        assert max(map(len, lines.splitlines())) <= 40 or width > 40
        assert shlex.split(lines.replace("\\\n", " ")) == shlex.split(line)
        assert lines.count("\n") == lines.count("\\\n") > 0
    assert folded(line, 200) == line


@pytest.mark.parametrize("command", [pytest.param(c, marks=pytest.mark.audit) if c in SLOW else c for c in COMMANDS])
def test_examples_run_as_copied(commands, shown, files, command, tmp_path):
    folder = tmp_path / "files"
    subprocess.run(["cp", "-r", files, folder], check=True)
    for line in BEFORE.get(command, []):
        done = commands.shell(line, folder)
        assert done.returncode == 0, done.stdout
    for example in examples(shown[False][command]):
        if command in NOT_HERE or example in NOT_HERE:
            continue
        done = commands.shell(example, folder)
        assert done.returncode == 0, f"{example}\n{done.stdout}"


@pytest.mark.parametrize("terminal", [False, True])
def test_options_stand_in_groups(shown, terminal):
    """In a pipe as on a terminal, and how files are written stands in one place."""
    text = ANSI.sub("", shown[terminal]["release"])
    for group in GROUPS:
        assert len(re.findall(rf"^(?:╭─ )?{group}(?: ─|:$)", text, flags=re.MULTILINE)) == 1
    assert "keepsum help files" in " ".join(text.split())
    assert "[[total]]" not in text


def test_a_topic_of_help_is_a_command_or_files(inside, shown):
    assert b"Examples:" in inside("help", "plan").stdout
    assert inside("help", "ledger", "init").stdout.partition(b"[")[0].endswith(b" ledger init ")
    wrong = inside("help", "plans")
    assert wrong.returncode == 2
    assert b"The topic must be one of accuracy, app," in wrong.stderr


def test_declarations_of_help_are_read(commands, files, inside, tmp_path, monkeypatch):
    """Options for categories, and the files of ``--domain`` and ``--keep-file``, as help shows them."""
    monkeypatch.setenv("COLUMNS", "80")
    text = inside("help", "files").stdout.decode()
    folder = tmp_path / "files"
    subprocess.run(["cp", "-r", files, folder], check=True)
    options = re.findall(r"^ {4}(--(?:categories|within)(?:.*\\\n)*.*)$", text, flags=re.MULTILINE)
    declared = re.search(r"such as categories\.toml;.*?\n\n(.*?)\n\n", text, flags=re.DOTALL)
    totals = re.search(r"totals\.toml:\n\n(.*?)\n\n", text, flags=re.DOTALL)
    assert len(options) == 2
    (folder / "categories.toml").write_text(declared[1])
    (folder / "totals.toml").write_text(totals[1])
    for line in (
        *(f"keepsum plan --keep-total --epsilon 1 {option}" for option in options),
        "keepsum plan --domain categories.toml --within county:state --keep state --epsilon 1",
        "keepsum plan counts.csv --count n --keep-file totals.toml --epsilon 1",
    ):
        done = commands.shell(line, folder)
        assert done.returncode == 0, done.stdout
