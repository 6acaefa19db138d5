"""What stands below the options of a command's help: how categories and files are written."""

from __future__ import annotations

FILES = """Categories:

    --categories 'education=Low,Medium,High,Very High' --categories 'town="Rome, NY",Utica'

    --within county:state --categories 'county:IL=Cook,Lake' --categories 'county:WI=Lake'

A name or label with a comma or a colon in it is put in double quotes: --drop '"Region, state",Age group'

The rows of a release are in the order of the declared categories, or in the natural order of the labels (5-9 before
10-14) where none are declared, whatever the order of the file, unless --keep-order declares that order public.

Files:

    categories.toml, for --domain (a nested axis is a table, with a line per parent):

        sex = ["f", "m"]

        [county]

        IL = ["Cook", "Lake"]

    totals.toml, for --keep-file:

        [[total]]

        name = "coast"

        cells = [{county = ["A", "B"]}, {county = "C", sex = "f"}]

    matrix.csv, for --keep-file with --keep-order: whole numbers, no header, one line per total, one number per row
"""
PUBLISHED = """
    published.csv, for --totals: columns for axes and the count (an empty axis means all categories); or total and count
"""
