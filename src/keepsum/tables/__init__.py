"""What the user declares: axes, cells, kept totals, and a table of confidential counts."""
