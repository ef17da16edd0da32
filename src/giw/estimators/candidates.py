r"""Simple ways to use a large training table and a few validation points, one small class each.

Most are one weighted fit to both tables. With sample weights of mean one in either table,
:math:`n` training and :math:`m` validation rows, the loss :math:`\ell` and the share of training
:math:`\lambda`, they minimise

.. math:: \lambda \sum_{i=1}^n u_i \ell_i + \sum_{j=1}^m v_j \ell_j .

A candidate that cannot be fitted to the data at hand raises :class:`StepsAside` with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from giw.estimators.fitting import fit_weighted, predictions
from giw.estimators.ratios import inside_ratio
from giw.estimators.rows import rows_of

Vector = NDArray[np.float64]


class StepsAside(Exception):
    """A candidate does not apply to these data; its text is the reason."""


@dataclass(frozen=True)
class Tables:
    """Both tables, training rows first, and what candidates may know about the rows."""

    base: Any  # the estimator to copy and fit
    rows: Any  # n + m rows of the table
    label: NDArray[Any]  # (n + m,) classes or numbers
    weight: Vector  # (n + m,) sample weights, mean one in either table
    is_val: NDArray[np.bool_]  # (n + m,)
    features: Vector  # (n + m, d) numbers in comparable units
    inside: NDArray[np.bool_]  # (n + m,) in the training support; true for training rows
    encoder: Any  # makes ``features`` of a table
    plain: Any  # the base fitted to the training rows alone
    loss: Vector | None = None  # (n + m, r) of models that have not seen the row
    ratio: Any = "classifier"  # how weights inside the training support are estimated
    target: Vector | None = None  # (u, d) features of unlabelled rows of the target
    inside_weight: Vector | None = None  # (n,) of the candidate "giw", where it is known already
    many: float = 1.0  # training rows in all for each one here

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and greatest number among the labels of both tables; none of classes."""
        if is_classifier(self.base):
            return None
        return float(self.label.min()), float(self.label.max())

    def only(self, rows: NDArray[np.int64]) -> Tables:
        """Some of the rows."""
        return replace(
            self,
            rows=rows_of(self.rows, rows),
            label=self.label[rows],
            weight=self.weight[rows],
            is_val=self.is_val[rows],
            features=self.features[rows],
            inside=self.inside[rows],
            loss=None if self.loss is None else self.loss[rows],
        )

    @property
    def sizes(self) -> tuple[float, int]:
        """Training rows, all that there are, and validation rows."""
        m = int(self.is_val.sum())
        return self.many * (len(self.is_val) - m), m

    def plain_fit(self) -> Any:
        """The base fitted to the training rows alone."""
        if self.plain is None:
            raise StepsAside("training alone cannot be fitted")
        return self.plain

    def fit(self, factor: Vector) -> Any:
        """The base fitted to the rows, each with ``factor`` (n + m,) times its sample weight.

        Where the rows are a sample, training rows stand for all of them.
        """
        weight = factor * self.weight * np.where(self.is_val, 1.0, self.many)
        # mean one over rows that count: penalties and leaf sizes are made for that scale
        return fit_weighted(self.base, self.rows, self.label, weight / weight[weight > 0].mean())


class Candidate(Protocol):
    """A named way to make a model of both tables."""

    @property
    def name(self) -> str:
        """As it stands in ``stack_weight_``."""
        ...

    @property
    def prior(self) -> float:
        """Weight in the stack before validation points are asked, relative to the others."""
        ...

    def fit(self, data: Tables) -> Any:
        """A fitted model with ``predict``, and ``predict_proba`` for classes."""
        ...


@dataclass(frozen=True)
class TrainingOnly:
    """The base fitted to training rows."""

    name: str = "training"
    prior: float = 1.0

    def fit(self, data: Tables) -> Any:
        """The fit that is there already."""
        return data.plain_fit()


@dataclass(frozen=True)
class ValidationOnly:
    """The base fitted to validation rows; a constant where they have one class."""

    name: str = "validation"
    prior: float = 1.0

    def fit(self, data: Tables) -> Any:
        """Without the training rows."""
        return data.fit(data.is_val.astype(np.float64))


