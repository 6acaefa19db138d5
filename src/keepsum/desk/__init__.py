"""The page in the browser that takes a table from upload to a verified release.

``desk.Desk`` holds the draft and what came of it, ``deriving`` makes what follows from it, ``server`` and ``serving``
answer the browser behind ``guards``, and ``views`` has what each page shows.
"""
