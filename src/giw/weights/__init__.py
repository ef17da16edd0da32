"""Density ratios: how much each training point counts for the validation distribution."""

from giw.weights.dynamic import dynamic_kmm
from giw.weights.effective import EffectiveSampleSizeWarning, effective_sample_size
from giw.weights.kmm import KMM, kmm

__all__ = [
    "KMM",
    "EffectiveSampleSizeWarning",
    "dynamic_kmm",
    "effective_sample_size",
    "kmm",
]
