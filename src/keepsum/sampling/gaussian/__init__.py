"""Exact Gaussian and l2 Laplace noise on any lattice."""
