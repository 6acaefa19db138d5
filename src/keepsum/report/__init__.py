"""The report of a release: facts from what is published, then one HTML page of them."""
