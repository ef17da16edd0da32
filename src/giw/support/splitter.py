"""Fit on training features, split validation features: the calibrated support split."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from giw.checks import as_generator, as_labels, as_pair, as_points, check_positive, like
from giw.data.chunks import as_chunks
from giw.support.calibration import Sides, calibrate, conformal_rank, folds_of
from giw.support.cells import (
    AGREEMENT,
    cells_within,
    cluster,
    merge_small_cells,
    neighbour_agreement,
)
from giw.support.copies import first_occurrences
from giw.support.halves import split_uneven_cells, tilt_of_cells, tilt_spread
from giw.support.mixture import Assumptions, Mixture, split_with_doubt
from giw.support.rows import Rows, blocks_of, means_by, only, take
from giw.support.scorers import KNN, PUBLISHED_THRESHOLDS, SameLabel, Scorer, as_scorer
from giw.support.separation import Groups, expectations, hidden_kinds
from giw.support.split import SupportSplit

FOLDS = 5  # that take turns in cross-fitting
ENOUGH_TO_HOLD_OUT = 800  # training rows of which a quarter calibrates well enough


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
        chunks = as_chunks(z_train, "z_train")
        z: Rows = as_points(z_train, "z_train") if chunks is None else chunks  # (n, d)
        _check_spread(z)
        held_out = None
        if z_calibration is not None and chunks is None:
            z, held_out = as_pair(z_train, z_calibration, ("z_train", "z_calibration"))
        elif z_calibration is not None:
            held_out = as_pair(next(blocks_of(z)), z_calibration, ("z_train", "z_calibration"))[1]
        if z_calibration is None and y_calibration is not None:
            raise ValueError("y_calibration came without z_calibration; pass both or neither")
        if chunks is not None and isinstance(y_train, list | tuple):
            y_train = np.concatenate([np.asarray(part) for part in y_train])
        labels = None if y_train is None else as_labels(y_train, len(z), "y_train")
        extra = None
        if y_calibration is not None and held_out is not None:
            extra = as_labels(y_calibration, len(held_out), "y_calibration")
        self.classes_ = _classes(labels, extra)
        kept = first_occurrences(z)
        if kept is not None:
            mask = torch.zeros(len(z), dtype=torch.bool, device=z.device)
            mask[torch.as_tensor(kept, device=z.device)] = True
            z = only(z, mask)
            labels = None if labels is None else labels[kept]
        label = self._codes(labels, z.device)
        scorer = as_scorer(self.scorer)
        if self.same_label:
            scorer = SameLabel(scorer)
        if chunks is not None and not isinstance(scorer, KNN):
            raise ValueError(
                f"{type(scorer).__name__} needs all training features in memory; chunks are for "
                "scorer='knn' with same_label=False, or pass a sample of the rows as one array"
            )

        how = self._how(scorer, len(z))
        rows = len(z) if held_out is None else len(held_out)
        if held_out is None and how == "hold_out":
            rows = int(self.calibration_share * rows)
        cell = self._cells(z, label, rows, generator)  # (n,)
        if held_out is not None or how == "leave_one_out":
            pool: Rows = z
            pool_label = label
            if held_out is not None:
                pool, pool_label = held_out, self._codes(extra, z.device)
            some = _at_most(self.most_calibration, len(pool), generator).to(z.device)
            self._check_enough(len(some) - (held_out is None))
            theirs = None if pool_label is None else pool_label[some]
            sides = [Sides(z, label, take(pool, some), theirs, within=held_out is None)]
            cells = [cell]
        else:
            sides, cells = [], []
            for out in self._fold_rows(how, len(z), generator):
                keep = torch.ones(len(z), dtype=torch.bool, device=z.device)
                keep[torch.as_tensor(out, device=z.device)] = False
                mine = None if label is None else label[keep]
                theirs = None if label is None else label[~keep]
                sides.append(Sides(only(z, keep), mine, take(z, (~keep).nonzero()[:, 0]), theirs))
                cells.append(cell[keep])
        self.folds_ = [calibrate(s, c, scorer) for s, c in zip(sides, cells, strict=True)]
        self._merge(z, cell)
        if len(sides) == 1 and self.cells_ in ("class", "cluster"):
            self._split_uneven(sides[0], generator)
        self._doubt(sides, scorer, generator)
        self.n_features_in_ = z.shape[1]
        return self

    def split(self, z_val: Any, y_val: Any | None = None) -> SupportSplit:
        """Split validation features of shape (m, d), with labels of shape (m,) where known."""
        if not hasattr(self, "folds_"):
            raise ValueError("this splitter has seen no training features; call fit(z_train) first")
        z = self._as_validation(z_val)
        unseen = self._unseen(y_val, len(z))  # (m,)
        label = None
        if self.same_label:
            if y_val is None:
                raise ValueError("same_label=True needs y_val")
            label = self._codes(as_labels(y_val, len(z), "y_val"), z.device)
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
        threshold = self._threshold()
        posterior = torch.as_tensor(mixture.posterior, device=score.device, dtype=score.dtype)
        share, interval = mixture.share, mixture.interval
        inside = p_value > self.level  # never where the label is unseen: p is 0 there
        rule = f"p > {self.level:g}"
        if self.least_posterior > 0:
            inside = inside & (posterior > self.least_posterior)
            rule += f" and posterior > {self.least_posterior:g}"
        if threshold is not None:
            inside = (-score > threshold) & seen
            rule = f"score_samples > {threshold:g}"
            share, interval = _sampling_interval(int(inside.sum()), len(inside))
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
        self._threshold()

    def _threshold(self) -> float | None:
        if isinstance(self.threshold, str):
            if self.threshold not in PUBLISHED_THRESHOLDS:
                raise ValueError(
                    f"no threshold is called {self.threshold!r}; the published ones are "
                    f"{PUBLISHED_THRESHOLDS}, or pass a number"
                )
            return PUBLISHED_THRESHOLDS[self.threshold]
        return None if self.threshold is None else float(self.threshold)

    def _check_enough(self, rows: int) -> None:
        need = math.ceil(1 / self.level) - 1
        if rows < need:
            raise ValueError(
                f"{rows} calibration rows cannot give a p-value of {self.level:g} or less; "
                f"need at least {need}, or a larger level"
            )

    def _how(self, scorer: Scorer, n: int) -> str:
        """How training rows are kept from scoring themselves."""
        can = getattr(scorer, "leaves_one_out", False)
        if self._threshold() is not None:  # the published rule compares with its own training rows
            return "leave_one_out"
        if self.calibration == "leave_one_out" and not can:
            raise ValueError(
                f"{type(scorer).__name__} cannot leave a row out of its own score; "
                "use calibration='hold_out' or 'cross_fit'"
            )
        if self.calibration != "auto":
            return self.calibration
        return "leave_one_out" if can else "hold_out" if n >= ENOUGH_TO_HOLD_OUT else "cross_fit"

    def _fold_rows(
        self, how: str, n: int, generator: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        rows = folds_of(
            n,
            count=1 if how == "hold_out" else min(FOLDS, n),
            share=self.calibration_share,
            most=self.most_calibration,
            generator=generator,
        )
        self._check_enough(sum(len(part) for part in rows) if n > 1 else 0)
        return rows

    def _cells(
        self,
        z: Rows,
        label: Tensor | None,
        calibration_rows: int,
        generator: np.random.Generator,
    ) -> Tensor:
        """Cell of every training row, before small ones are merged, (n,)."""
        kind = self.cells
        if self.same_label and label is not None:
            self.cells_ = "label"
            return label
        if kind == "class" and label is None:
            raise ValueError("cells='class' needs y_train; pass labels or use cells='cluster'")
        if kind == "auto":
            trusted = label is not None and neighbour_agreement(z, label, generator) >= AGREEMENT
            kind = "class" if trusted else "cluster"
        self.cells_ = kind
        if kind == "class" and label is not None:
            rows = min(self.most_calibration, calibration_rows)
            return cells_within(z, label, calibration_rows=rows, generator=generator)
        if kind == "cluster":
            return cluster(z, self.n_clusters, generator)
        return torch.zeros(len(z), dtype=torch.long, device=z.device)

    def _merge(self, z: Rows, cell: Tensor) -> None:
        """Merge cells that hold too few calibration rows, in every fold alike."""
        held_out = torch.cat([fold.calibration_cell for fold in self.folds_])
        kinds = max(int(cell.max()), int(held_out.max())) + 1
        count = torch.bincount(held_out, minlength=kinds).cpu().numpy()
        # a cell that has calibration rows only lies anywhere
        center = means_by(z, cell, kinds)
        target = merge_small_cells(count, center.cpu().numpy(), least=self.least_per_cell)
        names = np.unique(target, return_inverse=True)[1].reshape(-1)  # 0, 1, ... without gaps
        into = torch.as_tensor(names, device=z.device)
        self.folds_ = [
            replace(fold, merged=into, calibration_cell=into[fold.calibration_cell])
            for fold in self.folds_
        ]
        self.train_cell_share_ = _shares(into[held_out])

    def _split_uneven(self, sides: Sides, generator: np.random.Generator) -> None:
        """Split cells of two kinds of row that cannot calibrate each other."""
        fold = split_uneven_cells(
            self.folds_[0], sides, least=self.least_per_cell, generator=generator
        )
        self.folds_ = [fold]
        self.train_cell_share_ = _shares(fold.calibration_cell)

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
        if self.hide_parts and self._threshold() is None:
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

    def _codes(self, labels: NDArray[Any] | None, device: torch.device) -> Tensor | None:
        """Position of each label among the classes; 0 for one that is not there."""
        if labels is None or self.classes_ is None:
            return None
        code = np.searchsorted(self.classes_, labels)
        code[code == len(self.classes_)] = 0
        return torch.as_tensor(np.where(self.classes_[code] == labels, code, 0), device=device)

    def _unseen(self, y_val: Any | None, m: int) -> NDArray[np.bool_]:
        if y_val is None:
            return np.zeros(m, dtype=bool)
        labels = as_labels(y_val, m, "y_val")
        if self.classes_ is None:
            raise ValueError("y_val was given but fit saw no y_train; pass both or neither")
        return ~np.isin(labels, self.classes_)


def _classes(*labels: NDArray[Any] | None) -> NDArray[Any] | None:
    known = [values for values in labels if values is not None]
    return np.unique(np.concatenate(known)) if known else None


def _at_most(most: int, n: int, generator: np.random.Generator) -> Tensor:
    return torch.as_tensor(np.sort(generator.permutation(n)[:most]))


def _shares(cell: Tensor) -> Tensor:
    """Share of the rows in each cell, (c,)."""
    return torch.bincount(cell).double() / len(cell)


def _check_spread(z: Rows) -> None:
    first, spread, size = None, 0.0, 0.0
    for block in blocks_of(z):
        first = block[0] if first is None else first
        spread = max(spread, float((block - first).abs().max()))
        size = max(size, float(block.abs().max()))
    if len(z) > 1 and spread <= 1e-6 * size:
        raise ValueError(
            f"all {len(z)} rows of z_train are the same, so no point can be told from another; "
            "if a net made them it has collapsed: use another layer or the raw input"
        )


def _sampling_interval(inside: int, m: int) -> tuple[float, tuple[float, float]]:
    """Share and exact binomial interval of a rule that knows nothing of its own errors."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, inside, m - inside + 1)) if inside else 0.0
    high = float(beta.ppf(0.975, inside + 1, m - inside)) if inside < m else 1.0
    return inside / m, (low, high)
