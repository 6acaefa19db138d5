"""Kept totals and a mechanism to regions, blocks, and a sampler for each."""
