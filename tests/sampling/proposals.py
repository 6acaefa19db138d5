"""Single proposals of the scale mixture, and what they are drawn by, for tests that look inside."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.sampling.core.kernel_arguments import DONE, OutFloatMatrix, OutFloats, RowsTask, new_state
from keepsum.sampling.general.kernel_arguments import CHAIN_STATE, ChainRoom, MixtureRoom, MixtureTables
from keepsum.sampling.general.mixture import weigh
from sampling.probes import Probe

GENERAL = ("probe_general", "general_factors.c")
draw_integer = Probe(GENERAL, "try_integer", float, float, float, float)
invert = Probe(GENERAL, "try_inverse", OutFloatMatrix, OutFloats, OutFloatMatrix, OutFloatMatrix)
try_log_theta = Probe(GENERAL, "try_log_theta", float, float, OutFloats)
try_unit = Probe(GENERAL, "try_unit", np.uint64, OutFloats)


def log_theta(phi: float, square: float) -> float:
    """Ln of the weight of all whole numbers, as a proposal takes it."""
    found = np.empty(1)
    try_log_theta(phi, square, found)
    return float(found[0])


def unit(word: np.uint64) -> float:
    """The uniform number that a word stands for."""
    found = np.empty(1)
    try_unit(word, found)
    return float(found[0])


def propose(words: npt.NDArray[np.uint64], tables: MixtureTables, room: MixtureRoom, out: IntArray) -> float:
    """Sums of regions into ``out``, by the words of one proposal; ln of their weight."""
    log_weights = np.empty(1)
    task = RowsTask(0, 1, out.reshape(1, -1), ChainRoom(room, log_weights, np.empty_like(out)))
    assert weigh(words, new_state(CHAIN_STATE), tables, task) == DONE
    return float(log_weights[0])
