"""Density ratios: how much each training point counts for the validation distribution."""

from giw.weights.kmm import KMM, kmm
from giw.weights.least_squares import LSIF, RULSIF, ULSIF, lsif, rulsif, ulsif
from giw.weights.log_linear import KLIEP, ClassifierRatio, classifier_ratio, kliep
from giw.weights.ratio import EffectiveSampleSizeWarning, effective_sample_size

__all__ = [
    "KLIEP",
    "KMM",
    "LSIF",
    "RULSIF",
    "ULSIF",
    "ClassifierRatio",
    "EffectiveSampleSizeWarning",
    "classifier_ratio",
    "effective_sample_size",
    "kliep",
    "kmm",
    "lsif",
    "rulsif",
    "ulsif",
]
