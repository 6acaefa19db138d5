"""Records (microdata) counted into tables, in files, data frames and databases."""
