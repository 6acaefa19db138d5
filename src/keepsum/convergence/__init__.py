"""Meeting times, bounds, and how near a chain comes to its target."""
