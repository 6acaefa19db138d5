"""The command line. A leaf: nothing imports it but ``keepsum_shell``, which starts it."""
