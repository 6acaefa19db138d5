"""What the tests share: the paper's examples, golden files, and outside services."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

import keepsum as ks
from support import missing_service
from wording import check_each_error

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"

settings.register_profile("keepsum", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("keepsum")


def pytest_configure(config: pytest.Config) -> None:
    """Undo what a shell does in the background or under nohup: signals that are ignored stay so in every child."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


check_each_error()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first, while the process is small: the larger it is, the longer a fork takes."""
    items.sort(key=lambda item: not hasattr(getattr(item, "module", None), "Fork"))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What chains showed is kept apart from the user's own cache, and the tests of a worker share it."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["KEEPSUM_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def need() -> Callable[[str], None]:
    """need("chromium") skips the test, or fails it where KEEPSUM_REQUIRE says that chromium must be there."""

    def check(name: str) -> None:
        verdict = missing_service(name, os.environ.get("KEEPSUM_REQUIRE", ""))
        if verdict == "fail":
            pytest.fail(f"KEEPSUM_REQUIRE names {name}, but it is not installed.")
        if verdict == "skip":
            pytest.skip(f"{name} is not installed.")

    return check


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a file in tests/golden; KEEPSUM_GOLDEN=write writes the file instead."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("KEEPSUM_GOLDEN") == "write":
            path.write_text(text + "\n", encoding="utf-8")
        assert text + "\n" == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def children() -> ks.Table:
    """Delinquent children by county and education, the paper's Table 4 with Gamma's total as it is, 25."""
    return ks.Table.from_array(
        [[15, 1, 3, 1], [20, 10, 10, 15], [3, 10, 10, 2], [12, 14, 7, 2]],
        axes={
            "county": ["Alpha", "Beta", "Gamma", "Delta"],
            "education": ["Low", "Medium", "High", "Very High"],
        },
    )


@pytest.fixture
def circles() -> ks.Invariants:
    """14 records as the seven regions of three circles, two records each."""
    regions = ["A", "B", "C", "AB", "AC", "BC", "ABC"]
    members = [[2 * r + i for r, name in enumerate(regions) if circle in name for i in (0, 1)] for circle in "ABC"]
    return ks.Invariants.subsets(14, members, names=["circle A", "circle B", "circle C"])


@pytest.fixture
def released(children: ks.Table) -> ks.Release:
    """The children's table with both margins kept."""
    return ks.release(children, keep=["county", "education", []], mechanism=ks.Laplace.per_unit(epsilon=0.25))
