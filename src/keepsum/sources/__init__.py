"""Files in and out: reading, writing, and atomic replacement."""
