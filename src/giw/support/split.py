"""A validation sample, split into points inside and outside the training support."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from giw.checks import like_input
from giw.support.scores import on_host

Array = Any  # what came in: a numpy array or a tensor

LABEL = "label"  # the representation that a label unseen in training is outside of


@dataclass(frozen=True, repr=False)
class SupportSplit:
    """Validation points inside and outside the training support.

    Attributes
    ----------
    inside : bool array of shape (m,)
        Whether each point lies inside: its combined p-value exceeds ``level``.
    p_value : array of shape (m,)
        Combined p-value of "this point is like held-out training rows"; 0 where training never
        has the point's label.
    p_values : dict from name to array of shape (m,)
        The p-value in each representation. They say what makes a point outside.
    alpha : float
        Mean membership, the :math:`\\alpha` of the generalized risk.
    posterior : array of shape (m,) or None
        Probability of being inside, where membership is to be soft; see :meth:`soften`.
    level : float
        Largest p-value that is called outside.
    score : array of shape (m,) or None
        ``score_samples`` of the published one-class SVM, where that was asked.
    """

    inside: Array
    p_value: Array
    p_values: Mapping[str, Array] = field(default_factory=dict)
    alpha: float = 1.0
    posterior: Array | None = None
    level: float = 0.05
    score: Array | None = None

    @classmethod
    def given(cls, inside: Any) -> SupportSplit:
        """A split that is known: from an oracle, an ablation or a rule of one's own.

        Parameters
        ----------
        inside : bool array of shape (m,)
        """
        member = on_host(inside)
        if member.ndim != 1 or not np.isin(member, (0, 1)).all():
            raise ValueError(
                f"inside must hold one True or False per validation point, got shape {member.shape}"
            )
        yes = member.astype(bool)
        share = float(yes.mean()) if len(yes) else 0.0
        return cls(like_input(yes, inside), like_input(yes.astype(float), inside), alpha=share)

    @property
    def membership(self) -> Array:
        """What the objective uses, between 0 and 1: ``posterior`` if there is one, else inside."""
        if self.posterior is not None:
            return self.posterior
        return like_input(on_host(self.inside).astype(float), self.inside)

    def soften(self) -> SupportSplit:
        """The same split with the posterior of being inside as membership."""
        posterior = soft_membership(on_host(self.p_value))
        return replace(
            self, posterior=like_input(posterior, self.p_value), alpha=float(posterior.mean())
        )

    def __len__(self) -> int:
        """Number of validation points."""
        return len(self.inside)

    def __repr__(self) -> str:
        """How many points lie inside, in one line."""
        inside = int(on_host(self.inside).sum())
        return (
            f"SupportSplit({inside} of {len(self)} validation points inside the training support, "
            f"alpha={self.alpha:.3f}, level={self.level:g}, {len(self.p_values)} representations)"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{(on_host(p) <= self.level).mean():.3f}</td></tr>"
            for name, p in self.p_values.items()
        )
        head = "<tr><th>representation</th><th>share of points outside</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"

    def __getattr__(self, name: str) -> Any:
        """Deprecated: ``support_share`` and its interval are ``giw.support_share(split)`` now."""
        moved = {"support_share": "share", "support_share_interval": "interval"}
        if name not in moved:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        message = "split.support_share and its interval are giw.support_share(split) now"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module("giw").support_share(self), moved[name])


def soft_membership(p_value: np.ndarray) -> np.ndarray:
    r"""Probability of being inside from combined p-values alone, (m,).

    .. math:: P({\rm inside} \mid p) = \pi / f(p)

    Inside points have evenly spread p-values, so that :math:`\pi` is the density of all p-values
    above 0.2, and :math:`f` their density at p, here the decreasing one that fits best (Grenander).
    """
    order = np.argsort(p_value, kind="stable")
    width = np.maximum(np.diff(p_value[order], prepend=0.0), 1e-9)  # each point ends its interval
    density = IsotonicRegression(increasing=False, y_min=1e-9).fit_transform(
        np.arange(len(order)), 1 / (len(order) * width), sample_weight=width
    )
    share = min(1.0, float((p_value > 0.2).mean()) / 0.8)
    posterior = np.minimum(1.0, share / density)[np.argsort(order)]  # (m,)
    return np.where(p_value > 0, posterior, 0.0)
