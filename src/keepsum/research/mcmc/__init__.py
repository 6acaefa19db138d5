"""The paper's Algorithms 1 to 3, and how near a chain is to its target: for research and comparison."""

from keepsum.convergence.bounds import LagChoice, TvBound, choose_lag, tv_upper_bound
from keepsum.convergence.plot import plot_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.research.mcmc.coupling import CoupledKernel, Draws, ManyAtOnce, meeting_times, meeting_times_of
from keepsum.research.mcmc.diagnostics import effective_sample_size, r_hat
from keepsum.research.mcmc.metropolis import ChainInfo, Chains, metropolis
from keepsum.research.mcmc.reference import LatticeMetropolis

__all__ = [
    "ChainInfo",
    "Chains",
    "CoupledKernel",
    "Draws",
    "LagChoice",
    "LatticeMetropolis",
    "ManyAtOnce",
    "MeetingTimes",
    "TvBound",
    "choose_lag",
    "effective_sample_size",
    "meeting_times",
    "meeting_times_of",
    "metropolis",
    "plot_bound",
    "r_hat",
    "tv_upper_bound",
]


def __dir__() -> list[str]:
    return __all__