@dataclass(frozen=True)
class BothTables:
    r"""Both tables, training rows weighted :math:`(m / n)^{\rm power}`.

    Power 0 is plain concatenation; with power 1 both tables weigh the same.
    """

    name: str
    power: float
    prior: float = 1.0

    def fit(self, data: Tables) -> Any:
        """One weighted fit."""
        n, m = data.sizes
        return data.fit(np.where(data.is_val, 1.0, (m / n) ** self.power))


@dataclass(frozen=True)
class ClassShares:
    r"""Both tables, training classes weighted to the class shares of validation.

    .. math:: w_c = \frac{(m_c + a\, n_c / n) / (m + a)}{n_c / n}, \qquad a = 2,

    with :math:`m_c` of m validation and :math:`n_c` of n training rows in class c.
    """

    name: str = "class shares"
    prior: float = 1.0
    smoothing: float = 2.0
    most: float = 20.0

    def fit(self, data: Tables) -> Any:
        """One weighted fit; for classes only."""
        if not is_classifier(data.base):
            raise StepsAside("a number has no class shares")
        classes, code = np.unique(data.label, return_inverse=True)
        train, val = (
            np.bincount(code[side], data.weight[side], minlength=len(classes))
            for side in (~data.is_val, data.is_val)
        )
        share = train / train.sum()
        wanted = (val + self.smoothing * share) / (val.sum() + self.smoothing)
        ratio = np.clip(wanted / np.maximum(share, 1e-12), 1 / self.most, self.most)  # (c,)
        return data.fit(np.where(data.is_val, 1.0, ratio[code]))


@dataclass(frozen=True)
class GeneralizedWeighting:
    r"""Generalized importance weighting: weights inside the training support, outside rows join.

    .. math:: \alpha \Big[(1 - \beta) \frac1n \sum_i w_i \ell_i
              + \beta \frac1{m_{\rm in}} \sum_{j\,\rm in} \ell_j \Big]
              + (1 - \alpha) \frac1{m_{\rm out}} \sum_{j\,\rm out} \ell_j

    where :math:`1 - \alpha = m_{\rm out} / m \cdot m_{\rm out} / (m_{\rm out} + a)`: few outside
    rows do not carry most of the risk. The weights :math:`w` estimate
    :math:`p_{\rm val}(x, y \mid {\rm inside}) / p_{\rm tr}(x, y)` on losses under models that have
    not seen the row, so that a training row with a label that validation rows contradict counts
    little.

    Parameters
    ----------
    inside_share : float, default=0.2
        :math:`\beta`; with more of it validation rows inside count more beside training rows.
    few : float, default=20
        :math:`a`; with more of it a few outside rows count less.
    """

    name: str = "giw"
    prior: float = 1.0
    inside_share: float = 0.2
    few: float = 20.0
    uses_losses: bool = True

    def weight(self, data: Tables) -> Vector:
        """Mean-one weights of the training rows, (n,)."""
        if data.inside_weight is not None:
            return data.inside_weight
        if data.loss is None:
            raise StepsAside("it needs losses of rows that were left out, and there are none")
        inside = data.is_val & data.inside
        if inside.sum() < 2:
            return np.ones(int((~data.is_val).sum()))
        return inside_ratio(data.ratio, data.loss[~data.is_val], data.loss[inside])

    def fit(self, data: Tables) -> Any:
        """One weighted fit."""
        inner, outer = data.is_val & data.inside, data.is_val & ~data.inside
        factor = np.zeros(len(data.label))
        n, m = data.sizes
        outside = outer.sum() ** 2 / (max(m, 1) * (outer.sum() + self.few))
        inside = 1.0 - outside
        share = self.inside_share if inner.any() else 0.0
        factor[~data.is_val] = inside * (1 - share) * self.weight(data) / n
        factor[inner] = inside * share / max(inner.sum(), 1)
        factor[outer] = outside / max(outer.sum(), 1)
        return data.fit(factor)


