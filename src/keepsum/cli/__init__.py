"""The command line. A leaf: nothing imports it but ``keepsum_shell``, which starts it.

``app`` is the program, ``declaration`` the options that commands share, ``releases`` what ``keepsum release`` does
step by step, ``asking`` what ``keepsum init`` asks, and ``screen`` how all of them print.
"""
