"""l1 Laplace noise in two-way tables of any shape, exact, by splitting the columns."""
