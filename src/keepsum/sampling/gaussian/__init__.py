"""Gaussian and l2 Laplace noise on a lattice, exactly; slow where narrow in many dimensions (docs/gaussian.md).

``sums.FreeGaussian``, ``sums.SumsGaussian`` and ``blocks.BlockGaussian`` are the parts of a ``sums.LatticeGaussian``;
``common_scale`` is l2 Laplace noise, and ``factors`` what centres and widths are computed from.
"""
