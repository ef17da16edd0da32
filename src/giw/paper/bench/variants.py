"""Ablations: a method or a problem with one thing changed, by name.

``hidden``              weights from hidden layers (GIW-F, DIW-F) instead of losses
``input``, ``fc1``      the split sees inputs, or the hidden layer as in the paper
``osvm_text``, ``osvm_code``   the published split with either published threshold
``soft``                posterior membership in both terms
``level_R``             p-values alone decide, at level R
``paper_bandwidth``, ``median_bandwidth``   the published kernel width, or the scale-free median
``oracle``              the true split
``out_to_in_R``, ``in_to_out_R``  the true split, a share R of one group put on the wrong side
``plus_no_align``, ``plus_no_class_shares``, ``plus_one_copy``, ``plus_no_augment``,
``plus_hard``           GIW+ without one of its parts
``plus_NAME_X``         GIW+ with its number NAME set to X, such as ``plus_copies_2``;
                        several are joined by +, as in ``plus_copies_2+align_1``
``mean_one``            MW-Net with weights of mean one
``pooled_data``         DFR on training and validation data with balanced classes
``middle_block``, ``last_block``   surgical fine-tuning of another block than the first
``n_train_N``, ``n_val_N``   fewer training points, another number of validation points
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from giw.nets.methods import GIW, method_named
from giw.nets.training import Evidence, Method
from giw.objective import DynamicWeights
from giw.paper.bench.plan import SPLIT_GIW
from giw.paper.shift import ShiftProblem, Truth
from giw.support import SupportSplit, SupportSplitter

Changed = tuple[ShiftProblem, Truth]


@dataclass(frozen=True)
class GivenSplit(GIW):
    """GIW with a split that was handed to it; for ablations, where the truth is known.

    ``given`` pairs the random state of each trial with its split, so that trials can be trained
    side by side by one method.
    """

    given: tuple[tuple[int, tuple[bool, ...]], ...] = ()

    def split(self, evidence: Evidence) -> SupportSplit:
        """The given one."""
        inside = torch.tensor(dict(self.given)[evidence.random_state], device=evidence.y_val.device)
        return SupportSplit.given(inside)


def make_method(method: str, variant: str, truths: Mapping[int, Truth], *, splits: bool) -> Method:
    """A method as a job asks for it.

    Parameters
    ----------
    method, variant : str
    truths : mapping from the random state of each trial to its truth
        Used by the variants that are about the truth, and by no other.
    splits : bool
        False under class-prior shift, where the paper's GIW does not split.
    """
    check_variant(variant)
    if method == "giw" and not splits and not variant:
        return method_named("giw_unsplit")
    if method == SPLIT_GIW:
        method = "giw"
    if variant.startswith(("n_train_", "n_val_")) or not variant:
        return method_named(method)
    name, _, amount = variant.rpartition("_")
    if variant == "oracle" or name in ("out_to_in", "in_to_out"):
        _only(method, variant, "giw")
        share = 0.0 if variant == "oracle" else float(amount)
        wrong = {
            seed: _wrong_sides(truth.inside, name == "in_to_out", share, seed)
            for seed, truth in truths.items()
        }
        return GivenSplit(given=tuple((seed, tuple(map(bool, w))) for seed, w in wrong.items()))
    if name == "level":
        return _giw(level=float(amount))(method)
    if variant.startswith("plus_"):
        _only(method, variant, "giw_plus", "pooled_plus")
        return method_named(method, **_plus_settings(variant))
    return SIMPLE[variant](method)


def check_variant(variant: str) -> None:
    """Refuse a name that is no variant, before hours are planned around it."""
    name, _, amount = variant.rpartition("_")
    sized = name in ("n_train", "n_val") and amount.isdigit() and int(amount) > 0
    if variant in ("", "oracle", *SIMPLE) or sized:
        return
    if variant.startswith("plus_"):
        _plus_settings(variant)
        return
    if name in ("out_to_in", "in_to_out", "level"):
        try:
            if 0 <= float(amount) <= 1:
                return
        except ValueError:
            pass
    raise ValueError(f"unknown variant {variant!r}; known are {', '.join(KNOWN)}")


def change_problem(problem: ShiftProblem, truth: Truth, variant: str, seed: int) -> Changed:
    """A problem as a run asks for it: with fewer training points, or as it is."""
    if not variant.startswith("n_train_"):
        return problem, truth
    wanted = int(variant.removeprefix("n_train_"))
    if wanted > len(problem.train):
        raise ValueError(f"{variant} asks for more than the {len(problem.train)} training points")
    rows = np.sort(np.random.default_rng(seed).permutation(len(problem.train))[:wanted])
    weight = None if truth.weight is None else truth.weight[rows] / truth.weight[rows].mean()
    group = None if truth.train_group is None else truth.train_group[rows]
    return (
        replace(problem, train=problem.train.take(rows)),
        replace(truth, weight=weight, flipped=truth.flipped[rows], train_group=group),
    )


def n_val_of(variant: str, default: int) -> int:
    """How many validation points a variant asks for."""
    return int(variant.removeprefix("n_val_")) if variant.startswith("n_val_") else default


def _wrong_sides(
    inside: NDArray[np.bool_], from_inside: bool, share: float, seed: int
) -> NDArray[np.bool_]:
    """The true split with a share of one group on the wrong side, rounded to whole points."""
    group = np.flatnonzero(inside == from_inside)
    moved = np.random.default_rng(seed).permutation(group)[: round(share * len(group))]
    wrong = inside.copy()
    wrong[moved] = ~wrong[moved]
    return wrong


def _only(method: str, variant: str, *wanted: str) -> None:
    if method not in wanted:
        raise ValueError(f"variant {variant!r} is one of {' and '.join(wanted)}, not of {method}")


def _plus_settings(variant: str) -> dict[str, object]:
    settings: dict[str, object] = {}
    for part in variant.removeprefix("plus_").split("+"):
        name, _, amount = part.rpartition("_")
        if f"plus_{part}" in PLUS:
            settings |= PLUS[f"plus_{part}"]
        elif name in PLUS_NUMBERS and _digits(name, amount).isdigit():
            settings[name] = int(amount) if name == "copies" else float(amount)
        else:
            raise ValueError(f"unknown variant {variant!r}; known are {', '.join(KNOWN)}")
    return settings


def _digits(name: str, amount: str) -> str:
    """What must be digits of a number: all of a count, all but a point of others."""
    return amount if name == "copies" else amount.replace(".", "", 1)


def _giw(**settings: object) -> Callable[[str], Method]:
    return _of("giw", **settings)


def _of(wanted: str, **settings: object) -> Callable[[str], Method]:
    def make(method: str) -> Method:
        _only(method, str(settings), wanted)
        return method_named(wanted, **settings)

    return make


SIMPLE: dict[str, Callable[[str], Method]] = {
    "hidden": lambda method: method_named(method, representation="hidden"),
    "paper_bandwidth": lambda method: method_named(method, weigh=DynamicWeights(bandwidth="paper")),
    "median_bandwidth": lambda method: method_named(
        method, weigh=DynamicWeights(bandwidth="median")
    ),
    "input": _giw(split_on="input"),
    "fc1": _giw(split_on="hidden"),
    "osvm_text": _giw(split_on="hidden", splitter=SupportSplitter(scorer="osvm", threshold="text")),
    "osvm_code": _giw(split_on="hidden", splitter=SupportSplitter(scorer="osvm", threshold="code")),
    "soft": _giw(soft=True),
    "mean_one": _of("mw_net", mean_one=True),
    "pooled_data": _of("dfr", data="pooled"),
    "middle_block": _of("surgical", block="middle"),
    "last_block": _of("surgical", block="last"),
}
PLUS: dict[str, dict[str, object]] = {
    "plus_no_augment": {"augment": False},
    "plus_one_copy": {"copies": 1},
    "plus_no_class_shares": {"class_shares": False},
    "plus_hard": {"soft": False},
    "plus_no_align": {"align": 0.0},
}
PLUS_NUMBERS = ("train_share", "copies", "align")
KNOWN = (
    *SIMPLE,
    *PLUS,
    "plus_NAME_X",
    "oracle",
    "level_R",
    "out_to_in_R",
    "in_to_out_R",
    "n_train_N",
    "n_val_N",
)
