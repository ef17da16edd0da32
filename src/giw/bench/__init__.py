"""Experiments: methods side by side on the same draws."""
