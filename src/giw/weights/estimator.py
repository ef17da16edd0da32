"""The common face of the ratio estimators: check, fit a model, weigh."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from giw.checks import as_membership, as_pair, as_points, check_positive, like
from giw.tables.chunks import Chunks, as_chunks, one_or_more
from giw.weights.basis import (
    SELECTION_ROWS,
    Moments,
    Units,
    common_units,
    evenly_spread,
    representative_rows,
    row_blocks,
)
from giw.weights.effective import warn_if_few


class Model(Protocol):
    """A ratio as a function of points in common units, up to a factor."""

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at each point, (n, d) → (n,); never negative."""


@dataclass(frozen=True)
class TwoSamples:
    """Training and validation points in common units, and what is needed to choose parameters."""

    train: Tensor  # (n, d)
    val: Tensor  # (m, d), membership above zero
    share: Tensor  # (m,), membership divided by its sum

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return len(self.train)

    def train_blocks(self) -> Iterator[Tensor]:
        """Training points, a block at a time."""
        return row_blocks(self.train)

    def val_blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Validation points and their shares, a block at a time."""
        return zip(row_blocks(self.val), row_blocks(self.share), strict=True)

    def some_train(self, most: int) -> Tensor:
        """At most so many training points, evenly spread."""
        return self.train[representative_rows(self.train, most)]

    def some_val(self, most: int) -> Tensor:
        """At most so many validation points, evenly spread."""
        return self.val[representative_rows(self.val, most)]

    def few(self, most: int = SELECTION_ROWS) -> TwoSamples:
        """At most so many rows of each: enough to choose a bandwidth and a penalty."""
        rows = representative_rows(self.val, most)
        share = self.share[rows]
        train = self.train[representative_rows(self.train, most)]
        return TwoSamples(train, self.val[rows], share / share.sum())

    @property
    def can_hold_out(self) -> bool:
        """Whether a validation point can be left out and others remain: at least three."""
        return len(self.val) >= 3 and float(self.share.max()) < 0.9


@dataclass(frozen=True)
class ChunkedSamples:
    """Two samples of which only a block of rows is in memory at a time, and one number per row."""

    train: Chunks
    val: Chunks
    share: Tensor  # (m,), membership divided by its sum

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return len(self.train)

    def train_blocks(self) -> Iterator[Tensor]:
        """Training points, a block at a time."""
        return iter(self.train)

    def val_blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Validation points and their shares, a block at a time."""
        return zip(self.val, row_blocks(self.share), strict=True)

    def some_train(self, most: int) -> Tensor:
        """At most so many training points, evenly spread."""
        return self.train.rows(evenly_spread(self._train_sums, most))

    def some_val(self, most: int) -> Tensor:
        """At most so many validation points, evenly spread."""
        return self.val.rows(evenly_spread(self._val_sums, most))

    def few(self, most: int = SELECTION_ROWS) -> TwoSamples:
        """At most so many rows of each: enough to choose a bandwidth and a penalty."""
        rows = evenly_spread(self._val_sums, most)
        share = self.share[rows]
        return TwoSamples(self.some_train(most), self.val.rows(rows), share / share.sum())

    @property
    def can_hold_out(self) -> bool:
        """Whether a validation point can be left out and others remain: at least three."""
        return len(self.share) >= 3 and float(self.share.max()) < 0.9

    @cached_property
    def _train_sums(self) -> Tensor:
        return self.train.per_row(lambda block: block.sum(-1))  # (n,)

    @cached_property
    def _val_sums(self) -> Tensor:
        return self.val.per_row(lambda block: block.sum(-1))  # (m,)


Samples = TwoSamples | ChunkedSamples


def check_members(val_weight: Any | None, val: Tensor) -> Tensor:
    """Membership of each validation point, (..., m); not all of them zero."""
    member = as_membership(val_weight, tuple(val.shape[:-1]), "val_weight", val)
    if not bool((member.sum(-1) > 0).all()):
        raise ValueError(
            "val_weight is zero for every validation point: no point is left to match; "
            "use weights of one, or look at why the split calls everything outside"
        )
    return member


