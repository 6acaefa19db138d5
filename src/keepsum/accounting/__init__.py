"""What releases cost together: composition of their guarantees, as mathematics, without any file.

``Cost`` is one release and ``Total`` several (``total``), ``compose`` adds them up, ``joint_distances`` measures one
person against the kept totals of all releases, ``series_epsilon`` is for Gaussian releases that were fixed in
advance, and ``events`` hands costs to ``dp_accounting``. The proofs are in ``docs/accounting.md``.
"""
