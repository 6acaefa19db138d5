"""The paper's Algorithms 1 to 3, and how near a chain is to its target: for research and comparison."""

from keepsum.mcmc.metropolis import ChainInfo, Chains, metropolis

__all__ = ["ChainInfo", "Chains", "metropolis"]
