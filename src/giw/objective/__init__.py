"""Per-sample losses in, one scalar out."""
