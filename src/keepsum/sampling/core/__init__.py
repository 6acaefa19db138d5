"""The one door to randomness, rigorous reals, and how kernels are driven.

``rng.rng`` opens the door and ``rng.Stream`` is what a task reads; ``balls.ball`` is a real with a proved error;
``kernel.Kernel`` is a function in C, which ``driving.run`` feeds with words and whose ties it has settled.
"""
