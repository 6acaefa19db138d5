"""The cases, one file per subject."""

from importlib import import_module

SUBJECTS = (
    "noise", "cells", "tables", "three_way", "paper", "lattices", "general", "acceptance", "stated", "nonnegative",
    "chains", "startup", "nanoseconds", "files", "records", "ledger", "accuracy", "focus",
)  # fmt: skip


def load() -> None:
    """Put all cases on the list, in this order."""
    for subject in SUBJECTS:
        import_module(f"benchmarks.cases.{subject}")
