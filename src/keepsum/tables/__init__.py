"""What the user declares: axes, cells, kept totals, and a table of confidential counts.

``domain.Domain`` are the cells, ``invariants.Invariants`` the totals to keep, ``table.Table`` the counts, which are
never shown, and ``released.ReleasedTable`` the published ones; ``findings`` and ``traps`` say what must be declared
first.
"""
