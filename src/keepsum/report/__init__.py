"""A release for its readers: a page of facts from what is published, a registry entry, and answers for reviewers."""
