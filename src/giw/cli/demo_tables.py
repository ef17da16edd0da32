"""The tables of ``giw demo``: two real shifts, and the simple rivals of the stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from giw.cli.example import STORIES, example_tables
from giw.estimators import ReweightedClassifier
from giw.estimators.fitting import one_thread
from giw.pages.figures import FONT, dress, new_figure, settled
from giw.pages.page import Picture, Section
from giw.pages.style import BLUE, INK, LINE, VERMILION
from giw.pages.tables import Entry, Group, Sheet

GIW = "giw, stack"
SHOWN = {
    "time-drift": "Another season: summer to autumn",
    "new-category": "A category that training never had",
}
Found = Mapping[str, Mapping[str, NDArray[np.float64]]]  # example → model → (draws, 2)


def compare_tables(
    draws: int, seed: int, on_fit: Callable[[str], None] = lambda name: None
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Accuracy and log-loss on new rows, for each example and each model, (draws, 2)."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name in SHOWN:
        label, tables = STORIES[name].label, example_tables(name)
        y = tables["train"].pop(label)
        target = pd.concat([tables["val"], tables["new"]], ignore_index=True)
        m, scores = len(tables["val"]), found.setdefault(name, {})
        for draw in range(draws):
            order = np.random.default_rng([seed, draw]).permutation(len(target))
            val, new = target.iloc[order[:m]], target.iloc[order[m:]]
            X_new, y_new = new.drop(columns=label), new[label]
            rows = tables["train"], y, val.drop(columns=label), val[label]
            for way, model in _fitted(
                *rows, seed=seed, on_fit=lambda w, n=name: on_fit(f"{n}, {w}")
            ):
                loss = log_loss(y_new, model.predict_proba(X_new), labels=model.classes_)
                scores.setdefault(way, []).append((model.score(X_new, y_new), loss))
    return {n: {way: np.array(s) for way, s in scores.items()} for n, scores in found.items()}


def _fitted(X, y, X_val, y_val, *, seed, on_fit):  # type: ignore[no-untyped-def]
    """Boosted trees in every simple way, and the stack: pairs of name and model."""
    text = X.select_dtypes(exclude="number").columns.tolist()
    numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((numbers, text), remainder="passthrough")
    trees = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=50, random_state=seed))
    both, label = pd.concat([X, X_val]), pd.concat([y, y_val])
    balanced = np.r_[np.ones(len(y)), np.full(len(y_val), len(y) / len(y_val))]
    weight = f"{trees.steps[-1][0]}__sample_weight"
    ways = {
        "share of validation": lambda: DummyClassifier(strategy="prior").fit(X_val, y_val),
        "training alone": lambda: clone(trees).fit(X, y),
        "validation alone": lambda: clone(trees).fit(X_val, y_val),
        "both tables": lambda: clone(trees).fit(both, label),
        "both, balanced": lambda: clone(trees).fit(both, label, **{weight: balanced}),
        GIW: lambda: ReweightedClassifier(trees, random_state=seed).fit(X, y, X_val, y_val),
    }
    for way, fit in ways.items():
        on_fit(way)
        with one_thread():  # a second one only waits where other programs run
            model = fit()
        yield way, model


def in_words(found: Found) -> str:
    """Where the stack is ahead of the best simple way and where it is not, by log-loss."""
    parts = []
    for name, scores in found.items():
        loss = {way: float(each[:, 1].mean()) for way, each in scores.items()}
        best = min((way for way in loss if way != GIW), key=loss.__getitem__)
        parts.append(
            f"{SHOWN[name]}: the stack has a log-loss of {loss[GIW]:.3f} and the best simple way "
            f"({best}) one of {loss[best]:.3f}."
        )
    return " ".join(parts)


def table_section(found: Found, draws: int) -> Section:
    """The part of the page that shows them."""
    groups = []
    for name, scores in found.items():
        mean = {way: each.mean(axis=0) for way, each in scores.items()}
        least = min(loss for _, loss in mean.values())
        rows = [
            [Entry(way), Entry(f"{100 * accuracy:.1f}"), Entry(f"{loss:.3f}", bold=loss == least)]
            for way, (accuracy, loss) in mean.items()
        ]
        groups.append(Group(SHOWN[name], rows))
    sheet = Sheet(
        "tables", "", ["boosted trees", "accuracy (%)", "log-loss"], groups,
        notes=[f"Means over {draws} draws of the 150 validation rows. The least log-loss is bold."],
    )  # fmt: skip
    text = [
        "Flights from New York. In the first table summer is training and autumn is where the "
        "model will be used: is a flight more than 15 minutes late? In the second training has "
        "no flight of United: is the aircraft a large one? The season is a real shift; the airline "
        "was left out by hand.",
        "The simple ways are those that one would try without giw. In the second table one of "
        "them is as good: trees that see both tables learn the new category by themselves.",
    ]
    return Section(
        title="Two real shifts in tables", text=text, sheets=[sheet],
        pictures=[
            Picture(
                loss_dots(found), name="tables",
                alt=f"Log-loss of each way on each table. {in_words(found)}",
                caption="Log-loss on new rows, less is better; a dot is a draw.",
            )
        ],
    )  # fmt: skip


def loss_dots(found: Found) -> Figure:
    """A dot for the log-loss of each draw; one panel for each table."""
    figure, axes = new_figure(height=2.2 * len(found))
    axes.remove()
    panels = figure.subplots(len(found), 1)
    for panel, (name, scores) in zip(np.atleast_1d(panels), found.items(), strict=True):
        dress(panel)
        ways = list(scores.items())[::-1]
        for row, (way, each) in enumerate(ways):
            color = VERMILION if way == GIW else BLUE
            panel.plot(each[:, 1], [row] * len(each), "o", color=color, alpha=0.75)
        panel.set_yticks(range(len(scores)), [way for way, _ in ways])
        panel.set_ylim(-0.6, len(scores) - 0.4)
        panel.grid(axis="x", color=LINE, linewidth=0.7)
        panel.set_title(SHOWN[name], loc="left", fontsize=FONT, color=INK)
    return settled(figure)
