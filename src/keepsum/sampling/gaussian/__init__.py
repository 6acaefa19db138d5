"""Gaussian and l2 Laplace noise on a lattice, exactly; slow where narrow in many dimensions (docs/gaussian.md)."""
