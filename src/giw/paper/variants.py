"""Ablations: a method or a problem with something changed, by name; joined by + they compose."""

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
from giw.paper.shifts import Truth
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
# A name in SHARES ends in a share such as _0.3, one in COUNTS in a number such as _40.
CHANGES: dict[str, tuple[tuple[str, ...] | None, dict[str, Any]]] = {
    # weights from hidden layers (GIW-F, DIW-F) instead of losses, or from losses in evaluation mode
    "hidden": (None, {"representation": "hidden"}),
    "eval_loss": (WEIGHING, {"representation": "eval_loss"}),
    # the published kernel width, or the scale-free median of distances
    "paper_bandwidth": (WEIGHING, {"bandwidth": "paper"}),
    "median_bandwidth": (WEIGHING, {"bandwidth": "median"}),
    # the split sees inputs, or the hidden layer as in the paper
    "input": (GIWS, {"split_on": "input"}),
    "fc1": (GIWS, {"split_on": "hidden"}),
    # the published split with either published threshold
    "osvm_text": (GIWS, {"split_on": "hidden", "threshold": "text"}),
    "osvm_code": (GIWS, {"split_on": "hidden", "threshold": "code"}),
    "soft": (GIWS, {"soft": True}),  # posterior membership in both terms
    "level": (GIWS, {}),  # p-values alone decide, at this level
    # the true split; with a share of one group put on the wrong side
    "oracle": (GIWS, {}),
    "out_to_in": (GIWS, {}),
    "in_to_out": (GIWS, {}),
    "first_release": (("mw_net",), {"normalise": False}),  # weights as its authors first had them
    "one_step": (("val_only", "pretrain_val"), {}),  # an epoch is a pass over validation data
    "val_share": (("dann", "ccsa"), {}),  # weight of validation points in the classifier's loss
    "wide_net": (None, {}),  # LeNet-5 with 20 and 50 channels for grey images too
    "draw_ten": (None, {}),  # authors' draw for MNIST (iv): all ten digits, 0 and 1 dropped
    "all_rows": (None, {}),  # pretraining keeps no row back to calibrate on
    "unscaled": (None, {}),  # the rate is cut every 100 epochs, however few the epochs
    "n_train": (None, {}),  # fewer training points
    "n_val": (None, {}),  # another number of validation points
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


def checked(
    method: str, variant: str, *, splits: bool = True
) -> tuple[str, dict[str, float], dict[str, Any]]:
    """The method that is meant, the parts of its variant, and the settings that they change.

    What a method cannot be asked for is refused, before hours are planned around it.
    """
    asked, (method, variant) = method, as_made(method, variant, splits=splits)
    method = UNSPLIT if method == "giw" and not splits else method
    parts = parts_of(variant)
    settings: dict[str, Any] = {}
    for name, amount in parts.items():
        wanted, changed = CHANGES[name]
        if wanted is not None and method not in wanted:
            why = f", which does not split under class-prior shift ({SPLIT_GIW} does)"
            raise ValueError(
                f"variant {name!r} is one of {' and '.join(wanted)}, not of {asked}"
                + why * (method == UNSPLIT and asked == "giw")
            )
        changed = {name: amount} if name in ("level", "val_share") else changed
        for key, value in changed.items():
            if settings.setdefault(key, value) != value:
                raise ValueError(f"variant {variant!r} asks for two values of {key}")
    if sum(name in GIVEN for name in parts) > 1:
        raise ValueError(f"variant {variant!r} names more than one known split")
    return method, parts, settings


def make_method(
    method: str, variant: str, truths: Mapping[int, Truth], *, splits: bool = True
) -> Method:
    """A method as a job asks for it; ``splits`` is false where the paper's GIW does not split.

    ``truths``, by the random state of each trial, are for variants that are about the truth.
    """
    method, parts, settings = checked(method, variant, splits=splits)
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
    """GIW with a split that was handed to it; for ablations, where the truth is known."""

    given: tuple[tuple[int, tuple[bool, ...]], ...] = ()  # by the random state of each trial

    def split(self, evidence: Evidence) -> SupportSplit:
        """The given one."""
        inside = torch.tensor(dict(self.given)[evidence.random_state])
        return SupportSplit.given(inside.to(evidence.y_val.device))
