"""Results that nobody measured, for tests and for looking at the report."""

import zlib

import numpy as np

from giw.paper.plan import Run
from giw.paper.printed import paper_accuracy
from giw.paper.rows import Result

SPLITS = {"giw"}


def made_up(run: Run, accuracy: float | None = None) -> Result:
    """A result around the paper's figure, or ending at a given accuracy, the same every time."""
    rng = np.random.default_rng(zlib.crc32(run.key.encode()))
    level = accuracy
    if level is None:
        paper = paper_accuracy(run.dataset, run.case, run.shift, run.method)
        level = (90.0 if paper is None else paper.mean - 3) / 100 + 0.015 * rng.standard_normal()
    rise = 1 - 0.4 * np.exp(-np.arange(1, run.epochs + 1) / (0.15 * run.epochs))
    noise = 0 if accuracy is not None else 0.006 * rng.standard_normal(run.epochs)
    curve = (
        np.full(run.epochs, level) if accuracy is not None else np.clip(level * rise + noise, 0, 1)
    )
    splits = run.method in SPLITS and not run.shift.startswith("class_prior")
    extra = made_up_scores(rng) if splits else {}
    return Result(
        run,
        curve,
        seconds=round(float(rng.uniform(5, 60)), 2),
        split=made_up_quality(rng) if splits else {},
        weights={"effective_share": 0.4} if run.method in {"giw", "diw", "r_diw"} else {},
        about={"giw": "0.1.0", "torch": "2.13", "device": "made up", "commit": "abc"},
        extra=extra,
    )


def made_up_scores(rng) -> dict[str, list[float]]:
    inside = np.arange(20) < 8
    p_value = np.where(inside, rng.uniform(size=20), 0.1 * rng.uniform(size=20) ** 3)
    return {
        "p_value": [round(float(p), 5) for p in p_value],
        "inside": inside.astype(float).tolist(),
    }


def made_up_quality(rng) -> dict[str, float]:
    return {
        "alpha": round(0.4 + 0.03 * float(rng.standard_normal()), 4),
        "true_alpha": 0.4,
        "support_share": 0.42,
        "false_outside": 0.05,
        "false_inside": 0.1,
        "auroc": 0.95,
    }
