"""What pilots chose for a block that the general samplers draw, and the cache that keeps it for later plans.

An entry holds choices only: the method, the threshold of a mixture, the cap of a chain, its steps and its lag, and why
no exact sampler applies. Nothing that a certificate states of a sampler is taken from it: bounds and rounding are
worked out again, and proposals per step and acceptance rates are measured again, by the same pilots whether an entry
was found or not, so that both ways lead to the same plan. How near a chain comes to its target after that many steps
is shown by coupled pairs. So a forged entry can make draws slow, or a chain short, and then the certificate says that
it is short; it cannot make it say more than holds. (Whoever can write to the cache can do worse: meeting times are kept
there, too. It is the user's own folder.)

An entry is named by a hash of the totals over the regions, the sizes of the regions, the number of blocks, the noise,
the limits of the selection, the text of this package, and the versions and the processor that floats depend on. No
label and no count enters it: a plan has none. An entry that is damaged, or was made for another name, is left aside.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum._cache import CacheFile
from keepsum.planning.selection.choice import Reason
from keepsum.sampling.core.library import machine, text_of_kernels

PACKAGE = Path(__file__).parents[2]
MOST_STEPS, LONGEST_LAG = 10**10, 100
REJECTION_TAUS = (0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)

Limits: TypeAlias = list[tuple[str, object]]
GeneralMethod: TypeAlias = Literal["mixture_rejection", "mixture_chain", "heat_bath_chain", "gaussian_chain"]


@dataclass(frozen=True)
class Outcome:
    """What pilots chose for a block.

    Attributes
    ----------
    method
        How it is drawn; None if no general sampler applies.
    reasons
        Why no exact one does.
    tau, stretch
        The threshold of the mixture, and the stretch of its exponents.
    log_cap
        Ln of the weight from which on every proposal passes.
    steps, lag
        Those of the chain.
    """

    method: GeneralMethod | None
    reasons: tuple[Reason, ...] = ()
    tau: float = 1.0
    stretch: float = 1.0
    log_cap: float = 0.0
    steps: int = 1
    lag: int = 4

    @property
    def is_possible(self) -> bool:
        """Whether pilots could have chosen this."""
        from keepsum.sampling.general.mixture import STRETCHES, TAUS  # not loaded to see that there is no entry

        taus = REJECTION_TAUS if self.method == "mixture_rejection" else TAUS
        return (
            (self.method not in ("mixture_rejection", "mixture_chain") or self.tau in taus)
            and self.stretch in STRETCHES
            and abs(self.log_cap) < 1e6
            and 1 <= self.steps <= MOST_STEPS
            and 1 <= self.lag <= LONGEST_LAG
            and all(reason.lowest is None and reason.highest is None for reason in self.reasons)
        )


@dataclass(frozen=True)
class _Entry:
    """An outcome as it is stored, with the name that it was stored under and a hash of it."""

    name: str
    outcome: Outcome
    digest: str


class OutcomeStore:
    """The file that holds the outcome of one block's pilots.

    Parameters
    ----------
    kind
        The kind of noise and its parameter.
    matrix, sizes, count
        The totals, the sizes of the regions, and the number of blocks.
    """

    def __init__(self, kind: str, matrix: sparse.csr_array, sizes: IntArray, count: int) -> None:
        digest = hashlib.sha256(repr((kind, count, matrix.shape)).encode())
        for array in (matrix.indptr, matrix.indices, matrix.data, sizes):
            digest.update(repr(len(array)).encode() + np.asarray(array, dtype="<i8").tobytes())
        self._name = digest.hexdigest()
        self._file = CacheFile("plans", f"{self._name}.json")

    @property
    def has_entry(self) -> bool:
        """Whether there is an entry, good or bad."""
        return self._file.read() is not None

    def read(self, limits: Limits) -> Outcome | None:
        """The stored outcome; None if there is none, or the entry is damaged, or has another name or other limits."""
        text, name = self._file.read(), self._name_with(limits)  # the name from before any pilots are run
        if text is None:
            return None
        try:
            entry = msgspec.json.decode(text, type=_Entry)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if entry.name != name or entry.digest != _digest(name, entry.outcome):
            return None
        return entry.outcome if entry.outcome.is_possible else None

    def drop(self) -> None:
        """Remove an entry, if there is one: of another version, say, that had to run pilots for this block."""
        self._file.remove()

    def write(self, outcome: Outcome, limits: Limits) -> None:
        """Keep an outcome, if there is where."""
        name = self._name_with(limits)
        entry = _Entry(name, outcome, _digest(name, outcome))
        self._file.write(msgspec.json.encode(entry).decode())

    def _name_with(self, limits: Limits) -> str:
        """The name under these limits of the selection, in these surroundings; most blocks have no pilots."""
        return hashlib.sha256(repr((_surroundings(), self._name, sorted(limits))).encode()).hexdigest()


def _digest(name: str, outcome: Outcome) -> str:
    return hashlib.sha256(name.encode() + msgspec.json.encode(outcome)).hexdigest()


@lru_cache(maxsize=1)
def _surroundings() -> str:
    """What the outcome of a pilot depends on beside its block: the text of the package, and how floats are added up."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        with suppress(OSError):
            digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {text_of_kernels()} {version('scipy')} {machine()}"


def limits_of(module: str, names: dict[str, object]) -> Limits:
    """The constants of a module of the selection, by their names.

    >>> limits_of("here", {"BUDGET": 1, "budget": 2, "_Entry": 3})
    [('here.BUDGET', '1')]
    """
    return [(f"{module}.{name}", repr(value)) for name, value in names.items() if name.isupper()]
