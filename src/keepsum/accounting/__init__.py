"""What releases cost together: composition of their guarantees. The ledger of a budget is ``keepsum.ledger``.

``cost`` is one release, ``composition`` adds them up to a ``total``, ``conversion`` turns zCDP into (epsilon, delta),
``parts`` checks what parallel composition requires, ``joint`` measures one person against the kept totals of all
releases, and ``events`` hands costs to ``dp_accounting``. The proofs are in ``docs/accounting.md``.
"""
