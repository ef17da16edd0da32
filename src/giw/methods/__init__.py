"""One short file for each method."""
