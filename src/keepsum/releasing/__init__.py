"""Releases, their certificates, and how they are verified."""
