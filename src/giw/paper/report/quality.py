"""Tables of what a run says besides its accuracy: how well it split, how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from giw.pages.sheet import NONE, Entry, Group, Sheet
from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.paper.bench.store import Result
from giw.paper.report.cells import Experiment, Key

SPLIT_COLUMNS = {
    "alpha": "α",
    "true_alpha": "true α",
    "support_share": "share inside",
    "false_outside": "false outside",
    "false_inside": "false inside",
    "auroc": "AUROC",
}


def split_sheet(experiment: Experiment) -> Sheet | None:
    """How well the split tells inside from outside, wherever a method split."""
    cells = {
        key: trials
        for key, trials in experiment.cells.items()
        if any(result.split for result in trials.values()) and not _given(key.variant)
    }
    if not cells:
        return None
    groups = [
        Group(
            f"{setting_name(*place[:2])}, {shift_name(place.shift)}",
            [
                [
                    Entry(_label(key)),
                    *(_mean(trials, name) for name in SPLIT_COLUMNS),
                    Entry(str(len(trials))),
                ]
                for key, trials in sorted(cells.items(), key=lambda cell: _order(cell[0]))
                if key.place == place
            ],
        )
        for place in experiment.places_of(cells)
    ]
    return Sheet(
        name=f"split-{experiment.slug}",
        title=f"Quality of the split, {experiment.name}",
        head=["method and protocol", *SPLIT_COLUMNS.values(), "trials"],
        groups=groups,
        notes=[
            "Mean ± standard deviation over trials. α is the mean membership that the objective "
            "uses; share inside estimates the share of the test distribution within the training "
            "support. False outside: inside points called outside, as a share of the inside ones; "
            "false inside likewise. AUROC is of the p-values. A dash: not logged or not defined. "
            "Where a setting is not here, no method that splits was run in it; under class-prior "
            "shift the paper's GIW does not split."
        ],
    )


def _given(variant: str) -> bool:
    return variant == "oracle" or variant.startswith(("out_to_in", "in_to_out"))


def _order(key: Key) -> tuple[str, str, str, float, str]:
    """Methods as they are first, then their variants; amounts by size, not by spelling."""
    kind, _, amount = key.variant.rpartition("_")
    size = float(amount) if amount.isdigit() else 0.0
    return key.protocol, key.method, kind, size, key.variant


def _label(key: Key) -> str:
    variant = f", {variant_name(key.variant)}" if key.variant else ""
    return f"{name_of(key.method)}{variant}, {key.protocol}"


def _mean(trials: Mapping[int, Result], name: str, digits: int = 2) -> Entry:
    values = [r.split[name] for _, r in sorted(trials.items()) if name in r.split]
    if not values:
        return NONE
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return Entry(f"{np.mean(values):.{digits}f}{spread}")


def commit_sheet(experiments: Sequence[Experiment]) -> Sheet | None:
    """Which version made which methods' runs, where one experiment holds several."""
    groups = []
    for experiment in experiments:
        runs: dict[str, dict[str, int]] = {}
        for key, trials in experiment.cells.items():
            for result in trials.values():
                of_commit = runs.setdefault(result.about.get("commit") or "not known", {})
                of_commit[key.method] = of_commit.get(key.method, 0) + 1
        if len(runs) > 1:
            lines = [
                [
                    Entry(commit),
                    Entry(str(sum(counts.values()))),
                    Entry(
                        ", ".join(
                            f"{name_of(m)} {counts[m]}" for m in experiment.methods if m in counts
                        )
                    ),
                ]
                for commit, counts in sorted(runs.items())
            ]
            groups.append(Group(experiment.name, lines))
    if not groups:
        return None
    return Sheet(
        name="commits",
        title="Versions that stand in one table",
        head=["commit", "runs", "runs by method"],
        groups=groups,
        notes=["A method may have changed between two versions; compare cells with that in mind."],
    )


def time_sheet(experiment: Experiment) -> Sheet:
    """Seconds per run and, where logged, the effective share of the training batch."""
    groups = []
    for dataset, case in experiment.dataset_cases:
        lines = []
        for method in experiment.methods:
            found = [
                result
                for key, trials in sorted(experiment.cells.items())
                if (key.place.dataset, key.place.case) == (dataset, case)
                and key.method == method
                and not key.variant
                for _, result in sorted(trials.items())
            ]
            if found:
                lines.append([Entry(name_of(method)), *_times(found)])
        groups.append(Group(setting_name(dataset, case), lines))
    total = sum(r.seconds for trials in experiment.cells.values() for r in trials.values())
    return Sheet(
        name=f"time-{experiment.slug}",
        title=f"Time per run, {experiment.name}",
        head=["method", "runs", "mean (s)", "least (s)", "most (s)", "effective share"],
        groups=groups,
        notes=[
            "Wall time of a run, or its share where trials were trained side by side, over all "
            f"shifts and protocols. All runs of this experiment, ablations included: {total:,.0f} "
            "s. Effective share: effective sample size of the weights over the size of the batch, "
            "mean over the last epochs; a dash where no weights were logged."
        ],
    )


def _times(results: Sequence[Result]) -> list[Entry]:
    seconds = [result.seconds for result in results]
    shares = [r.weights["effective_share"] for r in results if "effective_share" in r.weights]
    return [
        Entry(str(len(results))),
        Entry(f"{np.mean(seconds):.1f}"),
        Entry(f"{min(seconds):.1f}"),
        Entry(f"{max(seconds):.1f}"),
        Entry(f"{np.mean(shares):.2f}") if shares else NONE,
    ]
