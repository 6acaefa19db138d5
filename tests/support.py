"""Helpers that more than one test file uses."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

import keepsum as ks
from keepsum.specs.faces import in_shell

# Seconds after which a process or a thread is given up, far more than any takes on the busiest machine: it ends what
# would never end. No test is about time.
HANG = 1800

EVERY = 5  # `make test` has one case in so many of a test that takes long in all; the number stands here alone
AUDITED = 2  # of the cases between, so many are in `make audit`, the others in `make exhaustive`

R_PACKAGES = "library(jsonlite); library(testthat)"

# How to tell that an outside service is there.
SERVICES: dict[str, Callable[[], bool]] = {
    "chromium": lambda: shutil.which("chromium") is not None,
    "postgres": lambda: postgres_programs() is not None,
    "java": lambda: shutil.which("java") is not None,
    "cc": lambda: c_compiler() is not None,
    "r": lambda: has_r(),
}


def has_r() -> bool:
    """R, with the packages that the tests of the package in r/ need."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", R_PACKAGES], capture_output=True, check=False).returncode == 0


def c_compiler() -> str | None:
    """A C compiler that runs."""
    return next((name for name in ("cc", "gcc", "clang") if _runs(name)), None)


def _runs(name: str) -> bool:
    try:
        return subprocess.run([name, "--version"], capture_output=True, check=False, timeout=HANG).returncode == 0
    except OSError:
        return False


def postgres_programs() -> Path | None:
    """The folder of Debian's newest Postgres server, which is not on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return folders[-1].parent if folders else None


def margins(*shape: int) -> ks.Invariants:
    """A table of that shape under all its margins of one way less."""
    axes = [f"x{k}" for k in range(len(shape))]
    domain = ks.Domain({axis: list(range(n)) for axis, n in zip(axes, shape, strict=True)})
    return ks.Invariants.margins(domain, [[a for a in axes if a != left] for left in axes])


def cycle(*shape: int) -> ks.Invariants:
    """A four-way table under the two-way margins of neighbours in the cycle a, b, c, d; no two-way table."""
    domain = ks.Domain({axis: [f"{axis}{k}" for k in range(n)] for axis, n in zip("abcd", shape, strict=True)})
    return ks.Invariants.margins(domain, CYCLE)


def cube_with_zeros(length: int) -> ks.Invariants:
    """A cube under all two-way margins with structural zeros on its diagonal."""
    domain = ks.Domain({axis: list(range(length)) for axis in "abc"})
    domain = domain.without(*(dict.fromkeys("abc", k) for k in range(length)))
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def table_over(keep: ks.Invariants, seed: int = 1) -> ks.Table:
    """Made-up counts, none of them small, for the cells of these totals."""
    assert keep.domain is not None
    return ks.Table.from_array(np.random.default_rng(seed).integers(20, 200, size=keep.size), axes=keep.domain)


CYCLE = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]]
# Totals for the samplers that are not exact: the totals, and l1 Laplace noise that they draw.
ROUNDED = cycle(2, 3, 2, 3), ks.Laplace.per_unit(epsilon=0.25)  # rejection from a mixture, about 1% accepted
BY_MIXTURE = cycle(3, 3, 3, 3), ks.Laplace.per_unit(epsilon=1)  # some hundred steps of a chain of mixture proposals
BY_HEAT_BATH = cube_with_zeros(5), ks.Laplace.per_unit(epsilon=1)  # some thousand sweeps of heat-bath moves


def missing_service(name: str, required: str) -> str | None:
    """What to do about a service that is not there: 'fail' where KEEPSUM_REQUIRE names it, else 'skip'."""
    if SERVICES[name]():
        return None
    return "fail" if name in required.replace(",", " ").split() else "skip"


def titles_inside(figure: Any) -> bool:
    """Whether every title lies in the box of its figure, as it is written to a file."""
    figure.draw_without_rendering()
    titles = [title for axes in figure.axes for title in (axes.title, axes._left_title) if title.get_text()]
    assert titles
    boxes = [title.get_window_extent() for title in titles]
    edge = figure.bbox
    return all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= edge.x1 and box.y1 <= edge.y1 for box in boxes)


@contextmanager
def refused_in_shell(words: str) -> Iterator[None]:
    """What is done inside is refused, in words that match these once the shell says them."""
    with pytest.raises(ks.InputError) as caught:
        yield
    assert re.search(words, in_shell(str(caught.value))), in_shell(str(caught.value))


# The status of a command that fails, by what it says: an account of the rule that does not know the errors.
STATUSES = (
    (6, ("already exists", "There must be no spec", "must not exist yet")),
    (2, ("has no such table", "have the same name", "it is not such a database", "it is not UTF-8 text")),
    (2, ("it is not well-formed CSV", "it is not a whole Parquet file")),
    (5, ("must be readable", "must be writable", "must be in an existing folder", "does not exist", "does not wait")),
    (
        5,
        ("must be a file, and there is none", "of a release, and there is none", "must be a folder, and there is none"),
    ),
    (5, ("another process is writing", "in use by another process", "The command failed", "was closed before")),
    (4, ("must allow for the release", "must be charged to a budget", "A budget per person must be")),
    (1, ("must verify to be imported", "must verify before it is used")),
    (7, ("must fit in memory", "Memory ran out", "No sampler", "sampler for every block", "memory limit of this")),
    (7, ("for l1 Laplace noise, got", "for Gaussian noise, got", "for l2 Laplace noise, got")),
)


def refusal(done: Any) -> int:
    """The status that a command that failed must have, by what it said on standard error."""
    said = done.stderr.decode(errors="replace")
    return next((status for status, words in STATUSES if any(word in said for word in words)), 2)


def mostly_audit(names: str | Sequence[str], cases: Iterable[Any], **settings: Any) -> pytest.MarkDecorator:
    """As ``pytest.mark.parametrize``; all but some of the cases, by their places, belong to ``make audit``.

    Some of these are in ``make exhaustive`` alone.
    """
    several = len(names.split(",") if isinstance(names, str) else names) > 1
    marked = []
    for place, case in enumerate(cases):
        if not isinstance(case, ParameterSet):
            case = pytest.param(*case) if several else pytest.param(case)
        kept_for = "" if place % EVERY == 0 else "audit" if place % EVERY <= AUDITED else "exhaustive"
        audit = (getattr(pytest.mark, kept_for),) if kept_for else ()
        marked.append(pytest.param(*case.values, marks=[*case.marks, *audit], id=case.id))
    return pytest.mark.parametrize(names, marked, **settings)
