"""Tables about the runs themselves: by which version, how well they split."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from giw.pages.style import name_of, variant_name
from giw.pages.tables import NONE, Entry, Group, Sheet, entries
from giw.paper.frame import SPLIT_QUALITY, Experiment, in_order
from giw.paper.variants import GIVEN


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
