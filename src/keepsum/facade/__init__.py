"""Plans and releases as users hold them, and the functions that make them."""
