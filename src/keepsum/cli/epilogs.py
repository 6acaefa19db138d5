"""What stands below the examples of a command's help: how categories and files are written."""

from __future__ import annotations

FILES = """Categories are declared by options:

    --categories 'education=Low,Medium,High,Very High' --categories 'town="Rome, NY",Utica'

    --within county:state --categories state=IL,WI --categories county:IL=Cook,Lake --categories county:WI=Lake

A name or label with a comma or a colon in it is put in double quotes, such as "Rome, NY" above.

Or by a file for --domain, such as categories.toml; a nested axis is a table with a line per parent:

    sex = ["f", "m"]
    state = ["IL", "WI"]
    [county]
    IL = ["Cook", "Lake"]
    WI = ["Lake"]

The rows of a release are in the order of the declared categories, or in the natural order of the labels (5-9 before
10-14) where none are declared, whatever the order of the file, unless --keep-order declares that order public.

Totals of any cells are declared by a file for --keep-file, such as totals.toml:

    [[total]]
    name = "coast"
    cells = [{county = ["Cook", "Kane"]}, {county = "Rock", sex = "f"}]

With --keep-order it may be matrix.csv: whole numbers, no header, one line per total, one number per row.

"""
PUBLISHED = """The file of --totals, such as published.csv, has columns for axes and the count (an empty axis means all
categories), or for total and count.
"""
