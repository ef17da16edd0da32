"""Fit on training rows, split validation rows into those inside and those outside the support."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from giw.checks import (
    as_generator,
    as_labels,
    callers_level,
    check_positive,
    column_names,
    columns_in_order,
    like_input,
)
from giw.support.one_class_svm import one_class_svm, threshold_of, unit_rows
from giw.support.scores import (
    KNN,
    Floats,
    Ints,
    Levels,
    Matrix,
    Scored,
    as_matrix,
    conformal_p,
    evidence,
    mean_evidence,
    on_host,
    row_key,
    rows_repeat_by_nature,
)
from giw.support.split import LABEL, SupportSplit
from giw.tables import Encoder

INPUT, EMBEDDING, LEVELS = "input", "embedding", "levels"
Parts = dict[str, Matrix]  # representations by name


class SupportSplitter(BaseEstimator):
    r"""Split validation points into those inside and those outside the training support.

    In every representation a point is scored by its distance to the nearest training rows, and the
    score is ranked among those of held-out training rows: a conformal p-value [1]_. Several
    representations give evidence, whose mean is ranked in the same way. A point is inside where the
    p-value exceeds ``level``. Nothing is chosen: a representation that sees nothing costs little.

    With labels a point is ranked among held-out rows of its own class. Held-out rows near to
    validation points that look inside count more [2]_: so class shares and what is usual may shift.
    All points that are split together have a part in that.

    A class label that training never has makes a point outside, whatever its features. Data frames
    go through :class:`giw.tables.Encoder`; categories and missing values make a representation of
    their own, ``"levels"`` (in a mapping :meth:`giw.tables.Encoder.level_counts`). A point with an
    unseen level is outside where at most ``level`` of held-out training rows show one as rare.

    Training rows that occur several times (oversampling) count once, unless the columns take so few
    values that repeats are natural. The order of rows does not matter.

    Parameters
    ----------
    scorer : {"knn", "osvm"} or giw.support.KNN, default="knn"
        How strange a point is. "osvm" is the published one-class SVM with its threshold.
    level : float, default=0.05
        Share of inside points that may be called outside; more of it makes the inside set smaller
        and purer.
    cells : {"auto", "none"}, default="auto"
        Whether points are compared with others of their class, where labels are given, or with all.
    most_held_out : int, default=3_000
        Training rows that are scored at most; more of them make p-values finer and take longer.
    threshold : {"text", "code"}, float or None, default=None
        Of the published one-class SVM: the 0.4 of the paper's text (also if not given), the 1e-4 of
        its authors' program, or another.
    embed : callable, optional
        From the rows that :meth:`fit` and :meth:`split` are given to an array of shape (n, d),
        such as features of a large net: one more representation.
    random_state : int, numpy generator or None, default=None
        Seeds the choice of held-out rows; None draws anew every time.

    Attributes
    ----------
    classes_ : array or None
        Labels seen in training.
    n_held_out_ : int
        Held-out training rows that points are ranked among.

    References
    ----------
    .. [1] Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, Springer, 2005.
    .. [2] Tibshirani et al., Conformal prediction under covariate shift, NeurIPS 2019.
    """

    def __init__(
        self,
        scorer: Any = "knn",
        *,
        level: float = 0.05,
        cells: str = "auto",
        most_held_out: int = 3_000,
        threshold: float | str | None = None,
        embed: Callable[[Any], Any] | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.scorer = scorer
        self.level = level
        self.cells = cells
        self.most_held_out = most_held_out
        self.threshold = threshold
        self.embed = embed
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, held_out: Any = None, y_held_out: Any = None
    ) -> SupportSplitter:
        """Score held-out training rows against the others.

        Parameters
        ----------
        X : array of shape (n, d), data frame, or mapping from name to either
            Training rows. A mapping holds several representations of the same rows.
        y : array of shape (n,), optional
            Class labels, for cells and for noticing classes that training never has.
        held_out : like X, optional
            Training rows that a net which made the features has not seen; then all of X is
            reference. Otherwise every row is left out in turn, or ``most_held_out`` of them.
        y_held_out : array, optional
            Their class labels. Without them points are ranked among all of ``held_out``.
        """
        scorer = self._checked_scorer()
        self.columns_ = column_names(X)
        matrices, counts = self._representations(X, "X", fit=True)
        self.levels_ = None if counts is None else Levels(counts)
        n = len(next(iter(matrices.values())))
        self.classes_, cell = None, np.zeros(n, dtype=np.int64)
        if y is not None:
            self.classes_, code = np.unique(as_labels(y, n, "y"), return_inverse=True)
            cell = cell if self.cells == "none" else code
        if scorer is None:
            z = _only(matrices)
            self.machine_, self.n_held_out_ = self._machine(z), n
            self.machine_scores_ = self.machine_.score_samples(unit_rows(z))
            return self
        apart, label = None, cell
        if held_out is not None:
            apart = self._representations(held_out, "held_out")[0]
            label = np.zeros(len(next(iter(apart.values()))), dtype=np.int64)
            if self.classes_ is not None and y_held_out is not None and self.cells != "none":
                y_held_out = as_labels(y_held_out, len(label), "y_held_out")
                label = pd.Index(self.classes_).get_indexer(y_held_out)
        self._score(matrices, apart, cell, label, scorer)
        return self

    def _machine(self, z: Matrix) -> Any:
        return one_class_svm(z)

    def split(self, X_val: Any, y_val: Any | None = None) -> SupportSplit:
        """Split validation points.

        Parameters
        ----------
        X_val : array of shape (m, d), data frame, or mapping from name to either
            The representations that :meth:`fit` saw.
        y_val : array of shape (m,), optional
            Class labels; those that training never has make a point outside.
        """
        if not hasattr(self, "n_held_out_"):
            raise ValueError("this splitter has seen no training rows; call fit(X) first")
        columns_in_order(self.columns_, column_names(X_val))  # the encoder sorts them
        original = next(iter(X_val.values())) if isinstance(X_val, Mapping) else X_val
        matrices, counts = self._representations(X_val, "X_val")
        label = np.full(len(next(iter(matrices.values()))), -1)
        if y_val is not None:
            if self.classes_ is None:
                raise ValueError("y_val was given but fit saw no y; pass both or neither")
            label = pd.Index(self.classes_).get_indexer(as_labels(y_val, len(label), "y_val"))
        unseen = (label < 0) & (y_val is not None)
        score = None
        if self._checked_scorer() is None:
            score = self.machine_.score_samples(unit_rows(_only(matrices)))
            p_values = {"osvm": conformal_p(-score, -self.machine_scores_)}
            p_value, inside = p_values["osvm"], score > threshold_of(self.threshold)
            score = like_input(score, original)
        else:
            p_values, p_value = self._ranked(matrices, label)
            if self.levels_ is not None and counts is not None:
                p_values[LEVELS] = self.levels_.p_value(counts)
                p_value = self.levels_.put_first(p_values[LEVELS], p_value, self.level)
            least = (1 + 1e-9) / (self.n_held_out_ + 1)  # the smallest p-value that there can be
            inside = p_value > max(self.level, least)
        if unseen.any():
            p_values[LABEL] = np.where(unseen, 0.0, 1.0)
        return SupportSplit(
            inside=like_input(inside & ~unseen, original),
            p_value=like_input(np.where(unseen, 0.0, p_value), original),
            p_values={name: like_input(p, original) for name, p in p_values.items()},
            alpha=float((inside & ~unseen).mean()),
            level=float(self.level),
            score=score,
        )

    def _score(
        self, matrices: Parts, apart: Parts | None, cell: Ints, label: Ints, scorer: KNN
    ) -> None:
        """Score held-out rows in every representation and norm."""
        repeat = all(rows_repeat_by_nature(z) for z in matrices.values())
        kept = _sorted_rows(matrices, cell, once=not repeat)
        if len(kept) < 2:
            raise ValueError(f"need at least 2 different training rows, got {len(kept)}")
        matrices = {name: z[kept] for name, z in matrices.items()}
        pool, label = (matrices, label[kept]) if apart is None else (apart, label)
        place = _sorted_rows(pool, None, once=False)
        order = as_generator(self.random_state).permutation(len(place))
        chosen = place[np.sort(order[: self.most_held_out])]
        self.n_held_out_ = len(chosen)
        if len(chosen) + 1 < math.ceil(1 / self.level):
            warnings.warn(
                f"{len(chosen)} training rows to compare with cannot give a p-value of "
                f"{self.level:g}; points are called outside at {1 / (len(chosen) + 1):.3g} instead",
                stacklevel=callers_level(),
            )
        norms = (False, True) if len(matrices) > 1 else (False,)  # as they are, and by direction
        self.scored_ = {
            (name, unit): Scored(
                z, pool[name][chosen], cell[kept], knn=scorer, unit=unit,
                within=apart is None, skip_copies=not repeat,
            )
            for name, z in matrices.items()
            for unit in norms
        }  # fmt: skip
        each = self.scored_.values()
        self.variance_ = [s.variance for s in each]
        self.evidence_ = mean_evidence([evidence(s.score, s.score) for s in each], self.variance_)
        self.held_label_, self.prior_rows_ = label[chosen], scorer.prior_rows
        p_value = self._rank(self.evidence_, self.evidence_, self.held_label_, np.ones(len(chosen)))
        self.usual_ = self._seen_near([s.near for s in each], p_value) / p_value.sum()

    def _rank(self, score: Floats, held_out: Floats, label: Ints, weight: Floats) -> Floats:
        """Rank among held-out rows of the label, all of which count as ``prior_rows``, (m,)."""
        p_value, prior = conformal_p(score, held_out, weight), self.prior_rows_
        for value in np.unique(self.held_label_):
            of, own = label == value, self.held_label_ == value
            rows, p_own = weight[own].sum(), conformal_p(score[of], held_out[own], weight[own])
            above = (1 + rows) * p_own - 1  # weight of the rows that are at least as strange
            p_value[of] = (above + prior * p_value[of]) / (rows + prior)
        return p_value

    def _ranked(self, matrices: Parts, label: Ints) -> tuple[dict[str, Floats], Floats]:
        """p-values by representation, and the rank of their mean evidence, (m,)."""
        found = {
            f"{name}, unit norm" if unit else name: (*s.of(matrices[name]), s.score)
            for (name, unit), s in self.scored_.items()
        }
        each = [evidence(score, held) for score, _, held in found.values()]
        mean = mean_evidence(each, self.variance_)
        p_value = self._rank(mean, self.evidence_, label, np.ones(self.n_held_out_))
        # what is inside may be shifted, and then held-out rows that are like it say what is usual;
        # ``prior_rows`` points without a shift are added, and as many neighbours to every row
        total = p_value.sum()
        prior = self.prior_rows_ * (self.usual_.mean() / 2 + total / self.n_held_out_)
        near = self._seen_near([near for _, near, _ in found.values()], p_value)
        weight = (near + prior) / (self.usual_ * total + prior)  # (r,)
        weight /= weight.mean()
        p_values = {
            name: self._rank(score, held, label, weight) for name, (score, _, held) in found.items()
        }
        return p_values, self._rank(mean, self.evidence_, label, weight)

    def _seen_near(self, near: list[Ints], p_value: Floats) -> Floats:
        """Sum of the p-values of points that each held-out row is near to, (r,)."""
        index = np.hstack(near)  # (m, around * representations)
        each = np.repeat(p_value, index.shape[1])
        return np.asarray(np.bincount(index.ravel(), each, self.n_held_out_), dtype=np.float64)

    def _representations(
        self, X: Any, name: str, *, fit: bool = False
    ) -> tuple[dict[str, Matrix], Ints | None]:
        """Matrices by name, and counts of levels where there are any, of the same rows."""
        parts = dict(X) if isinstance(X, Mapping) else self._of_one(X, fit=fit)
        if self.embed is not None:
            parts[EMBEDDING] = self.embed(X)
        counts = on_host(parts.pop(LEVELS)) if LEVELS in parts else None
        matrices = {
            key: as_matrix(part, name if key == INPUT else f"{name}[{key!r}]")
            for key, part in parts.items()
        }
        everything = matrices if counts is None else matrices | {LEVELS: counts}
        rows = {key: len(part) for key, part in everything.items()}
        if not matrices or len(set(rows.values())) > 1:
            raise ValueError(
                f"{name} needs at least one matrix, and all representations the same rows; "
                f"got {rows}"
            )
        widths = {key: z.shape[1] for key, z in everything.items()}
        if fit:
            self.widths_ = widths
        elif widths != self.widths_:
            raise ValueError(
                f"X has columns {self.widths_} and {name} has {widths}; both need the same"
            )
        return matrices, counts

    def _of_one(self, X: Any, *, fit: bool) -> dict[str, Any]:
        """A matrix, or a table as numbers and as levels."""
        if not (hasattr(X, "columns") or (isinstance(X, np.ndarray) and X.dtype.kind in "OUS")):
            return {INPUT: X}
        if fit:
            self.encoder_ = Encoder().fit(X)
        return {INPUT: self.encoder_.transform(X), LEVELS: self.encoder_.level_counts(X)}

    def _checked_scorer(self) -> KNN | None:
        """How strange a point is, or None where the published machine says it."""
        if not 0 < check_positive(self.level, "level") < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")
        if self.cells not in ("auto", "none"):
            raise ValueError(f"cells must be 'auto' or 'none', got {self.cells!r}")
        if self.scorer in ("knn", "osvm"):
            return KNN() if self.scorer == "knn" else None
        if not isinstance(self.scorer, KNN):
            raise ValueError(f"scorer must be 'knn', 'osvm' or giw.support.KNN, got {self.scorer}")
        return self.scorer


def _sorted_rows(matrices: Parts, cell: Ints | None, *, once: bool) -> Ints:
    """Rows in an order that depends on what they hold only, and if so asked without copies."""
    key = np.sum([row_key(z) for z in matrices.values()], axis=0)
    order = np.argsort(key, kind="stable") if cell is None else np.lexsort((cell, key))
    if not once:
        return order
    return order[np.append(True, np.diff(key[order]) > 0)]


def _only(matrices: Parts) -> Matrix:
    if len(matrices) > 1:
        raise ValueError(f"the published one-class SVM takes one matrix, got {sorted(matrices)}")
    return next(iter(matrices.values()))
