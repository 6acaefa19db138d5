"""l1 Laplace noise with more accuracy in some totals, kept and focused totals nested: exact.

``tree.NestedTotals`` are the totals, ``sampler.NestedFocus`` draws, and ``marginals.FocusLaws`` is the law of any of
them.
"""
