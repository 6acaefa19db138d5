"""Exact l1 Laplace noise."""
