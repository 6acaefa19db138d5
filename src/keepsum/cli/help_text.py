"""How help is laid out, and what it says of files, once for all commands."""

from __future__ import annotations

import re
import textwrap
from typing import Any

# How categories and files are written, for ``keepsum help files``, and the line of a command's help that says so.

SEE = """
How categories, totals and published figures are written, in options and in files: keepsum help files
"""
FILES = """Categories are declared by options:

    --categories 'education=Low,Medium,High,Very High' --categories 'town="Rome, NY",Utica'

    --within county:state --categories state=IL,WI --categories county:IL=Cook,Lake --categories county:WI=Lake

A name or label with a comma or a colon in it is put in double quotes, such as "Rome, NY" above.

Or by a file for --domain, such as categories.toml; a nested axis is a table with a line per parent:

    sex = ["f", "m"]
    state = ["IL", "WI"]
    [county]
    IL = ["Cook", "Lake"]
    WI = ["Lake"]

The rows of a release are in the order of the declared categories, or in the natural order of the labels (5-9 before
10-14) where none are declared, whatever the order of the file, unless --keep-order declares that order public.

Totals of any cells are declared by a file for --keep-file, such as totals.toml:

    [[total]]
    name = "coast"
    cells = [{county = ["Cook", "Kane"]}, {county = "Rock", sex = "f"}]

With --keep-order it may be matrix.csv: whole numbers, no header, one line per total, one number per row.

"""
PUBLISHED = """The file of --totals, such as published.csv, has columns for axes and the count (an empty axis means all
categories), or for total and count.
"""


# How help is laid out: sentences fill the width, and a command that is longer goes on after a backslash.
#
# So every example can be copied from the screen and run, whatever the width. A line that goes on must end with its
# backslash, which no blank may follow; rich fills lines up with blanks, which ``Trimmed`` takes off again.

CODE = " " * 4  # before the lines that are shown as they are
BETWEEN_WORDS = re.compile(r" +(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)")  # blanks outside of quotes
PADDING = re.compile(r"(?:\x1b\[[0-9;]*m| )+(?=\n|$)")  # blanks at the end of a line, and styles among them
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def paragraphs(text: str, width: int) -> list[str]:
    """The paragraphs of a help text, with its lines as they are shown."""
    return [
        "\n".join(folded(line, width) for line in block.splitlines())
        if block.startswith(CODE)
        else textwrap.fill(" ".join(block.split()), width, break_long_words=False, break_on_hyphens=False)
        for block in re.split(r"\n\n+", text.strip("\n"))
    ]


def folded(line: str, width: int) -> str:
    """A line of code in lines of that width, each but the last with a backslash at its end."""
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    first, *words = BETWEEN_WORDS.split(line.strip())
    # An option stays together with its value, and a redirection with its file.
    parts = [first]
    for word in words:
        if (word.startswith("-") and word != "-") or word in (">", "|"):
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) + len(" \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(indent + CODE + part)
    return " \\\n".join(lines)


class Trimmed:
    """A stream without blanks at the ends of lines."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write what rich made of help."""
        self.stream.write(PADDING.sub(lambda blanks: "".join(STYLE.findall(blanks[0])), text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
