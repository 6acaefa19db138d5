"""Exact l1 Laplace noise.

``forced_sums.ForcedSums`` and ``FreeCells`` draw cells given their sum, ``rejection.SolvedRegions`` small overlaps;
``splitting`` draws all decomposable totals, ``layers`` three-way tables, ``focus`` nested totals with weights.
"""
