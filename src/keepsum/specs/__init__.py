"""Releases that repeat: what ``keepsum.toml`` and the options of the shell declare.

``spec.Spec`` is a release as data, with one record per option (``options.OPTIONS``); ``job.Job`` is one release to
make of it, ``building`` builds its parts, ``writing`` writes it again, and ``faces`` says options in each face's
words.
"""
