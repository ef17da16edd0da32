"""Density ratios: how much each training point counts for the validation distribution."""

from giw.weights.classifier import ClassifierRatio, classifier_ratio
from giw.weights.effective import EffectiveSampleSizeWarning, effective_sample_size
from giw.weights.kliep import KLIEP, kliep
from giw.weights.kmm import KMM, kmm
from giw.weights.least_squares import RULSIF, ULSIF, rulsif, ulsif
from giw.weights.lsif import LSIF, lsif

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
