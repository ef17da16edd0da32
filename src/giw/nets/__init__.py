"""Nets that are trained under a shift."""
