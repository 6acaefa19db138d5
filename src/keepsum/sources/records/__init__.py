"""Records (microdata) counted into tables, in files, data frames and databases.

``declaring.declare_cells`` says what is counted, ``counting.count_records`` counts it where the records are, and
``opening`` and ``connecting`` open files and databases for reading only.
"""
