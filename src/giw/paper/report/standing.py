"""Which methods cannot be told from the best when some of them lack trials."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from giw.pages.tables import LEVEL, Row, paired_p_value

Trials = Mapping[int, float]  # accuracy, between 0 and 1, by number of the trial


def standings(accuracy: Mapping[str, Trials]) -> dict[str, Row]:
    """Mean and spread of each method over its own trials, and how it stands to the best.

    The best is the highest mean among the methods with at least half as many trials as the one with
    most, and at least two where any has, so that one lucky trial wins nothing. Another method is
    tested against it by a paired t-test over the trials that both have; it is tied where the test
    does not tell them apart, or where it is ahead on those trials. Fewer than two shared trials
    allow no test.

    With the same trials throughout this is :func:`giw.pages.summarize`.

    Parameters
    ----------
    accuracy : mapping from method to accuracies by trial
        Methods without any trial are left out.
    """
    present = {method: trials for method, trials in accuracy.items() if trials}
    if not present:
        return {}
    most = max(map(len, present.values()))
    enough = max(min(2, most), most / 2)
    eligible = [method for method, trials in present.items() if len(trials) >= enough]
    best = max(eligible, key=lambda method: _mean(present[method]))
    return {method: _row(method, present[method], best, present[best]) for method in present}


def _mean(trials: Trials) -> float:
    return float(np.mean([trials[t] for t in sorted(trials)]))


def _row(method: str, trials: Trials, best: str, best_trials: Trials) -> Row:
    values = np.array([trials[t] for t in sorted(trials)])
    p_value, ahead, common = paired(best_trials, trials)
    tested = method != best and p_value is not None
    return Row(
        method=method,
        mean=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else None,
        n=len(values),
        best=method == best,
        tied=tested and (p_value >= LEVEL or ahead > 0),  # type: ignore[operator]
        p_value=p_value if tested else None,
        shared=common,
    )


def paired(left: Trials, right: Trials) -> tuple[float | None, float, int]:
    """Two-sided p-value, mean of right minus left, and number of trials that both have."""
    common = sorted(set(left) & set(right))
    if not common:
        return None, 0.0, 0
    a, b = (np.array([trials[t] for t in common]) for trials in (left, right))
    return paired_p_value(a, b), float((b - a).mean()), len(common)
