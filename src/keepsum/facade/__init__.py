"""What users hold: plans and releases, and the functions that make them."""
