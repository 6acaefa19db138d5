"""The curator's desk: a page in the browser that takes a table from upload to a verified release."""
