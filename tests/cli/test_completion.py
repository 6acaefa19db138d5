"""What a shell completes: commands, options, and columns from the header alone; never a count."""

import os

import polars as pl
import pytest

from command import installed
from keepsum.cli.completion import header
from support import mostly_audit


@pytest.fixture
def complete(tmp_path):
    """The completions of a line."""

    def call(line: str) -> list[str]:
        environment = os.environ | {
            "_KEEPSUM_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        done = installed(cwd=tmp_path, env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().split()

    return call


@pytest.mark.audit
def test_commands_options_and_columns(complete, tmp_path):
    (tmp_path / "in.csv").write_text("county,education,n\nA,low,5\n")
    assert complete("keepsum sh") == ["show"]
    assert complete("keepsum acc") == ["accuracy"]
    assert complete("keepsum accuracy in.csv --keep county,e") == ["county,education"]
    assert complete("keepsum accuracy --target") == ["--target-moe", "--target"]
    assert "--keep-total" in complete("keepsum plan --keep")
    assert complete("keepsum plan in.csv --count ") == ["county", "education", "n"]
    assert complete("keepsum plan in.csv --keep county,e") == ["county,education"]
    assert complete("keepsum release in.csv --within education:c") == ["education:county"]
    assert complete("keepsum plan --count ") == []
    assert complete("keepsum plan none.csv --count ") == []


def test_completion_can_be_shown(tmp_path):
    assert b"--install-completion" in installed("--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "semicolons.csv", "mark.csv"])
def test_headers_of_every_kind(tmp_path, name):
    frame, path = pl.DataFrame({"county": ["A"], "n": [8675309]}), tmp_path / name
    if name.endswith("csv"):
        separator = ";" if name == "semicolons.csv" else ","
        frame.write_csv(path, separator=separator, include_bom=name == "mark.csv")
    else:
        (frame.write_parquet if name.endswith("parquet") else frame.write_ipc)(path)
    assert header(path) == ["county", "n"]


@mostly_audit("data", [b"A,8675309\nB,5\n", b"", b"\xff\xfe\n", b"a\x1b[2J,n\n"])
def test_what_may_be_data_is_not_completed(complete, tmp_path, data):
    (tmp_path / "in.csv").write_bytes(data)
    assert complete("keepsum plan in.csv --count ") == []
