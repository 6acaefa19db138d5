"""The one door to randomness, rigorous reals, and how kernels are driven."""
