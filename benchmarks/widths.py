"""How strong should the ridge of dynamic weights be? Their error against weights that are known.

Losses of a batch of 256 and of a few validation points are drawn as training leaves them: the clean
or frequent ones small, the flipped or rare ones large, the farther apart the longer a net has
learned. True weights are known, so the squared error of estimated ones is, here over that of equal
weights: below 1 is better than none.

    python benchmarks/widths.py          # two minutes on one core
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from giw.objective import dynamic_kmm

N_TRAIN = 256
WIDTHS = ("paper", "median")
RULES = (*WIDTHS, "0.0001", "0.001", "0.003", "0.01", "0.1")  # widths, or ridges
Draw = tuple[Tensor, Tensor, Tensor]  # training losses, validation losses, true weights


def exponential(count: int, generator: torch.Generator) -> Tensor:
    """Standard exponential numbers, (count,)."""
    return -torch.log(1 - torch.rand(count, generator=generator))


def noisy_labels(rate: float, m: int, apart: float, generator: torch.Generator) -> Draw:
    """Flipped labels have large losses and should weigh nothing; validation has none of them."""
    flipped = torch.rand(N_TRAIN, generator=generator) < rate
    large = apart + 0.7 * exponential(N_TRAIN, generator)
    train = torch.where(flipped, large, _small(N_TRAIN, 0.3 / apart, generator))
    clean = 1 / (1 - flipped.float().mean())
    return train, _small(m, 0.3 / apart, generator), torch.where(flipped, 0.0, clean)


def rare_class(ratio: float, m: int, apart: float, generator: torch.Generator) -> Draw:
    """One point in 1 + ratio is of the rare class, half of the validation points are."""
    rare = torch.rand(N_TRAIN, generator=generator) < 1 / (1 + ratio)
    rare[0] = True  # without any, no weights could help
    large = apart + exponential(N_TRAIN, generator)
    train = torch.where(rare, large, _small(N_TRAIN, 0.03 / apart, generator))
    half = torch.arange(m) < m // 2
    val = torch.where(half, apart + exponential(m, generator), _small(m, 0.03 / apart, generator))
    share = rare.float().mean()
    return train, val, torch.where(rare, 0.5 / share, 0.5 / (1 - share))


def weights_by(rule: str, train: Tensor, val: Tensor) -> Tensor:
    """Weights with one of the rules."""
    if rule in WIDTHS:
        return dynamic_kmm(train, val, bandwidth=rule)
    return dynamic_kmm(train, val, ridge=float(rule))


def relative_errors(make: Callable[[torch.Generator], Draw], draws: int) -> dict[str, float]:
    """Squared error of each rule over that of equal weights, summed over draws."""
    error = dict.fromkeys(RULES, 0.0)
    equal = 0.0
    for seed in range(draws):
        train, val, truth = make(torch.Generator().manual_seed(seed))
        equal += float((1 - truth).square().mean())
        for rule in RULES:
            error[rule] += float((weights_by(rule, train, val) - truth).square().mean())
    return {rule: value / equal for rule, value in error.items()}


def _small(count: int, scale: float, generator: torch.Generator) -> Tensor:
    """Losses of points that are learned: most near zero, a few not."""
    return scale * exponential(count, generator) ** 1.5


def main() -> None:
    """Print the geometric mean over all settings of a shift, and over all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    print("| shift |", " | ".join(RULES), "|")
    print("| --- " * (1 + len(RULES)) + "|")
    shifts = {
        "label noise 0.2": (noisy_labels, 0.2),
        "label noise 0.4": (noisy_labels, 0.4),
        "class prior 10": (rare_class, 10.0),
        "class prior 100": (rare_class, 100.0),
    }
    every: list[list[float]] = []
    for name, (make, amount) in shifts.items():
        found = [
            relative_errors(partial(make, amount, m, apart), draws)
            for m in (8, 20, 100)
            for apart in (0.7, 1.5, 3.0)
        ]
        mine = [[math.log(errors[rule]) for rule in RULES] for errors in found]
        every += mine
        print(line(name, mine), flush=True)
    print(line("all", every))


def line(name: str, logarithms: list[list[float]]) -> str:
    """Geometric means of columns."""
    means = (math.exp(sum(column) / len(column)) for column in zip(*logarithms, strict=True))
    return f"| {name} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |"


if __name__ == "__main__":
    main()
