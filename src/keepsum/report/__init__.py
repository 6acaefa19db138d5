"""What a release says to people and registries, made from its certificate alone."""
