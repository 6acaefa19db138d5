"""The ledger: every release of a dataset is charged to its budget before its noise is drawn, and none is forgotten.

``chain`` links entries by hashes, ``store`` keeps them in one SQLite file, ``entries`` says what they hold, ``state``
replays them, ``budget`` and ``joint`` decide whether a release fits (``assessment``), ``checking`` compares a ledger
with certificates, and ``ledger`` is what users hold.
"""
