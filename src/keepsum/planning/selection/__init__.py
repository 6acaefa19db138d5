"""A sampler for each group of blocks."""
