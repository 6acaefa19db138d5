"""Composition of releases and the ledger of a budget: to come, below ``releasing``."""
