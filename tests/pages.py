"""The pages for readers, as what a reader would run: every block of code, and every command in a sentence or a table.

Blocks say by their language what they are:

- ``python``: run as it stands, all of a page in one namespace.
- ``sh``: lines for a shell.
- ``console``: commands after ``$``, each with all that it prints. Three dots, as a line or at the end of one, stand for
  all up to the next line that is shown.
- ``text``: what the Python block before it prints; or part of what the command before it prints.
- ``toml``: a file, whose name is the comment in its first line.

``keepsum ...`` in backticks is a command as well, if it names a file or a value. A block or a command that is not run
has a reason, ``<!-- not run: why -->``, in the line before the block or behind the command. What a block shows may
differ in its figures from run to run if ``<!-- varies: why -->`` stands before it.

Everything runs in one folder per page, from top to bottom; the files in it at the start are those of ``make examples``.
The commands in a row of a table have a folder of their own, with the same files: rows are ways to choose from.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

REPO = Path(__file__).parent.parent
PAGES = [
    *(REPO / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "experiments/README.md")),
    *sorted((REPO / "docs").rglob("*.md")),
]
LANGUAGES = ("python", "sh", "console", "text", "toml")
REASON = re.compile(r"<!-- (not run|varies): (.+?) -->", flags=re.DOTALL)
PROGRAMS = ("$ ", "keepsum ", "make ", "python ", "pip ", "import ", "spark-submit ")


@dataclass(frozen=True)
class Step:
    """Something to run, to write or to compare, or a reason why not."""

    kind: str  # a language, or "command" for one in a sentence
    text: str
    line: int
    why_not: str | None = None
    varies: bool = False
    row: int | None = None  # of a table, by its line


def steps(text: str) -> list[Step]:
    """What a page consists of, from top to bottom."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    found: list[Step] = []
    said = ("", "")
    line, row = 0, None
    for token in tokens:
        line = token.map[0] + 1 if token.map else line
        row = {"tr_open": line, "tr_close": None}.get(token.type, row)
        if token.type == "html_block":
            said = next(iter(REASON.findall(token.content)), ("", ""))
            continue
        if token.type in ("fence", "code_block"):
            why_not = said[1] if said[0] == "not run" else None
            kind = token.info if token.type == "fence" else "indented"
            found.append(Step(kind, token.content, line, why_not, said[0] == "varies"))
        for child, after in pairwise([*(token.children or []), token]):
            if child.type == "code_inline" and is_command(child.content, row, found):
                comment = REASON.match(after.content) if after.type == "html_inline" else None
                found.append(Step("command", child.content, line, comment[2] if comment else None, row=row))
        said = ("", "")
    return found


def is_command(code: str, row: int | None, before: list[Step]) -> bool:
    """Whether code in a sentence or a row is to be run: it names a file or a value besides the command and its options.

    After such a command in its row it is also one without. In a row three dots stand for a command that is left out.
    """
    program, *rest = code.split()
    if program != "keepsum":
        return row is not None and code.startswith("... -")
    rest = rest[2:] if rest[:1] == ["ledger"] else rest[1:]
    goes_on = row is not None and before != [] and before[-1].row == row
    return goes_on or any(not word.startswith("--") for word in rest)


def problems(text: str) -> list[str]:
    """What of a page is neither run nor has a reason."""
    wrong = []
    for step in steps(text):
        if step.why_not is not None:
            continue
        if step.kind == "indented":
            if step.text.startswith(PROGRAMS):
                wrong.append(f"line {step.line}: a command must be in a fenced block")
        elif step.kind == "command":
            if "..." in step.text:
                wrong.append(f"line {step.line}: a command must be complete")
        elif step.kind not in LANGUAGES:
            wrong.append(f"line {step.line}: no way to run a block of {step.kind or 'no language'!r}")
        elif step.kind == "toml" and not named(step):
            wrong.append(f"line {step.line}: the first line must name the file in a comment")
    return wrong


def named(step: Step) -> str | None:
    """The file that a block is, by the comment in its first line."""
    name = re.match(r"# ([\w.-]+\.toml)\b", step.text)
    return name[1] if name else None


