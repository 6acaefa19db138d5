"""Releases, their certificates, and their verification.

``release.prepare`` finds all that a curator must know and ``release.draw`` spends; ``certificate.CertificateRecord``
is the public document, ``destination`` writes it with its table, ``verify.verify`` checks both, and ``wording`` has
the sentences.
"""
