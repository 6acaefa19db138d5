"""Three-way tables under all two-way margins: exact l1 Laplace noise by splitting the layers.

``sampler.LayerSplitting`` draws; ``nodes`` and ``laws`` are its tables, ``referee`` decides what floats leave open.
"""
