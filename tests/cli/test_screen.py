"""What goes to a terminal, in this process: nothing that comes from a file does anything to it."""

import contextlib
import io
import json

import msgspec
import pytest

import keepsum as ks
from keepsum.cli.app import run
from keepsum.cli.screen import error, pairs_shown, progress, show, show_checks, show_json, shown
from keepsum.convergence.observe import observe
from support import BY_MIXTURE, mostly_audit

FORGED = "a\nok      signature           valid, by the given key\x1b[1A\u202e\x9b2J\u2028[bold]:warning:"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(params=["terminal", "pipe"])
def lines_of(request, monkeypatch):
    """What an action writes, line by line."""
    for name, value in {"TERM": "dumb", "COLUMNS": "400", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)

    def call(action) -> list[str]:
        stream = Terminal() if request.param == "terminal" else io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            action()
        return plain_lines(stream.getvalue())

    return call


def plain_lines(text: str) -> list[str]:
    """Lines of a screen, without the styles that rich writes around them."""
    for style in ("\x1b[0m", "\x1b[1m", "\x1b[1;36m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[33m"):
        text = text.replace(style, "")
    return text.rstrip("\n").split("\n")


@mostly_audit(
    "say",
    [
        lambda: error(f"File {FORGED} must be readable."),
        lambda: show([("Table", [FORGED])]),
        lambda: show_checks([("kept totals", False, FORGED)]),
        lambda: print(shown(FORGED)),
    ],
)
def test_text_from_files_stays_on_its_line(lines_of, say):
    lines = lines_of(say)
    assert all(line.isprintable() and not line.startswith("ok") for line in lines)
    assert "\\n" in lines[0]
    assert ":warning:" in lines[-1]


@pytest.mark.parametrize("width", ["60", "90"])
def test_wrapped_lines_keep_their_indent_on_a_terminal(monkeypatch, width):
    for name, value in {"TERM": "dumb", "COLUMNS": width, "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    with contextlib.redirect_stdout(stream):
        show([("One person", ["per-person epsilon 1", "  " + "county: to any value epsilon 1 (l1 distance 4) " * 4])])
    _, *rest = plain_lines(stream.getvalue())
    assert len(rest) > 2
    assert {len(line) - len(line.lstrip()) for line in rest} == {len("One person") + 2 + 2}


def test_json_has_no_character_that_does_something(lines_of):
    lines = lines_of(lambda: show_json({"words": FORGED + "😀"}))
    assert all(line.isprintable() for line in lines)
    assert json.loads("\n".join(lines)) == {"words": FORGED + "😀"}


def test_verify_prints_a_line_for_each_check(tmp_path, lines_of):
    table = ks.Table.from_array([[5, 6], [7, 8]], axes={"county": [FORGED, "b"], "sex": ["f", "m"]})
    path = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=0.25)).save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    data = json.loads(certificate.read_bytes())
    data["kept"]["parts"][0]["totals"][0]["value"] += 1
    certificate.write_bytes(msgspec.json.encode(data))
    lines = lines_of(lambda: run(["verify", str(path)]))
    assert sum(line.split()[:2] == ["ok", "signature"] for line in lines) == 1
    assert any(line.startswith("FAILED") and "\\nok" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_names_of_files_stay_on_their_line(tmp_path, lines_of):
    lines = lines_of(
        lambda: run(["plan", str(tmp_path / "a\nkeepsum: done\x1b[2J.csv"), "--count", "n", "--epsilon", "1"])
    )
    lines += lines_of(lambda: run(["keygen", str(tmp_path / "a\nkey.pem")]))
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith(("keepsum: done", "key.pem")) for line in lines)


def test_a_file_without_a_header_is_not_printed(tmp_path, lines_of, released):
    path = released.save(tmp_path / "out.csv")
    bare = tmp_path / "bare.csv"
    bare.write_text("Alpha,Low,8675309\n")
    for arguments in ([path, "--totals", bare], [bare, tmp_path / "out.certificate.json"]):
        shown_lines = lines_of(lambda arguments=arguments: run(["verify", *map(str, arguments)]))
        words = " ".join(" ".join(shown_lines).split())  # lines are broken to the width of a terminal
        assert "the first line may be data" in words
        assert "8675309" not in words


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_stages_of_the_library_are_shown_on_a_terminal_and_nowhere_else(monkeypatch, stream):
    """The weights of proposals are examined after the last pair: the bar says so, and how much is drawn."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("keepsum.convergence.observe.WEIGHTS", 100)  # how many are examined is shown, whatever it is
    chain = ks.plan(keep=BY_MIXTURE[0], mechanism=BY_MIXTURE[1]).samplers[0].chain
    with contextlib.redirect_stderr(stream), progress() as step:
        observe(chain, 1, 20, add=lambda _: pairs_shown(step)(20, 20))
        ks.plan(keep=BY_MIXTURE[0], mechanism=BY_MIXTURE[1]).sample(2)
    stages = ("running coupled chains: 20 of 20 pairs", "examining the weights of", "drawing the noise: 100%")
    places = [stream.getvalue().find(stage) for stage in stages]
    assert (places == sorted(places) and -1 not in places) == stream.isatty()
    assert bool(stream.getvalue()) == stream.isatty()