def words(text: str) -> list[list[str]]:
    """The words of each line without figures, keys and times: what noise may change."""
    return [re.sub(r"-?\d[\d,.:TZ-]*", "#", line).split() for line in text.splitlines() if line.strip()]


def shows(shown: str, printed: str, varies: bool) -> bool:
    """Whether a page shows what was printed: all of it, but for what three dots stand for, and figures if they vary."""
    if varies:
        shown, printed = ("\n".join(" ".join(line) for line in words(text)) for text in (shown, printed))
    pattern = ""
    for line in shown.strip("\n").split("\n"):
        left_out = r"(?: .*)?\n(?:.*\n)*" if line.endswith(" ...") else r"\n"
        pattern += r"(?:.*\n)*" if line == "..." else re.escape(line.removesuffix(" ...")) + left_out
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def commands_of(step: Step) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what it prints."""
    for part in re.split(r"^\$ ", step.text, flags=re.MULTILINE)[1:]:
        command, _, answer = part.partition("\n")
        yield command, answer


class Reader:
    """Somebody who runs a page from top to bottom in a folder."""

    def __init__(self, files: Path, folder: Path, shell: Callable[[str, Path], Any]) -> None:
        self.files, self.folder, self.shell = files, folder, shell
        shutil.copytree(files, folder)
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed, self.by = "", ""  # by the last block or command, and its kind
        self.ran: list[tuple[str, str]] = []  # commands, and what they printed

    def read(self, page: str) -> None:
        """Run all of a page."""
        for step in steps(page):
            if step.why_not is None and step.kind != "indented":
                try:
                    getattr(self, step.kind)(step)
                except Exception as problem:
                    problem.add_note(f"line {step.line}:\n{step.text}")
                    raise
        self.all_is_shown()

    def all_is_shown(self) -> None:
        """What Python printed must be on the page."""
        assert self.by != "python" or self.printed == "", f"printed, and not on the page:\n{self.printed}"

    def run(self, lines: str, row: int | None = None) -> Any:
        """Run lines in a shell; those of a row in a folder of their own."""
        self.all_is_shown()
        folder = self.folder if row is None else self.folder.with_name(f"row-{row}")
        if not folder.exists():
            shutil.copytree(self.files, folder)
        done = self.shell(lines, folder)
        self.printed, self.by = done.stdout, "shell"
        self.ran.append((lines, done.stdout))
        return done

    def python(self, step: Step) -> None:
        """Run a block of Python."""
        self.all_is_shown()
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.chdir(self.folder):
            exec(compile(step.text, f"line {step.line} of the page", "exec"), self.names)  # noqa: S102
        self.printed, self.by = out.getvalue(), "python"

    def sh(self, step: Step) -> None:
        """Run lines of a shell, or a command of a sentence, all of which succeed."""
        done = self.run(step.text, step.row)
        assert done.returncode == 0, done.stdout

    command = sh

    def console(self, step: Step) -> None:
        """Run commands, each of which prints what is shown, whether it succeeds or not."""
        for line, answer in commands_of(step):
            printed = self.run(line).stdout
            assert shows(answer, printed, step.varies), f"$ {line}\n{printed}"

    def text(self, step: Step) -> None:
        """Compare what is shown with what was printed."""
        if self.by == "python":
            assert self.printed == step.text
        else:
            assert step.text in self.printed
        self.printed = ""

    def toml(self, step: Step) -> None:
        """Write a file; a second block of the same name goes on with it if its first line says so."""
        name = named(step)
        assert name is not None
        with (self.folder / name).open("a" if "goes on" in step.text.split("\n", 1)[0] else "w") as file:
            file.write(step.text)


def make_targets(text: str) -> set[str]:
    """The targets of make that a page names."""
    blocks = "".join(step.text for step in steps(text) if step.kind == "sh")
    lines = re.findall(r"^(?:[A-Z]+=\S+ )*make ([a-z-]+)", blocks, flags=re.MULTILINE)
    return {target for line in [*lines, *re.findall(r"`make ((?:[a-z-]+ ?)+)`", text)] for target in line.split()}
