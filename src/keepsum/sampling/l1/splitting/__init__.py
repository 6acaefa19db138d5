"""l1 Laplace noise under every decomposable set of totals, exact, by splitting columns family by family.

``bundles.SplitTable`` is what is drawn, ``sampler.ColumnSplitting`` draws it, ``laws`` and ``packing`` are its
tables, ``referee`` decides what floats leave open, and ``slices`` turns focused totals into kept ones.
"""
