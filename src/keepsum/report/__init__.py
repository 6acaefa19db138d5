"""A release for its readers: a page, a registry entry, and answers for reviewers, from what is published alone.

``writing.write_report`` makes all of them; ``facts.facts_of`` is what they say, ``page`` and ``figures`` how it
looks.
"""
