"""The demo: real handwritten digits, half of which training never sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn

from giw.nets.methods import DIW, GIW, GIWPlus, Pooled, PretrainVal, ValOnly
from giw.nets.models import model_for
from giw.nets.training import Method, OnEpoch, TrainingConfig
from giw.paper.bench.comparison import Score, compare
from giw.paper.readers import digits
from giw.paper.shift import ShiftProblem, TrialSeeds, Truth, support_shift


@dataclass(frozen=True)
class DemoSettings:
    """Odd against even; training knows the digits 0 to 3, the world has all ten."""

    train_digits: tuple[int, ...] = (0, 1, 2, 3)
    test_digits: tuple[int, ...] = tuple(range(10))
    n_val: int = 20  # two of each digit, as in the paper's MNIST experiment
    test_share: float = 0.4
    config: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            epochs=60, pretrain_epochs=10, batch_size=64, learning_rate=1e-3, weight_decay=5e-3
        )
    )


def demo_methods() -> tuple[Method, ...]:
    """The six methods of the demo, those that split doing so on pixels."""
    own = GIWPlus(split_on="input"), GIW(split_on="input")
    return *own, DIW(), Pooled(), PretrainVal(), ValOnly()


def run_demo(
    *,
    trials: int = 5,
    random_state: int = 0,
    settings: DemoSettings | None = None,
    on_epoch: Callable[[int, str], OnEpoch] | None = None,
) -> list[Score]:
    """Compare the six methods on the embedded digits, with a new validation draw each trial."""
    settings = settings or DemoSettings()
    sample = digits()

    def make_problem(seeds: TrialSeeds) -> tuple[ShiftProblem, Truth]:
        return support_shift(
            sample,
            train_groups=settings.train_digits,
            test_groups=settings.test_digits,
            n_val=settings.n_val,
            test_share=settings.test_share,
            random_state=seeds.draw,
        )

    def make_net(problem: ShiftProblem, seed: int) -> nn.Module:
        return model_for(problem.train.x.shape, problem.n_classes, random_state=seed)

    return compare(
        make_problem, make_net, demo_methods(), settings.config,
        trials=trials, random_state=random_state, on_epoch=on_epoch,
    )  # fmt: skip
