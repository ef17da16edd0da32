"""Fit on training features, split validation features: the calibrated support split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from giw.checks import as_generator, as_labels, as_points, check_columns, check_positive, like
from giw.support.calibration import Sides, calibrate, conformal_rank, merge_cells
from giw.support.cells import choose_cells
from giw.support.halves import split_uneven_cells, tilt_of_cells, tilt_spread
from giw.support.hard_rule import (
    as_threshold,
    calibrated_rule,
    sampling_interval,
    threshold_rule,
)
from giw.support.holding_out import calibration_rows, sides_of, way_to_hold_out
from giw.support.mixture import Assumptions, Mixture, split_with_doubt
from giw.support.scorers import KNN, SameLabel, Scorer, as_scorer
from giw.support.separation import Groups, expectations, hidden_kinds
from giw.support.split import SupportSplit
from giw.support.training_rows import TrainingRows, as_training_rows, codes_of


class SupportSplitter(BaseEstimator):
    r"""Split validation points into those inside and those outside the training support.

    Every point is scored by its distance to the training features, and its score is ranked among
    those of held-out training rows of the same cell: a conformal p-value. Inside is
    :math:`p >` ``level``. The rule leans towards "outside" where in doubt, because an inside point
    called outside costs variance only and an outside point called inside costs bias.

    Training rows that occur several times (oversampling) count once, unless the columns take so few
    values that repeats are natural.

    Parameters
    ----------
    scorer : {"knn", "osvm", "mahalanobis"}, scorer or scikit-learn outlier detector, default="knn"
        How strange a point is. "osvm" is the published one-class SVM.
    level : float, default=0.05
        Share of inside points that the hard rule may call outside; more of it makes the inside
        set smaller and purer.
    least_posterior : float, default=0.0
        Points with a smaller posterior of being inside are outside too, whatever their p-value.
        At 0.5, where inside and outside overlap, a point joins the side that it more likely
        belongs to; where they do not, nothing changes. At 0 the level alone decides.
    same_label : bool, default=False
        Compare each point with training rows of its own label only; then (x, y) is split rather
        than x, labels are needed everywhere, and a point's label is its cell.
    membership : {"hard", "soft"}, default="hard"
        What the objective uses: the hard rule, or the posterior of being inside.
    cells : {"auto", "class", "cluster", "none"}, default="auto"
        Where scores are compared: among rows whose nearest training row has the same class (and,
        where there are rows enough, lies in the same of up to four clusters of the class), in
        k-means clusters, or all together. "auto" takes classes if labels are given and neighbours
        agree on them, clusters otherwise.
    n_clusters : int, default=8
        Number of clusters where clusters are the cells; small ones are merged.
    least_per_cell : int, default=50
        Cells with fewer calibration rows are merged with their neighbours.
    calibration : {"auto", "leave_one_out", "hold_out", "cross_fit"}, default="auto"
        How training rows are kept from scoring themselves. Leaving one out needs a scorer that
        can ("knn"), wastes nothing and is taken where possible. Otherwise a part of the rows is
        held out, or, for fewer than 800 rows, five folds take turns; averaging over folds makes
        p-values a little too large.
    calibration_share : float, default=0.25
        Share of the training rows that is held out.
    most_calibration : int, default=3_000
        At most so many rows are held out or used.
    threshold : None, float, "text" or "code", default=None
        Replaces the calibrated hard rule: inside where ``score_samples`` (minus the score) is
        above it. "text" is the 0.4 of the paper, "code" the 1e-4 of its authors' program, both
        made for "osvm". Nothing is held out then, and p-values compare with the training rows'
        own scores unless ``z_calibration`` is given.
    hide_parts : bool, default=True
        Hide parts of training from the rest to learn how strange strangers look, which the interval
        of the share inside rests on. False takes half the time and assumes the usual; which points
        are inside does not change.
    random_state : int, numpy generator or None, default=None
        Seeds the choice of held-out rows; None draws anew every time.

    Attributes
    ----------
    folds_ : list of Fold
        Reference rows, scorers and calibration scores.
    cells_ : str
        The kind of cell in use: "class", "cluster" or "none".
    classes_ : array or None
        Labels seen in training.
    assumptions_ : Assumptions
        Shapes of outside p-values to expect, from parts of training hidden from the rest.
    cell_tilt_ : array of shape (c,)
        How far p-values may be off when the distribution shifts within each cell.

    References
    ----------
    .. [1] Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, Springer, 2005.
    .. [2] Fang, Lu, Niu and Sugiyama, Generalizing Importance Weighting to A Universal Solver for
       Distribution Shift Problems, NeurIPS 2023.
    """

    def __init__(
        self,
        scorer: Any = "knn",
        *,
        level: float = 0.05,
        least_posterior: float = 0.0,
        same_label: bool = False,
        membership: str = "hard",
        cells: str = "auto",
        n_clusters: int = 8,
        least_per_cell: int = 50,
        calibration: str = "auto",
        calibration_share: float = 0.25,
        most_calibration: int = 3_000,
        threshold: float | str | None = None,
        hide_parts: bool = True,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.scorer = scorer
        self.level = level
        self.least_posterior = least_posterior
        self.same_label = same_label
        self.membership = membership
        self.cells = cells
        self.n_clusters = n_clusters
        self.least_per_cell = least_per_cell
        self.calibration = calibration
        self.calibration_share = calibration_share
        self.most_calibration = most_calibration
        self.threshold = threshold
        self.hide_parts = hide_parts
        self.random_state = random_state

    def fit(
        self,
        z_train: Any,
        y_train: Any | None = None,
        z_calibration: Any | None = None,
        y_calibration: Any | None = None,
    ) -> SupportSplitter:
        """Score held-out training rows against the rest.

        Parameters
        ----------
        z_train : array of shape (n, d), or chunks
            Training features; chunks are for more rows than fit in memory, with scorer "knn": a
            list of matrices, any iterable of them that can be walked through many times, or a
            function that returns a new iterator. They are kept, and walked through again by
            :meth:`split`. Where a net made them, it must not have been trained on the rows
            that calibrate; give those rows as ``z_calibration``.
        y_train : array of shape (n,), or with chunks a list of such arrays, optional
            Training labels, for cells and for noticing labels never seen.
        z_calibration, y_calibration : arrays of shape (r, d) and (r,), optional
            Training rows that the feature extractor has not seen; then all of ``z_train`` is
            reference and nothing more is held out.
        """
        self._check_parameters()
        generator = as_generator(self.random_state)
        rows = as_training_rows(z_train, y_train, z_calibration, y_calibration)
        self.classes_ = rows.classes
        scorer = as_scorer(self.scorer)
        if self.same_label:
            scorer = SameLabel(scorer)
        if rows.in_chunks and not isinstance(scorer, KNN):
            raise ValueError(
                f"{type(scorer).__name__} needs all training features in memory; chunks are for "
                "scorer='knn' with same_label=False, or pass a sample of the rows as one array"
            )

        thresholded = as_threshold(self.threshold) is not None
        how = way_to_hold_out(self.calibration, scorer, len(rows.z), thresholded=thresholded)
        cell = self._cells(rows, how, generator)  # (n,)
        sides, cells = sides_of(
            rows,
            cell,
            how,
            share=self.calibration_share,
            most=self.most_calibration,
            level=self.level,
            generator=generator,
        )
        folds = [calibrate(s, c, scorer) for s, c in zip(sides, cells, strict=True)]
        self.folds_ = merge_cells(folds, rows.z, cell, least=self.least_per_cell)
        if len(sides) == 1 and self.cells_ in ("class", "cluster"):
            self.folds_ = [
                split_uneven_cells(
                    self.folds_[0], sides[0], least=self.least_per_cell, generator=generator
                )
            ]
        self.train_cell_share_ = _shares(torch.cat([fold.calibration_cell for fold in self.folds_]))
        self._doubt(sides, scorer, generator)
        self.n_features_in_ = rows.z.shape[1]
        self.columns_ = list(z_train.columns) if hasattr(z_train, "columns") else None
        return self

    def split(self, z_val: Any, y_val: Any | None = None) -> SupportSplit:
        """Split validation features of shape (m, d), with labels of shape (m,) where known."""
        if not hasattr(self, "folds_"):
            raise ValueError("this splitter has seen no training features; call fit(z_train) first")
        if self.columns_ is not None and hasattr(z_val, "columns"):
            check_columns(self.columns_, z_val.columns, ("z_train", "z_val"))
        z = self._as_validation(z_val)
        unseen = self._unseen(y_val, len(z))  # (m,)
        label = None
        if self.same_label:
            if y_val is None:
                raise ValueError("same_label=True needs y_val")
            label = codes_of(as_labels(y_val, len(z), "y_val"), self.classes_, z.device)
        placed = [fold.place(z, label) for fold in self.folds_]
        score = [s for s, _ in placed]
        cell = [c for _, c in placed]
        rank, count = conformal_rank(self.folds_, score, cell)
        seen = torch.as_tensor(~unseen, device=z.device)
        p_value = torch.where(seen, rank / (count + 1), 0.0)
        assumptions = replace(
            self.assumptions_,
            tilt=tilt_spread(p_value.cpu().numpy(), cell[0].cpu().numpy(), self.cell_tilt_),
        )
        mixture = split_with_doubt(
            rank.cpu().numpy(), count.cpu().numpy(), unseen, assumptions=assumptions
        )
        mean_score = torch.stack(score).mean(dim=0)
        return self._pack(z_val, seen, p_value, mean_score, cell[0], count, mixture, assumptions)

    def _pack(
        self,
        z_val: Any,
        seen: Tensor,
        p_value: Tensor,
        score: Tensor,
        cell: Tensor,
        count: Tensor,
        mixture: Mixture,
        assumptions: Assumptions,
    ) -> SupportSplit:
        posterior = torch.as_tensor(mixture.posterior, device=score.device, dtype=score.dtype)
        share, interval = mixture.share, mixture.interval
        inside, rule = calibrated_rule(
            p_value, posterior, level=self.level, least_posterior=self.least_posterior
        )
        threshold = as_threshold(self.threshold)
        if threshold is not None:
            inside, rule = threshold_rule(score, seen, threshold=threshold)
            share, interval = sampling_interval(int(inside.sum()), len(inside))
        soft = self.membership == "soft"
        membership = posterior if soft else inside.to(score.dtype)
        held_out = torch.cat([fold.calibration_score for fold in self.folds_])
        return SupportSplit(
            inside=like(inside, z_val),
            p_value=like(p_value.to(score.dtype), z_val),
            posterior=like(posterior, z_val),
            score=like(score, z_val),
            membership=like(membership, z_val),
            alpha=float(membership.double().mean()),
            support_share=share,
            support_share_interval=interval,
            cell=like(cell, z_val),
            calibration_count=like(count, z_val),
            calibration_score=like(held_out, z_val),
            label_unseen=like(~seen, z_val),
            level=float(self.level),
            soft=soft,
            rule=rule,
            train_cell_share=like(self.train_cell_share_, z_val),
            assumptions=assumptions,
        )

    def _check_parameters(self) -> None:
        if not 0 < check_positive(self.level, "level") < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")
        if not 0 < check_positive(self.calibration_share, "calibration_share") < 1:
            raise ValueError(
                f"calibration_share must lie between 0 and 1, got {self.calibration_share}"
            )
        if not 0 <= self.least_posterior < 1:
            raise ValueError(
                f"least_posterior must be at least 0 and less than 1, got {self.least_posterior}"
            )
        for name, allowed in (
            ("membership", ("hard", "soft")),
            ("cells", ("auto", "class", "cluster", "none")),
            ("calibration", ("auto", "leave_one_out", "hold_out", "cross_fit")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        as_threshold(self.threshold)

    def _cells(self, rows: TrainingRows, how: str, generator: np.random.Generator) -> Tensor:
        """Cell of every training row, before small ones are merged, (n,)."""
        if self.same_label and rows.label is not None:
            self.cells_ = "label"
            return rows.label
        calibrating = calibration_rows(rows, how, self.calibration_share)
        self.cells_, cell = choose_cells(
            self.cells,
            rows.z,
            rows.label,
            n_clusters=self.n_clusters,
            calibration_rows=min(self.most_calibration, calibrating),
            generator=generator,
        )
        return cell

    def _doubt(self, sides: list[Sides], scorer: Scorer, generator: np.random.Generator) -> None:
        """Measure on training data what the share of a validation sample will rest on."""
        tilts = [
            tilt_of_cells(
                side.held_out,
                fold.calibration_score,
                fold.calibration_cell,
                cells=len(self.train_cell_share_),
                generator=generator,
            )
            for side, fold in zip(sides, self.folds_, strict=True)
        ]
        self.cell_tilt_ = np.sqrt(np.mean(np.square(tilts), axis=0))  # (c,)
        kinds: list[Groups] = []
        # a threshold is a rule that knows nothing of its own errors
        if self.hide_parts and as_threshold(self.threshold) is None:
            classes = self.cells_ == "class"
            kinds = hidden_kinds(
                sides[0],
                self.folds_[0].merged[self.folds_[0].cell],
                scorer,
                by_label=classes or self.same_label,
                classes=classes,
                generator=generator,
            )
        self.assumptions_ = expectations(kinds)

    def _as_validation(self, z_val: Any) -> Tensor:
        z = as_points(z_val, "z_val")
        reference = self.folds_[0].nearest.reference
        if z.shape[1] != self.n_features_in_:
            raise ValueError(
                f"z_train has {self.n_features_in_} features and z_val has {z.shape[1]}; "
                "both need the same columns in the same order"
            )
        return z if reference is None else z.to(reference.device, reference.dtype)

    def _unseen(self, y_val: Any | None, m: int) -> NDArray[np.bool_]:
        if y_val is None:
            return np.zeros(m, dtype=bool)
        labels = as_labels(y_val, m, "y_val")
        if self.classes_ is None:
            raise ValueError("y_val was given but fit saw no y_train; pass both or neither")
        return ~np.isin(labels, self.classes_)


def _shares(cell: Tensor) -> Tensor:
    """Share of the rows in each cell, (c,)."""
    return torch.bincount(cell).double() / len(cell)
