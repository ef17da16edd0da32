"""The paper's two examples: importance weighting has no problem in one and fails in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import nn

from giw.nets.methods import DIW, GIW, ValOnly
from giw.nets.models import MLP, initialised
from giw.nets.training import Method, TrainingConfig
from giw.paper.bench.comparison import Score, compare
from giw.paper.shift import ShiftProblem, TrialSeeds, Truth, four_squares_problem


@dataclass(frozen=True)
class FourSquaresSettings:
    """One configuration for all methods and both examples."""

    hidden: tuple[int, ...] = (64, 64)
    config: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            epochs=100, pretrain_epochs=10, batch_size=100, learning_rate=1e-2, weight_decay=1e-3
        )
    )


def four_squares_methods() -> tuple[Method, ...]:
    """The three methods of the paper's figure; GIW splits on the two coordinates."""
    return ValOnly(), DIW(), GIW(split_on="input")


def make_problem(example: int, seeds: TrialSeeds) -> tuple[ShiftProblem, Truth]:
    """200 training points on the left, 4 validation points, one in each square."""
    return four_squares_problem(example=example, random_state=seeds.draw)


def make_net(settings: FourSquaresSettings, seed: int) -> nn.Module:
    """A small perceptron on two coordinates."""
    return initialised(lambda: MLP(2, 2, hidden=settings.hidden), seed)


def run_four_squares(
    example: int,
    *,
    trials: int = 20,
    random_state: int = 0,
    methods: Sequence[Method] | None = None,
    settings: FourSquaresSettings | None = None,
) -> list[Score]:
    """Train each method on each trial of the first or the second example."""
    settings = settings or FourSquaresSettings()
    return compare(
        lambda seeds: make_problem(example, seeds),
        lambda _, seed: make_net(settings, seed),
        methods or four_squares_methods(),
        settings.config,
        trials=trials,
        random_state=random_state,
    )
