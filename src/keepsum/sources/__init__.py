"""Files in and out: reading, writing, and files that are there in whole or not at all."""
