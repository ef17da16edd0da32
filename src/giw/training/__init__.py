"""One loop for all methods."""
