"""Clean samples, before any shift."""
