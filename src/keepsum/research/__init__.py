"""The paper's own chains (``mcmc``), and what others do instead (``baselines``): for research and comparison."""
