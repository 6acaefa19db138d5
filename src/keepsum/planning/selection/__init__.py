"""A sampler for each group of blocks.

``select.select`` goes from the kind of a mechanism to the functions that choose; each returns a ``choice.Choice``:
the method, how exact it is, what it costs, and why none was better. ``l1``, ``gaussian`` and ``general`` know one
family each.
"""
