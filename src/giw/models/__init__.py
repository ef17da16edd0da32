"""The nets of the paper, and one for tables."""
