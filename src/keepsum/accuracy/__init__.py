"""How large the noise of a plan is, before any budget is spent, and which cells its kept totals give away.

``noise.Noise`` is the law of any linear query, ``margins.Accuracy`` and ``levels`` are margins of error, ``choose``
and ``shares`` find the loss that a margin takes, and ``disclosure`` finds cells that kept totals determine or bound.
"""
