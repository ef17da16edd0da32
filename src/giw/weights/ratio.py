"""The common face of the ratio estimators: check, fit a model, weigh."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from giw.checks import as_rows, check_positive, like_input
from giw.tables.chunks import Chunks
from giw.weights.effective import warn_if_few
from giw.weights.samples import Samples, blocks

Array = NDArray[np.float64]


class Model(Protocol):
    """A ratio as a function of points in common units, up to a factor."""

    def __call__(self, x: Array) -> Array:
        """Ratio at each point, (n, d) → (n,); never negative."""


class Ratio(BaseEstimator):
    """Fits a density ratio to two samples, holds mean-one weights, and weighs new points.

    Attributes
    ----------
    weight_ : array of shape (n,)
        Weights at the training points, mean one.
    model_ : callable
        The fitted ratio, in common units and before rescaling.
    """

    standardize: bool = True
    takes_chunks: ClassVar[bool] = False

    def fit(self, x_train: Any, x_val: Any, val_weight: Any | None = None) -> Any:
        """Estimate the ratio from training points (n, d) and validation points (m, d).

        Parameters
        ----------
        x_train : array-like of shape (n, d), or chunks
            Chunks are for data that do not fit in memory, where the estimator can: a list of
            matrices, any iterable of them that can be walked through several times, or a function
            that returns a new iterator.
        x_val : array-like of shape (m, d), or chunks
            Validation points; chunks as for ``x_train``.
        val_weight : array-like of shape (m,), optional
            Membership of each validation point, between 0 and 1; a point of weight zero counts
            for nothing.
        """
        self._check_parameters()
        samples = Samples.of(x_train, x_val, val_weight, self.standardize)
        in_pieces = isinstance(samples.train, Chunks)
        if in_pieces and not self.takes_chunks:
            raise ValueError(
                f"{type(self).__name__} needs all data in memory; giw.ULSIF and giw.RULSIF take "
                "chunks, or pass a sample of the rows as one array"
            )
        self.units_ = samples.units
        self.n_features_in_ = len(samples.units.shift)
        self.model_ = self._fit_model(samples)
        raw = np.concatenate([self.model_(part) for part in blocks(samples.train)])
        self.scale_ = self._scale(raw)
        weight = raw / self.scale_
        warn_if_few(weight, type(self).__name__)
        self.weight_ = weight if in_pieces else like_input(weight.astype(samples.dtype), x_train)
        return self

    def weigh(self, x_new: Any) -> Any:
        """Weights at new points (q, d), on the scale of those at the training points."""
        check_is_fitted(self, "model_")
        new = as_rows(x_new, "x_new")
        if new.shape[1] != self.n_features_in_:
            raise ValueError(
                f"x_new has {new.shape[1]} features and the estimator was fitted with "
                f"{self.n_features_in_}; pass the same columns in the same order"
            )
        raw = np.concatenate([self.model_(self.units_(part)) for part in blocks(new)])
        return like_input((raw / self.scale_).astype(new.dtype), x_new)

    def _scale(self, raw: Array) -> float:
        """By what to divide, so that training points have mean one."""
        mean = float(raw.mean())
        if not mean > 0:
            raise ValueError(
                f"{type(self).__name__} finds a ratio of zero at every training point: no "
                "validation point lies within reach of the training data. Look at "
                "giw.SupportSplitter, or use a wider bandwidth"
            )
        return mean

    @abstractmethod
    def _fit_model(self, samples: Samples) -> Model:
        """Choose parameters and fit; with ``takes_chunks``, to samples in chunks as well."""

    def _check_parameters(self) -> None:
        """Refuse impossible parameters."""
        for name, value in self.get_params().items():
            if name in ("bandwidth", "ridge"):
                check_auto(value, name, ("auto", "median") if name == "bandwidth" else ("auto",))


def check_auto(value: str | float, name: str, words: tuple[str, ...] = ("auto",)) -> None:
    """A positive number, or one of a few words."""
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name} must be one of {words} or a positive number, got {value!r}")
        return
    check_positive(value, name)
