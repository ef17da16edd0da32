"""Tables about the runs themselves: what was run, by which version, how well it split, how long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from giw.pages.style import name_of, setting_name, variant_name
from giw.pages.tables import NONE, Entry, Group, Sheet
from giw.paper.accuracy_tables import place_name
from giw.paper.frame import SPLIT_QUALITY, Experiment, Key
from giw.paper.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.settings import DATASET_CASES, SHIFTS
from giw.paper.variants import GIVEN


def coverage(experiments: Sequence[Experiment]) -> Sheet:
    """What was run: cells and trials for each experiment, protocol and data set."""
    n_cells = len(SHIFTS) * len(PAPER_METHODS)
    groups = []
    for experiment in experiments:
        frame, lines = experiment.frame, []
        for protocol in PROTOCOLS:
            rows = frame[frame.protocol == protocol]
            if rows.empty and protocol not in PROTOCOLS[:2]:
                continue
            line = [Entry(protocol)]
            for dataset, case in DATASET_CASES:
                here = rows[(rows.dataset == dataset) & (rows.case == case) & (rows.variant == "")]
                here = here[here.method.isin(PAPER_METHODS)]
                sizes = here.groupby(["shift", "method"]).size()
                trials = " to ".join(map(str, sorted({sizes.min(), sizes.max()})))
                text = f"{len(sizes)} of {n_cells} × {trials}" if len(sizes) else "none"
                line.append(Entry(text, missing=not len(sizes)))
            lines.append([*line, Entry(str(int((rows.variant != "").sum())))])
        groups.append(Group(experiment.name, lines))
    return Sheet(
        name="coverage",
        title="Cells and trials",
        head=["protocol", *(setting_name(*pair) for pair in DATASET_CASES), "runs of ablations"],
        groups=groups,
        notes=[
            f"Cells with at least one trial, of {n_cells} ({len(SHIFTS)} shifts × "
            f"{len(PAPER_METHODS)} methods), and the number of trials in them. Experiments with "
            "different epochs or seeds are never averaged together."
        ],
    )


def commit_sheet(experiments: Sequence[Experiment]) -> Sheet | None:
    """Which version made which methods' runs, where one experiment holds several."""
    groups = []
    for experiment in experiments:
        counts = pd.crosstab(experiment.frame["commit"], experiment.frame.method)
        if len(counts) > 1:
            lines = []
            for commit, of in counts.iterrows():
                names = [f"{name_of(m)} {of[m]}" for m in experiment.methods if of.get(m, 0)]
                lines.append([Entry(str(commit)), Entry(str(of.sum())), Entry(", ".join(names))])
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


def split_sheet(experiment: Experiment) -> Sheet | None:
    """How well the split tells inside from outside, wherever a method split."""
    cells = {
        key: trials
        for key, trials in experiment.cells.items()
        if trials.alpha.notna().any() and not key.variant.startswith(GIVEN)
    }
    if not cells:
        return None
    groups = []
    for place in experiment.places_of(cells):
        lines = []
        for key in sorted((key for key in cells if key.place == place), key=_order):
            variant = f", {variant_name(key.variant)}" if key.variant else ""
            name = f"{name_of(key.method)}{variant}, {key.protocol}"
            means = [_mean(cells[key][column]) for column in SPLIT_QUALITY]
            lines.append([Entry(name), *means, Entry(str(len(cells[key])))])
        groups.append(Group(place_name(place), lines))
    return Sheet(
        name=f"split-{experiment.slug}",
        title=f"Quality of the split, {experiment.name}",
        head=["method and protocol", *SPLIT_QUALITY.values(), "trials"],
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


def _order(key: Key) -> tuple[str, str, str, float, str]:
    """Methods as they are first, then their variants; amounts by size, not by spelling."""
    kind, _, amount = key.variant.rpartition("_")
    size = float(amount) if amount.isdigit() else 0.0
    return key.protocol, key.method, kind, size, key.variant


def _mean(column: pd.Series[float], digits: int = 2) -> Entry:
    values = column.dropna().to_numpy()
    if not len(values):
        return NONE
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return Entry(f"{np.mean(values):.{digits}f}{spread}")


def time_sheet(experiment: Experiment) -> Sheet:
    """Seconds per run and, where logged, the effective share of the training batch."""
    groups = []
    for dataset, case in experiment.dataset_cases:
        plain = experiment.plain
        here = plain[(plain.dataset == dataset) & (plain.case == case)]
        lines = [
            [Entry(name_of(method)), *_times(here[here.method == method])]
            for method in experiment.methods
            if (here.method == method).any()
        ]
        groups.append(Group(setting_name(dataset, case), lines))
    return Sheet(
        name=f"time-{experiment.slug}",
        title=f"Time per run, {experiment.name}",
        head=["method", "runs", "mean (s)", "least (s)", "most (s)", "effective share"],
        groups=groups,
        notes=[
            "Wall time of a run, or its share where trials were trained side by side, over all "
            "shifts and protocols. All runs of this experiment, ablations included: "
            f"{experiment.frame.seconds.sum():,.0f} s. Effective share: effective sample size of "
            "the weights over the size of the batch, mean over the last epochs; a dash where no "
            "weights were logged."
        ],
    )


def _times(rows: pd.DataFrame) -> list[Entry]:
    seconds, shares = rows.seconds, rows.effective_share.dropna()
    numbers = [f"{seconds.mean():.1f}", f"{seconds.min():.1f}", f"{seconds.max():.1f}"]
    share = Entry(f"{shares.mean():.2f}") if len(shares) else NONE
    return [Entry(str(len(rows))), *map(Entry, numbers), share]
