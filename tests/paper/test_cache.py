"""A step is run once for its parameters and its code; a file that was not finished counts for nothing."""

from __future__ import annotations

import pytest

from experiments import cache as module
from experiments.cache import Cache

RUNS = []


def square(x):
    RUNS.append(x)
    if x < 0:
        raise ValueError("stopped")
    return {"y": [x * x], "word": "done"}


@pytest.fixture
def cache(tmp_path):
    RUNS.clear()
    return Cache(tmp_path / "cache", lambda line: None)


def test_runs_once(cache):
    first, again = cache.step(square, x=3), cache.step(square, x=3)
    assert RUNS == [3]
    assert first["y"].tolist() == again["y"].tolist() == [9]
    assert str(again["word"]) == "done"
    assert float(again["seconds"]) >= 0
    cache.step(square, x=4)
    assert RUNS == [3, 4]


def test_other_code_runs_again(cache, monkeypatch):
    cache.step(square, x=3)
    monkeypatch.setattr(module, "code_version", lambda _: "another")
    cache.step(square, x=3)
    assert RUNS == [3, 3]


def test_goes_on_where_it_was_stopped(cache):
    cache.step(square, x=1)
    with pytest.raises(ValueError, match="stopped"):
        cache.step(square, x=-1)
    (kept,) = cache.folder.iterdir()
    kept.with_name("square-half.npz.part").write_bytes(b"half")
    cache.step(square, x=1)
    assert RUNS == [1, -1]


def test_says_what_it_runs(tmp_path):
    lines = []
    cache = Cache(tmp_path, lines.append)
    cache.step(square, x=2)
    cache.step(square, x=2)
    assert lines == ['square {"x": 2}']
