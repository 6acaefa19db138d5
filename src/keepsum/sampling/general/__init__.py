"""l1 Laplace noise on any lattice: a scale mixture, and chains."""
