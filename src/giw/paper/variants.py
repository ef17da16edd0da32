"""Ablations: a method or a problem with something changed, by name; joined by + they compose.

``hidden``              weights from hidden layers (GIW-F, DIW-F) instead of losses
``input``, ``fc1``      the split sees inputs, or the hidden layer as in the paper
``osvm_text``, ``osvm_code``   the published split with either published threshold
``soft``                posterior membership in both terms
``level_R``             p-values alone decide, at level R
``paper_bandwidth``, ``median_bandwidth``   the published kernel width, or the scale-free median
``oracle``              the true split
``out_to_in_R``, ``in_to_out_R``  the true split, a share R of one group put on the wrong side
``first_release``       MW-Net whose weights are not normalised, as its authors first had it
``one_step``            Val-only and Pretrain-val: an epoch is a pass over validation data, one step
``val_share_R``         DANN and CCSA: the weight of validation points in the classifier's loss
``eval_loss``           weights from losses in evaluation mode, both batches forwarded apart
``wide_net``            LeNet-5 with 20 and 50 channels for grey images too
``draw_ten``            authors' draw for MNIST (iv): all ten digits drawn, and 0 and 1 dropped
``all_rows``            pretraining keeps no training row back, not up to 2,000, to calibrate on
``unscaled``            the rate is cut every 100 epochs, however few the epochs
``n_train_N``, ``n_val_N``   fewer training points, another number of validation points
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from giw.nets.methods import GIW, method_named
from giw.nets.training import Evidence, Method
from giw.objective import DynamicWeights
from giw.paper.narrow_svm import PublishedSplitter
from giw.paper.sample import Truth
from giw.support import SupportSplit

SPLIT_GIW = "giw_split"  # GIW with its split where the paper's GIW has none
GIWS, UNSPLIT = ("giw", SPLIT_GIW), "giw_unsplit"
WEIGHING = (*GIWS, UNSPLIT, "diw")
# As the paper has them: exact weights with its kernel width, losses as its code takes them,
# one-class SVM at 0.4 on all rows, the rate cut where the paper cuts it.
PUBLISHED = {
    "giw_published": ("giw", ("all_rows", "eval_loss", "osvm_text", "paper_bandwidth", "unscaled")),
    "diw_published": ("diw", ("all_rows", "eval_loss", "paper_bandwidth", "unscaled")),
}
# What each name changes and in which methods; None: the method decides whether it has that.
CHANGES: dict[str, tuple[tuple[str, ...] | None, dict[str, Any]]] = {
    "hidden": (None, {"representation": "hidden"}),
    "paper_bandwidth": (WEIGHING, {"bandwidth": "paper"}),
    "median_bandwidth": (WEIGHING, {"bandwidth": "median"}),
    "input": (GIWS, {"split_on": "input"}),
    "fc1": (GIWS, {"split_on": "hidden"}),
    "osvm_text": (GIWS, {"split_on": "hidden", "threshold": "text"}),
    "osvm_code": (GIWS, {"split_on": "hidden", "threshold": "code"}),
    "soft": (GIWS, {"soft": True}),
    "level": (GIWS, {}),
    "oracle": (GIWS, {}),
    "out_to_in": (GIWS, {}),
    "in_to_out": (GIWS, {}),
    "first_release": (("mw_net",), {"normalise": False}),
    "one_step": (("val_only", "pretrain_val"), {}),
    "val_share": (("dann", "ccsa"), {}),
    "eval_loss": (WEIGHING, {"representation": "eval_loss"}),
    "wide_net": (None, {}),
    "draw_ten": (None, {}),
    "all_rows": (None, {}),
    "unscaled": (None, {}),
    "n_train": (None, {}),
    "n_val": (None, {}),
}
SHARES, COUNTS = ("level", "val_share", "out_to_in", "in_to_out"), ("n_train", "n_val")
GIVEN = ("oracle", "out_to_in", "in_to_out")
KNOWN = tuple(f"{n}_R" if n in SHARES else f"{n}_N" if n in COUNTS else n for n in CHANGES)


def parts_of(variant: str) -> dict[str, float]:
    """Names and amounts that a variant is made of; an unknown one is a ValueError.

    >>> parts_of("osvm_code+level_0.1")
    {'osvm_code': 0.0, 'level': 0.1}
    """
    found: dict[str, float] = {}  # whole numbers stay whole
    for part in filter(None, variant.split("+")):
        name, _, amount = part.rpartition("_")
        number = float(amount) if re.fullmatch(r"\d+(\.\d+)?", amount) else None
        if number is not None and name in SHARES and number <= 1:
            found[name] = number
        elif name in COUNTS and amount.isdigit() and int(amount) > 0:
            found[name] = int(amount)
        elif part in CHANGES and part not in SHARES + COUNTS:
            found[part] = 0.0
        else:
            raise ValueError(f"unknown variant {part!r}; known are {', '.join(KNOWN)}")
    return found


def composed(variants: tuple[str, ...] | list[str]) -> str:
    """One name for several changes at once, the same in whatever order they are given."""
    parts = sorted({part for variant in variants for part in variant.split("+") if part})
    return "+".join(parts)


def as_made(method: str, variant: str, *, splits: bool = True) -> tuple[str, str]:
    """A published method as the method and the variant that it is; others as they are."""
    if method not in PUBLISHED:
        return method, variant
    base, parts = PUBLISHED[method]
    kept = [part for part in parts if splits or part != "osvm_text"]
    return base, composed([*kept, variant])


def check_variant(method: str, variant: str, *, splits: bool = True) -> None:
    """Refuse what a method cannot be asked for, before hours are planned around it."""
    asked = method
    method, variant = as_made(method, variant, splits=splits)
    if method == "giw" and not splits:
        method = UNSPLIT
    parts = parts_of(variant)
    for name in parts:
        wanted = CHANGES[name][0]
        if wanted is not None and method not in wanted:
            why = f", which does not split under class-prior shift ({SPLIT_GIW} does)"
            raise ValueError(
                f"variant {name!r} is one of {' and '.join(wanted)}, not of {asked}"
                + why * (method == UNSPLIT and asked == "giw")
            )
    settings: dict[str, Any] = {}
    for name in parts:
        for key, value in CHANGES[name][1].items():
            if settings.setdefault(key, value) != value:
                raise ValueError(f"variant {variant!r} asks for two values of {key}")
    if sum(name in GIVEN for name in parts) > 1:
        raise ValueError(f"variant {variant!r} names more than one known split")


def make_method(
    method: str, variant: str, truths: Mapping[int, Truth], *, splits: bool = True
) -> Method:
    """A method as a job asks for it.

    Parameters
    ----------
    method, variant : str
    truths : mapping from the random state of each trial to its truth
        Used by the variants that are about the truth, and by no other.
    splits : bool, default=True
        False under class-prior shift, where the paper's GIW does not split.
    """
    check_variant(method, variant, splits=splits)
    method, variant = as_made(method, variant, splits=splits)
    parts = parts_of(variant)
    settings: dict[str, Any] = {}
    for name in parts:
        settings |= CHANGES[name][1]
    settings |= {name: parts[name] for name in ("level", "val_share") if name in parts}
    if "bandwidth" in settings:
        settings["weigh"] = DynamicWeights(bandwidth=settings.pop("bandwidth"))
    if "threshold" in settings:
        threshold = settings.pop("threshold")
        settings["splitter"] = PublishedSplitter(scorer="osvm", threshold=threshold)
    for name in GIVEN:
        if name in parts:
            sides = {
                seed: wrong_sides(truth.inside, name == "in_to_out", parts[name], seed)
                for seed, truth in truths.items()
            }
            given = tuple((seed, tuple(map(bool, side))) for seed, side in sides.items())
            return GivenSplit(given=given, **settings)
    if method == "giw" and not splits:
        method = UNSPLIT
    return method_named("giw" if method == SPLIT_GIW else method, **settings)


def wrong_sides(
    inside: NDArray[np.bool_], from_inside: bool, share: float, seed: int
) -> NDArray[np.bool_]:
    """The true split with a share of one group on the wrong side, rounded to whole points."""
    group = np.flatnonzero(inside == from_inside)
    moved = np.random.default_rng(seed).permutation(group)[: round(share * len(group))]
    wrong = inside.copy()
    wrong[moved] = ~wrong[moved]
    return wrong


@dataclass(frozen=True)
class GivenSplit(GIW):
    """GIW with a split that was handed to it; for ablations, where the truth is known.

    ``given`` pairs the random state of each trial with its split, so that trials can be trained
    side by side by one method.
    """

    given: tuple[tuple[int, tuple[bool, ...]], ...] = ()

    def split(self, evidence: Evidence) -> SupportSplit:
        """The given one."""
        inside = torch.tensor(dict(self.given)[evidence.random_state])
        return SupportSplit.given(inside.to(evidence.y_val.device))
