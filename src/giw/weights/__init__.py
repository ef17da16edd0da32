"""Density ratios: how much each training point counts for the validation distribution."""
