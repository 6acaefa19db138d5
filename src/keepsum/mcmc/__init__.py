"""The paper's Algorithms 1 to 3, and how near a chain is to its target: for research and comparison."""

from keepsum.mcmc.bounds import LagChoice, TvBound, choose_lag, tv_upper_bound
from keepsum.mcmc.coupling import meeting_times
from keepsum.mcmc.diagnostics import effective_sample_size, r_hat
from keepsum.mcmc.draws import Draws
from keepsum.mcmc.metropolis import ChainInfo, Chains, metropolis
from keepsum.mcmc.pairs import Kernel, ManyAtOnce, meeting_times_of
from keepsum.mcmc.plotting import plot_bound
from keepsum.mcmc.reference import LatticeMetropolis
from keepsum.mcmc.times import MeetingTimes

__all__ = [
    "ChainInfo",
    "Chains",
    "Draws",
    "Kernel",
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
