"""The ledger: every release of a dataset is charged to its budget before its noise is drawn, and none is forgotten.

``ledger.Ledger`` and ``entries.Budget`` are what users hold; ``store`` keeps entries in a chain of hashes, ``state``
replays them, ``assessment`` decides whether a release fits, and ``person`` what one person loses by all releases.
"""
