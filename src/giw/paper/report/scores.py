"""Histograms of what the split sees: p-values, and the score of the published split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from giw.pages.page import Picture
from giw.pages.style import setting_name
from giw.paper.bench.plan import PROTOCOLS
from giw.paper.bench.store import Result
from giw.paper.report.cells import DATASET_CASES, Experiment, Key, Place
from giw.paper.report.panels import score_grid
from giw.support import PUBLISHED_THRESHOLDS

LEVEL = 0.05  # largest p-value that is called outside
TRUTH = "coloured by the truth, which the method does not see"
Scores = tuple[NDArray[np.float64], NDArray[np.bool_]]  # of validation points, and who is inside


def score_pictures(experiment: Experiment) -> list[Picture]:
    """Histograms for each data set under support shift: p-values, and the published score."""
    found = [_p_values(experiment), _published_scores(experiment)]
    return [picture for picture in found if picture is not None]


def _p_values(experiment: Experiment) -> Picture | None:
    scores = _gather(experiment, ("",), lambda result: _stored(result, "p_value"))
    if not scores:
        return None
    parts = [
        f"{column}, {row}: {np.mean(p[s] > LEVEL):.0%} of inside and {np.mean(p[~s] > LEVEL):.0%} "
        f"of outside points above {LEVEL}"
        for (row, column), (p, s) in scores.items()
        if s.any() and not s.all()
    ]
    rows, columns, absent = _sides(scores)
    return Picture(
        score_grid(
            scores, rows=rows, columns=columns, cuts=[LEVEL], limits=(0, 1), xlabel="p-value"
        ),
        alt="Histograms of p-values. " + "; ".join(parts) + ".",
        caption="p-values of validation points of all trials, GIW under support shift, "
        f"{experiment.name}, {TRUTH}. The dashed line is the cut at {LEVEL}: what lies to its "
        f"right is called inside.{absent}",
        name=f"scores-{experiment.slug}",
        wide=True,
    )


def _published_scores(experiment: Experiment) -> Picture | None:
    scores = _gather(experiment, ("osvm_code", "osvm_text"), _published)
    if not scores:
        return None
    rows, columns, absent = _sides(scores)
    cuts = sorted(PUBLISHED_THRESHOLDS.values())
    parts = [
        f"{column}, {row}: {np.mean(p[s] > cuts[0]):.0%} of inside and "
        f"{np.mean(p[~s] > cuts[0]):.0%} of outside points above {cuts[0]:g}"
        for (row, column), (p, s) in scores.items()
        if s.any() and not s.all()
    ]
    return Picture(
        score_grid(scores, rows=rows, columns=columns, cuts=cuts, limits=None, xlabel="score"),
        alt="Histograms of the score of the published split. " + "; ".join(parts) + ".",
        caption="Score of the published split (one-class SVM), validation points of all trials "
        f"under support shift, {experiment.name}, {TRUTH}. The dashed lines are the thresholds of "
        f"the authors' code ({cuts[0]:g}) and of the paper's text ({cuts[1]:g}).{absent}",
        name=f"published-scores-{experiment.slug}",
        wide=True,
    )


def _gather(
    experiment: Experiment, variants: tuple[str, ...], of: Callable[[Result], Scores | None]
) -> dict[tuple[str, str], Scores]:
    """Scores of all trials by protocol and data set, from the first variant that has any."""
    found: dict[tuple[str, str], Scores] = {}
    for protocol in PROTOCOLS:
        for pair in DATASET_CASES:
            for variant in variants:
                key = Key(Place(*pair, "support"), protocol, "giw", variant)
                trials = sorted(experiment.trials(key).items())
                good = [scores for _, result in trials for scores in [of(result)] if scores]
                if good:
                    score, inside = (np.concatenate(part) for part in zip(*good, strict=True))
                    found.setdefault((protocol, setting_name(*pair)), (score, inside))
    return found


def _stored(result: Result, name: str) -> Scores | None:
    score = np.asarray(result.extra.get(name, []), dtype=np.float64)
    inside = np.asarray(result.extra.get("inside", []), dtype=np.float64) > 0.5
    usable = score.ndim == 1 and len(score) > 0 and score.shape == inside.shape
    return (score, inside) if usable else None


def _published(result: Result) -> Scores | None:
    """``score_samples``, larger for points like training data: stored is how strange a point is."""
    stored = _stored(result, "score")
    return None if stored is None else (-stored[0], stored[1])


def _sides(scores: dict[tuple[str, str], Scores]) -> tuple[list[str], list[str], str]:
    """Rows and columns of the figure, and a sentence about data sets without scores."""
    names = [setting_name(*pair) for pair in DATASET_CASES]
    rows = [p for p in PROTOCOLS if any(row == p for row, _ in scores)]
    columns = [name for name in names if any(column == name for _, column in scores)]
    absent = [name for name in names if name not in columns]
    return rows, columns, f" Missing, no scores stored: {', '.join(absent)}." if absent else ""
