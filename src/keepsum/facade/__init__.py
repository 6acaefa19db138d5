"""Plans, releases and certificates as users hold them, and the functions that make them.

``objects.Plan``, ``objects.Release`` and ``objects.Certificate``; ``functions`` has ``ks.plan``, ``ks.release`` and
their like, ``choosing`` what finds a privacy loss, and ``estimates.Marginal`` tables that are margins of a release.
"""
