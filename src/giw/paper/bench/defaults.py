"""Which part of the grid a machine is asked to run when nobody says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Defaults:
    """A part of the grid, as ``plan`` takes it; None takes all there is."""

    datasets: tuple[str, ...] | None
    cases: tuple[str, ...] | None
    shifts: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    trials: int
    epochs: int


# About an hour on one H200: CIFAR-20 alone would take a day.
GPU = Defaults(("mnist", "color_mnist"), None, None, None, trials=5, epochs=100)
# Some minutes on two cores: one setting and the methods that say most.
CPU = Defaults(
    ("mnist",),
    ("iii",),
    ("support",),
    ("val_only", "pretrain_val", "pooled", "giw"),
    trials=2,
    epochs=10,
)
OPTIONS = {
    **{"datasets": "--dataset", "cases": "--case", "shifts": "--shift", "methods": "--method"},
    **{"trials": "--trials", "epochs": "--epochs"},
}


def fill_in(chosen: dict[str, Any], kind: str) -> tuple[dict[str, Any], str]:
    """What was chosen, completed by what suits the machine, and the latter in words.

    Parameters
    ----------
    chosen : dict
        Names of :class:`Defaults`; None where nothing was said, ``["all"]`` for all there is.
    kind : {"cpu", "cuda"}

    Examples
    --------
    >>> full, words = fill_in({"datasets": ["mnist"], "trials": None}, "cuda")
    >>> full["trials"], words
    (5, '--trials 5')
    """
    defaults = GPU if kind == "cuda" else CPU
    full, words = {}, []
    for name, value in chosen.items():
        default = getattr(defaults, name)
        full[name] = default if value is None else None if value == ["all"] else value
        if value is None and default is not None:
            values = default if isinstance(default, tuple) else (default,)
            words += [f"{OPTIONS[name]} {one}" for one in values]
    return full, " ".join(words)
