"""Which of the paper's cells our runs reproduce, and for each of the others why not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from scipy import stats

import giw
from giw.pages.style import name_of
from giw.pages.tables import LEVEL, NONE, Entry, Group, Row, Sheet, entries
from giw.paper.frame import COLUMNS, PLACES, Experiment, Key, Place
from giw.paper.plan import PROTOCOLS
from giw.paper.printed import PaperFigure, paper_accuracy

PAPER_TRIALS = 5
COMPARED = tuple(method for method in COLUMNS if method != "pooled")  # not in the paper
WITHIN = 3.0  # points from the paper's mean within which a cell may count as reproduced
LONG = 100  # epochs from which a run counts
REPRODUCED = "reproduced"


def agrees(row: Row, paper: PaperFigure) -> bool:
    """Whether a two-sided Welch test does not tell our mean from the paper's at the 5 % level."""
    if row.std is None:
        return False  # one trial has no spread, and so no test
    ours, theirs = 100 * row.mean, paper.mean
    if row.std == 0 and paper.std == 0:  # no spread at all: the test would be 0 / 0
        return abs(ours - theirs) < 0.005  # the paper prints two decimals
    p_value = stats.ttest_ind_from_stats(
        ours, 100 * row.std, row.n, theirs, paper.std, PAPER_TRIALS, equal_var=False
    ).pvalue
    return bool(p_value >= LEVEL)


def reproduced(row: Row, paper: PaperFigure) -> bool:
    """Within three points of the paper's mean and not told apart from it, or within one point."""
    away = abs(100 * row.mean - paper.mean)
    return away <= 1 or (away <= WITHIN and agrees(row, paper))


def candidates(experiments: Sequence[Experiment], place: Place, method: str) -> list[_Found]:
    """Our cells for one of the paper's: long enough, at its scale, of the method or a reading."""
    readings = dict.fromkeys(["", READINGS.get(method, "")])
    long = [e for e in experiments if e.scale == "paper" and e.epochs >= LONG]
    every = product(long, PROTOCOLS, (method, f"{method}_published"), readings)
    keys = [(e, Key(place, protocol, name, variant)) for e, protocol, name, variant in every]
    return [(e, key, row) for e, key in keys if (row := e.row(key)) is not None]


_Found = tuple[Experiment, Key, Row]
# Changes that are a reading of the paper, not a departure from it.
READINGS = dict.fromkeys(("val_only", "pretrain_val"), "one_step")
READINGS |= {"mw_net": "first_release", "giw": "wide_net"}


def cells_sheet(experiments: Sequence[Experiment]) -> Sheet:
    """Each of the paper's cells beside our nearest run, and one sentence of why it is not near."""
    groups = []
    for place in PLACES:
        lines = []
        for method in COMPARED:
            paper = paper_accuracy(*place, method)
            if paper is None:
                continue
            found = candidates(experiments, place, method)
            agreeing = [one for one in found if reproduced(one[2], paper)] or found
            best = min(agreeing, key=lambda f: abs(100 * f[2].mean - paper.mean), default=None)
            ours = _ours(*best) if best else [NONE, NONE]
            said = Entry(verdict(place, method, paper, found))
            lines.append([*entries(name_of(method), str(paper)), *ours, said])
        groups.append(Group(place.name, lines))
    return Sheet(
        name="cells",
        title="The paper's cells, one by one",
        head=["method", "paper", "our nearest run", "which run", "verdict"],
        groups=groups,
        notes=[
            reproduced_sentence(experiments),
            f"Reproduced: a run of {LONG} epochs or more under any protocol lies within {WITHIN:g} "
            "points of the paper's mean and is not told apart from it (Welch, 5 %), or lies within "
            "1 point; few trials tell little apart. The nearest of these stands here. A verdict "
            "names what is known to differ from the paper; that it is the cause is shown for none.",
        ],
        align="lrrll",
    )


def _ours(experiment: Experiment, key: Key, row: Row) -> list[Entry]:
    words = ["published"] * key.method.endswith("_published") + [key.variant, key.protocol]
    words += [f"{experiment.epochs} epochs", f"{row.n} trials" if row.n < PAPER_TRIALS else ""]
    words += sorted(set(experiment.cells[key].version))
    return entries(row.accuracy(2), ", ".join(filter(None, words)))


def verdict(place: Place, method: str, paper: PaperFigure, found: Sequence[_Found]) -> str:
    """Reproduced, or in one sentence why not."""
    if any(reproduced(row, paper) for _, _, row in found):
        return REPRODUCED
    if not found:
        return "not run"
    current = any(giw.__version__ in set(e.cells[key].version) for e, key, _ in found)
    open_still = DIFFERS.get(place.dataset) or DIFFERS.get(method) if not current else ""
    open_still = open_still or LEFT_OPEN.get(method, "not explained")
    return open_still if current else f"{open_still}; not run at this version"


# What is known to differ between the runs of version 0.1.0 and the paper's.
_PASS = "a pass over training data per epoch, where the paper's figures fit one step"
_DRAW = "another validation draw, kernel width and solver of the weights"
DIFFERS = {
    "cifar20": "14,233 of the paper's 20,000 images, with recovered labels",
    "mw_net": "weights were not normalised, as in the authors' first release",
    **{"val_only": _PASS, "pretrain_val": _PASS, "giw": _DRAW, "diw": _DRAW},
}
# Methods for which the paper prints no settings.
LEFT_OPEN = dict.fromkeys(
    ("dann", "ccsa"), "the paper prints no settings, and ours are one reading of several"
)


def reproduced_sentence(experiments: Sequence[Experiment]) -> str:
    """How many of the paper's cells on MNIST and Color-MNIST have a run that agrees with it."""
    said = [
        verdict(place, method, paper, candidates(experiments, place, method))
        for place, method in product(PLACES, COMPARED)
        if place.dataset != "cifar20" and (paper := paper_accuracy(*place, method))
    ]
    return (
        f"{said.count(REPRODUCED)} of the paper's {len(said)} cells on MNIST and Color-MNIST have "
        f"a run of {LONG} epochs or more within {WITHIN:g} points of the paper's mean and not told "
        f"apart from it, or within 1 point; {len(said) - said.count('not run')} cells were run."
    )
