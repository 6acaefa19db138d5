"""From kept totals and a mechanism to regions, blocks, and a sampler for each.

``plan.compile_plan`` does it, and ``plan.CompiledPlan`` is all that follows: ``samplers`` draws, ``distances`` says
how far apart one person's tables are, ``focus`` is for totals with a weight of their own, and ``describe`` puts it
into words.
"""
