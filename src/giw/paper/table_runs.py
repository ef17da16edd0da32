"""Tables about the runs themselves: what was run, by which version, how well it split, how long."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from giw.pages.style import name_of, setting_name, variant_name
from giw.pages.tables import NONE, Entry, Group, Sheet, entries
from giw.paper.frame import COLUMNS, SPLIT_QUALITY, Experiment, in_order
from giw.paper.plan import PROTOCOLS
from giw.paper.settings import DATASET_CASES, SHIFTS
from giw.paper.variants import GIVEN


def coverage(experiments: Sequence[Experiment]) -> Sheet:
    """What was run: cells and trials for each experiment, protocol and data set."""
    n_cells = len(SHIFTS) * len(COLUMNS)
    groups = []
    for experiment in experiments:
        frame, lines = experiment.frame, []
        for protocol in PROTOCOLS:
            rows = frame[frame.protocol == protocol]
            if rows.empty:
                continue
            line = [Entry(protocol)]
            tabled = rows[(rows.variant == "") & rows.method.isin(COLUMNS)]
            for dataset, case in DATASET_CASES:
                here = tabled[(tabled.dataset == dataset) & (tabled.case == case)]
                counts = here.groupby(["shift", "method"]).size()
                trials = " to ".join(map(str, sorted({counts.min(), counts.max()})))
                text = f"{len(counts)} of {n_cells} × {trials}" if len(counts) else "none"
                line.append(Entry(text, missing=not len(counts)))
            lines.append([*line, Entry(str(int((rows.variant != "").sum())))])
        groups.append(Group(experiment.name, lines))
    return Sheet(
        name="coverage",
        title="Cells and trials",
        head=["protocol", *(setting_name(*pair) for pair in DATASET_CASES), "runs of ablations"],
        groups=groups,
        notes=[
            f"Cells with at least one trial, of {n_cells} ({len(SHIFTS)} shifts × {len(COLUMNS)} "
            "methods), and the number of trials in them. Experiments with different epochs or "
            "seeds are never averaged together."
        ],
    )


def versions(experiments: Sequence[Experiment]) -> Sheet:
    """Which version and commit made which methods' runs."""
    groups = []
    for experiment in experiments:
        rows = experiment.frame
        counts = pd.crosstab([rows["version"], rows["commit"]], rows.method)
        lines = []
        for (version, commit), of in counts.iterrows():
            names = [f"{name_of(m)} {of[m]}" for m in experiment.methods if of.get(m, 0)]
            lines.append(entries(f"{version}, {commit}", str(of.sum()), ", ".join(names)))
        groups.append(Group(experiment.name, lines))
    return Sheet(
        name="versions",
        title="Versions",
        head=["version, commit", "runs", "runs by method"],
        groups=groups,
        notes=[
            "A method may have changed between two versions; compare cells with that in mind. The "
            "history was rewritten before version 0.1.0, so a commit of it may be gone."
        ],
        align="lrl",
    )


def split_quality(experiment: Experiment) -> Sheet | None:
    """How well the split tells inside from outside, wherever a method split."""
    groups: dict[str, list[list[Entry]]] = {}
    for key in in_order(experiment.cells):
        trials = experiment.cells[key]
        if trials.alpha.isna().all() or key.variant.startswith(GIVEN):
            continue
        variant = f", {variant_name(key.variant)}" if key.variant else ""
        name = f"{name_of(key.method)}{variant}, {key.protocol}"
        means = [_mean(trials[column]) for column in SPLIT_QUALITY]
        line = [Entry(name), *means, Entry(str(len(trials)))]
        groups.setdefault(key.place.name, []).append(line)
    sheet = Sheet(
        name=f"split-{experiment.slug}",
        title=f"Quality of the split, {experiment.name}",
        head=["method and protocol", *SPLIT_QUALITY.values(), "trials"],
        groups=[Group(label, lines) for label, lines in groups.items()],
        notes=[
            "Mean ± standard deviation over trials. α is the mean membership that the objective "
            "uses; share inside estimates the share of the test distribution within the training "
            "support. False outside: inside points called outside, as a share of the inside ones; "
            "false inside likewise. AUROC is of the p-values. A dash: not logged or not defined."
        ],
    )
    return sheet if groups else None


def _mean(column: pd.Series[float]) -> Entry:
    values = column.dropna()
    if values.empty:
        return NONE
    spread = f" ± {values.std():.2f}" if len(values) > 1 else ""
    return Entry(f"{values.mean():.2f}{spread}")


def times(experiment: Experiment) -> Sheet:
    """Seconds per run and, where logged, the effective share of the training batch."""
    groups = []
    plain = experiment.plain
    for dataset, case in experiment.dataset_cases:
        lines = []
        for method in experiment.methods:
            here = plain[
                (plain.dataset == dataset) & (plain.case == case) & (plain.method == method)
            ]
            seconds, share = here.seconds, here.effective_share.mean()
            if len(here):
                spans = [f"{s:.1f}" for s in (seconds.mean(), seconds.min(), seconds.max())]
                weighs = "–" if pd.isna(share) else f"{share:.2f}"
                lines.append(entries(name_of(method), str(len(here)), *spans, weighs))
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
