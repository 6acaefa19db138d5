"""l1 Laplace noise with more accuracy in some totals, kept and focused totals nested: exact."""
