"""l1 Laplace noise on any lattice, by rejection or by chains.

``chains`` has the samplers (``MixtureRejection``, ``MixtureChain``, ``HeatBathChain``), ``mixture`` and ``heat_bath``
their moves, ``mixture_bounds`` what is proved of them, and ``weights`` what their weights tell.
"""