def check_auto(value: str | float, name: str, words: tuple[str, ...] = ("auto",)) -> None:
    """A positive number, or one of a few words."""
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name} must be one of {words} or a positive number, got {value!r}")
        return
    check_positive(value, name)


def ratio_in_blocks(model: Model, units: Units, x: Tensor) -> Tensor:
    """Ratio at points in their own units, a block of rows at a time."""
    return torch.cat([model(units(part)) for part in row_blocks(x)])


class RatioEstimator(BaseEstimator):
    """Fits a ratio to two samples, holds mean-one weights, and weighs new points.

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
        pieces = [as_chunks(x_train, "x_train"), as_chunks(x_val, "x_val")]
        if any(found is not None for found in pieces):
            return self._fit_chunks(x_train, x_val, val_weight)
        train, val = as_pair(x_train, x_val)
        member = check_members(val_weight, val)
        val, member = val[member > 0], member[member > 0]
        share = member.double() / member.double().sum()
        of_train = Moments.of((part, torch.ones_like(part[:, 0])) for part in row_blocks(train))
        of_val = Moments.of(zip(row_blocks(val), row_blocks(share), strict=True))
        self.units_ = common_units(of_train, of_val, standardize=self.standardize)
        samples = TwoSamples(self.units_(train), self.units_(val), share)
        self.n_features_in_ = train.shape[1]
        self.model_ = self._fit_model(samples)
        raw = ratio_in_blocks(self.model_, self.units_, train)
        self.scale_ = self._scale(raw)
        weight = raw / self.scale_
        warn_if_few(weight, type(self).__name__)
        self.weight_ = like(weight.to(train.dtype), x_train)
        return self

    def _fit_chunks(self, x_train: Any, x_val: Any, val_weight: Any | None) -> Any:
        """The same, a block of rows at a time; estimators that can override :meth:`_fit_model`."""
        if not self.takes_chunks:
            raise ValueError(
                f"{type(self).__name__} needs all data in memory; giw.ULSIF and giw.RULSIF take "
                "chunks, or pass a sample of the rows as one array"
            )
        train, val = one_or_more(x_train, "x_train"), one_or_more(x_val, "x_val")
        member = check_members(val_weight, torch.empty(len(val), 1, dtype=torch.float64))
        val, member = val.where(member > 0), member[member > 0]
        share = member / member.sum()
        of_train = Moments.of((part, torch.ones_like(part[:, 0])) for part in train)
        of_val = Moments.of(zip(val, row_blocks(share), strict=True))
        self.n_features_in_ = len(of_train.mean)
        if len(of_val.mean) != self.n_features_in_:
            raise ValueError(
                f"x_train has {self.n_features_in_} features and x_val has {len(of_val.mean)}; "
                "both need the same columns in the same order"
            )
        self.units_ = common_units(of_train, of_val, standardize=self.standardize)
        samples = ChunkedSamples(train.through(self.units_), val.through(self.units_), share)
        self.model_ = self._fit_model(samples)
        raw = samples.train.per_row(self.model_)
        self.scale_ = self._scale(raw)
        weight = raw / self.scale_
        warn_if_few(weight, type(self).__name__)
        self.weight_ = weight.cpu().numpy()
        return self

    def weigh(self, x_new: Any) -> Any:
        """Weights at new points (q, d), on the scale of those at the training points."""
        check_is_fitted(self, "model_")
        new = as_points(x_new, "x_new")
        if new.shape[1] != self.n_features_in_:
            raise ValueError(
                f"x_new has {new.shape[1]} features and the estimator was fitted with "
                f"{self.n_features_in_}; pass the same columns in the same order"
            )
        units = Units(self.units_.shift.to(new.device), self.units_.scale.to(new.device))
        weight = ratio_in_blocks(self.model_, units, new) / self.scale_
        return like(weight.to(new.dtype), x_new)

    def _scale(self, raw: Tensor) -> float:
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
    def _fit_model(self, samples: Any) -> Model:
        """Choose parameters and fit; with ``takes_chunks``, to samples in chunks as well."""

    def _check_parameters(self) -> None:
        """Refuse impossible parameters."""
        for name, value in self.get_params().items():
            if name in ("bandwidth", "ridge"):
                check_auto(value, name, ("auto", "median") if name == "bandwidth" else ("auto",))
