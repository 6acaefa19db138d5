"""Releases that repeat: what ``keepsum.toml`` declares, and how a release is built from it."""
