"""Whatever a column, a file or an option is called: a failure is one printable line, valid JSON, and shows no count."""

import csv
import json

import pytest

from keepsum._saying import BETWEEN, CLOSE, OPEN
from keepsum.cli import app

A_MARK = f'{OPEN}option{BETWEEN}"epsilon"{BETWEEN}\ue0f3{BETWEEN}{BETWEEN}with{CLOSE}'  # with this process's number
NAMES = [
    "within={x}", "carry=", "--keep", "a\nb", "a\rb", "a\x1b[2J", "a\x9b2J\u202eb", "<script>x</script>", "%s {0}",
    "'q\"", "x" * 2000, A_MARK,
]  # fmt: skip
COUNT = "7123"  # the first digits of every count


def commands(name: str) -> list[list[str]]:
    """Commands that fail for a name, or would if it was read wrongly."""
    quoted = '"' + name.replace('"', '""') + '"'
    table = ["t.csv", "--count", "n", "--epsilon", "1", "--keep-total"]
    return [
        ["plan", *table, "--keep", "none"],
        ["plan", *table, "--axes", "sex"],
        ["plan", *table, "--within", f"{quoted}:{quoted}"],
        ["plan", *table, "--focus", f"{quoted}=-1"],
        ["plan", *table, "--focus", f"{quoted}=1"],
        ["plan", "t.csv", "--count", quoted, "--epsilon", "1", "--keep-total"],
        ["plan", "--spec", name],
        ["plan", *table, "--epsilon", name],
    ]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_failure_is_one_printable_line_and_valid_json(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[label, sex, f"{COUNT}{k}"] for k, (label, sex) in enumerate(["Af", "Am", "Bf", "Bm"])]
        csv.writer(file).writerows([[name, "sex", "n"], *rows])
    for command in commands(name):
        status = app.run([*command, "--json"])
        output, complaint = capsys.readouterr()
        assert status in (0, 2, 5), command
        assert ("error" in json.loads(output)) == (status != 0)
        assert all(line.isprintable() for line in [*complaint.split("\n"), *output.split("\n")])
        assert len(complaint) < 3000
        assert COUNT not in output + complaint
