"""Releases, their certificates, and their verification."""
