"""What the user declares: axes, cells, kept totals, and a table with confidential counts."""
