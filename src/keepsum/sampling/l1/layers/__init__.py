"""Three-way tables under all two-way margins: exact l1 Laplace noise by splitting the layers."""
