"""Files in and out: reading, writing, and atomic replacement.

``reading.table_in`` reads a table from any file, ``declarations`` what is declared in files, ``records`` counts
microdata; ``writing.table_bytes`` is a table as a file, and ``atomic.write_file`` puts it there whole or not at all.
"""
