r"""Do new rows without labels look like those that a model was fitted for?

They are compared with the validation rows that the model keeps, because the model was fitted for
the distribution that these come from: training rows may differ from them, and that is no news.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from giw.diagnosis.findings import (
    FEWEST,
    Finding,
    Floats,
    a_test,
    counted,
    holm,
    p_in_words,
    percent,
    short,
)
from giw.diagnosis.shift_tests import features_test, largest_gaps, outside_test, together
from giw.estimators.limits import Reference
from giw.judging.risk import binomial_interval
from giw.support.scores import COPY, conformal_p, nearest, without_copy
from giw.tables import as_table

DISTANCE = "(distance to training rows)"


@dataclass(frozen=True)
class Drifted:
    """A column that has drifted: what of it, the p-value, and the value before and now."""

    column: str
    feature: str
    p_value: float
    before: float
    now: float
    is_share: bool

    def in_words(self) -> str:
        """``price: median 49 before, 71 now``."""
        told = percent if self.is_share else short
        what = self.feature if self.is_share else f"{self.column}: median"
        return f"{what} {told(self.before)} before, {told(self.now)} now"


@dataclass(frozen=True)
class Drift:
    """New rows beside the validation rows of a model.

    Attributes
    ----------
    found : bool
        Whether they differ, at the joint error ``level`` of all tests.
    p_value : float
        How often rows that do not differ look as different.
    tests : tuple of Finding
        Of features, of rows far from training, and of unseen categories.
    columns : tuple of Drifted
        Where something was found, the largest difference first.
    rows, compared_with : int
        New rows, and validation rows that they were compared with.
    outside : tuple of int
        Rows, from 0, unlike all training and validation rows.
    left_out_accuracy : float or None
        Of validation rows, by models that had not seen them.
    expected_accuracy : tuple of two floats or None
        On the new rows, if labels are related to features as before: the exact 95 % interval of
        left-out rows, moved by how much surer the model is of rows inside; outside, 0 to 1.
    """

    found: bool
    p_value: float
    level: float
    tests: tuple[Finding, ...]
    columns: tuple[Drifted, ...]
    rows: int
    compared_with: int
    outside: tuple[int, ...]
    left_out_accuracy: float | None = None
    expected_accuracy: tuple[float, float] | None = None

    def summary(self) -> str:
        """What was found, in a few lines."""
        more, share = len(self.columns) - 5, len(self.outside) / self.rows
        lines = [
            f"{'Drift' if self.found else 'No drift'}: {counted(self.rows, 'new row')} beside the "
            f"{counted(self.compared_with, 'validation row')} of the model, "
            f"{p_in_words(self.p_value)} (alarm at {self.level:g}).",
            *(f"- {column.in_words()}" for column in self.columns[:5]),
            *[f"- and {counted(more, 'column')} more"] * (more > 0),
            f"{counted(len(self.outside), 'row')} ({percent(share)}) unlike all training and "
            "validation rows.",
        ]
        if self.expected_accuracy is not None and self.left_out_accuracy is not None:
            low, high = self.expected_accuracy
            lines.append(
                f"Accuracy to expect: {low:.2f} to {high:.2f}, left-out validation rows "
                f"{self.left_out_accuracy:.2f}. Whether labels changed, only labels can tell."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def drift(
    reference: Reference,
    X: Any,
    *,
    level: float = 0.01,
    confidence: Floats | None = None,
    left_out: tuple[Floats, NDArray[np.bool_]] | None = None,
    random_state: int = 0,
) -> Drift:
    """Compare new rows with the validation rows that a model keeps.

    Three tests share ``level`` by Holm's procedure: of features, one by one and together, the
    distance to training rows among them; of rows beyond the farthest validation rows; and of
    categories that neither table has.

    Parameters
    ----------
    reference : Reference
        ``model.reference_``.
    X : table of shape (n, columns)
        New rows.
    level : float, default=0.01
        How often rows without drift raise an alarm, on average over validation samples; more of it
        finds smaller drifts.
    confidence : array of shape (n,), optional
        The model's largest probability of each new row.
    left_out : two arrays of shape (m,), optional
        The same of left-out validation rows, and whether the model was right.
    random_state : int, default=0
        Seeds the permutations.
    """
    table = as_table(X, "X")
    n, m = len(table), int(reference.is_val.sum())
    if min(n, m) < FEWEST:
        raise ValueError(
            f"need at least {FEWEST} new rows and as many validation rows of the model to compare, "
            f"got {n} and {m}"
        )
    generator = np.random.default_rng(random_state)
    # in the precision that rows are kept in: equal values have to stay equal
    new, counts = reference.encode(table)
    old, train = reference.z[reference.is_val], np.unique(reference.z[~reference.is_val], axis=0)
    gone = reference.outside(table)
    # tests compare at most 2,000 new rows; all are looked at one by one
    new = new[np.sort(generator.permutation(n)[:2_000])]
    # to rows that differ from it, on both sides: a training row's own copy is no news
    near = [nearest(side, train, 6) for side in (new, old)]
    far, far_old = (without_copy(each, COPY)[0].mean(axis=1) for each in near)
    before = np.column_stack([old, far_old]).astype(np.float64)
    now = np.column_stack([new, far]).astype(np.float64)
    both, is_new = together(before, now)
    one = np.zeros(len(both), dtype=np.int64)
    draws = max(1_000, round(20 / level))  # p-values small enough for the level of three tests
    gaps = largest_gaps(both, is_new, one, generator, draws=draws)
    share, listed = float(gone.mean()), binomial_interval(int(gone.sum()), n)
    asked = (
        features_test(before, now, generator, single=gaps),
        outside_test(conformal_p(far, far_old), m, listed, round(share * len(new))),
        _unseen(reference.counts[reference.is_val], counts),
    )
    tests = [test for test in asked if test is not None]
    corrected = holm(tests)
    found = min(corrected) <= level
    accuracy = expected = None
    if confidence is not None and left_out is not None:
        accuracy = float(left_out[1].mean())
        surer = confidence[~gone | gone.all()].mean() - left_out[0].mean()
        interval = np.add(binomial_interval(int(left_out[1].sum()), m), surer).clip(0, 1)
        expected = float((1 - share) * interval[0]), float((1 - share) * interval[1] + share)
    return Drift(
        found, min(corrected), level,
        tuple(replace(t, found=p <= level) for t, p in zip(tests, corrected, strict=True)),
        _columns(reference, gaps, before, now, level) if found else (), n, m,
        tuple(np.flatnonzero(gone).tolist()), accuracy, expected,
    )  # fmt: skip


def _unseen(old: NDArray[np.int64], new: NDArray[np.int64]) -> Finding:
    """Do more new rows have a category of their own than validation rows do?

    A validation row that alone has a category would show an unseen one if it were new. If nothing
    has changed, the rows that do are spread over both sides by chance.
    """
    n, m = len(new), len(old)
    k, r = int((new == 0).any(axis=1).sum()), int((old == 1).any(axis=1).sum())
    p_value = float(hypergeom.sf(k - 1, n + m, n, k + r))
    return a_test("unseen", p_value, k / n, interval=binomial_interval(k, n))


def _columns(
    reference: Reference, p_value: Floats, old: Floats, new: Floats, level: float
) -> tuple[Drifted, ...]:
    """The feature of each column that has drifted most, the largest difference first.

    The last feature is the distance to training rows, in units that need no name.
    """
    encoder, found = reference.encoder, {}
    names = [*encoder.feature_names_, DISTANCE]
    columns = [*encoder.feature_columns_, DISTANCE]
    unit, center = np.r_[encoder.unit_, 1.0], np.r_[encoder.center_, 0.0]
    difference = np.abs(new.mean(axis=0) - old.mean(axis=0))
    for j in np.argsort(-difference, kind="stable"):
        if p_value[j] <= level and columns[j] not in found:
            is_share = names[j] != columns[j]
            middle = np.mean if is_share else np.median
            told = [round(float(middle(v[:, j] * unit[j] + center[j])), 6) for v in (old, new)]
            of_column = columns[j], names[j], float(p_value[j]), *told, is_share
            found[columns[j]] = Drifted(*of_column)
    return tuple(found.values())