@dataclass(frozen=True)
class FeatureWeighted:
    r"""Both tables, training rows weighted by :math:`p_{\rm val}(x) / p_{\rm tr}(x)`.

    Unlabelled rows of the target count as validation rows in the ratio.
    """

    name: str = "weighted by features"
    prior: float = 1.0

    def weight(self, data: Tables) -> Vector:
        """Mean-one weights of the training rows, (n,), from logistic regression."""
        target = data.features[data.is_val]
        if data.target is not None:
            target = np.vstack([target, data.target])
        return inside_ratio("classifier", data.features[~data.is_val], target)

    def fit(self, data: Tables) -> Any:
        """One weighted fit."""
        factor = np.ones(len(data.label))
        factor[~data.is_val] = self.weight(data)
        return data.fit(factor)


@dataclass(frozen=True)
class Small:
    """A small linear model of validation labels: on the training model's predictions, on features.

    Of classes: logistic regression, and predictions come as log-probabilities; of numbers: ridge
    regression that shrinks towards the training model's own prediction.

    Parameters
    ----------
    on_model, on_features : bool
        What it sees: predictions of the training model, and the encoded columns of the table.
    strength : float, default=1.0
        Inverse penalty; with more of it validation labels change more.
    """

    name: str
    on_model: bool = True
    on_features: bool = True
    strength: float = 1.0
    prior: float = 1.0

    def fit(self, data: Tables) -> Any:
        """A fit to the validation rows, of milliseconds."""
        model = Mapped(
            data.plain_fit() if self.on_model else None, data.encoder if self.on_features else None,
            strength=self.strength, numbers=not is_classifier(data.base),
        )  # fmt: skip
        val = data.is_val
        return model.fit(rows_of(data.rows, val), data.label[val], data.weight[val])


class Mapped(BaseEstimator):
    """A linear model of validation labels on a model's predictions, on features, or on both."""

    def __init__(
        self, model: Any, encoder: Any = None, *, strength: float = 1.0, numbers: bool = False
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.strength = strength
        self.numbers = numbers

    def fit(self, X: Any, y: NDArray[Any], weight: Vector) -> Mapped:
        """Fit to validation rows."""
        if self.numbers or (self.model is not None and not is_classifier(self.model)):
            self.center_, self.scale_ = float(np.average(y, weights=weight)), float(y.std()) or 1.0
            z, own = self._columns(X)
            self.linear_ = Ridge(1 / self.strength).fit(
                z, (y - self.center_) / self.scale_ - own, weight
            )
            return self
        z, _ = self._columns(X)
        if len(np.unique(y)) == 1:
            self.linear_ = DummyClassifier(strategy="prior").fit(z, y)
        else:
            self.linear_ = LogisticRegression(C=self.strength, max_iter=300).fit(z, y, weight)
        self.classes_ = self.linear_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or numbers, (k,)."""
        z, own = self._columns(X)
        found = self.linear_.predict(z)
        return found if hasattr(self, "classes_") else self.center_ + self.scale_ * (found + own)

    def predict_proba(self, X: Any) -> Vector:
        """Probabilities, (k, c)."""
        return np.asarray(self.linear_.predict_proba(self._columns(X)[0]))

    def _columns(self, X: Any) -> tuple[Vector, Any]:
        """What the linear model sees, (k, d), and the model's own numbers, (k,), in its units."""
        parts: list[Vector] = []
        own: Any = 0.0
        if self.model is not None:
            classes = getattr(self.model, "classes_", None)
            found = predictions(self.model, X, classes)
            if classes is None:
                own = (found - self.center_) / self.scale_
            parts.append(own[:, None] if classes is None else np.log(found))
        if self.encoder is not None:
            parts.append(self.encoder.transform(X))
        return np.hstack(parts), own


def default_candidates(classifies: bool, labelled: bool = True) -> list[Candidate]:
    """What is tried where nobody says what; without validation labels few can be."""
    if not labelled:
        return [TrainingOnly(), FeatureWeighted()]
    usual: list[Candidate] = [
        TrainingOnly(),
        ValidationOnly(),
        BothTables("both tables", 0.0),
        BothTables("intermediate", 0.5),
        BothTables("balanced", 1.0),
        GeneralizedWeighting(),
        FeatureWeighted(),
        Small("recalibrated", on_features=False),
        Small("corrected"),
        Small("validation, linear", on_model=False, strength=0.1),
    ]
    return [*usual, ClassShares()] if classifies else usual
