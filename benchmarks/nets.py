"""Nets on images of the paper and on images it does not have: GIW+, its stack, and their rivals.

    python benchmarks/nets.py run --data DATA              # all settings, six draws: hours
    python benchmarks/nets.py run --data DATA --quick      # four settings, one draw: 20 minutes
    python benchmarks/nets.py run --data DATA --only 3 --draws 0     # one setting, one draw
    python benchmarks/nets.py show                         # regret to the best in hindsight
    python benchmarks/nets.py show --draws 100:110         # the same of development draws
    python benchmarks/nets.py threads                      # a fit beside two busy processes

2,000 training images, LeNet-5, batches of 256, 30 epochs, everything else as ``GIWClassifier`` has
it. Validation images are drawn from the target and are not among the training images. All methods
of a draw have the same data and start from one pretrained net, so that they are compared in pairs.
``run`` goes on where it was cut off; draws are outermost, so that whole draws are what is there.

Draws from 100 on are for development: every choice was made on them. Draws below are reported.
DATA holds ``mnist/``; Fashion-MNIST is where Debian's package ``dataset-fashion-mnist`` puts it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import giw
import support
from giw.nets.methods import method_named
from giw.nets.models import build
from giw.nets.stack import RIVALS, Trainings, losses_under, val_folds, weights_of
from giw.nets.training import (
    FunctionalNet,
    Pretrained,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    predict_in_blocks,
    pretrain,
)

N_TRAIN, N_TEST, EPOCHS, BATCH = 2_000, 2_000, 30, 256
SIMPLE = ("giw", "pooled", "pooled_plus", "ccsa", "val_only", "pretrain_val", "train_only")
SHOWN = ("stack", "giw_plus", *SIMPLE)
QUICK = (0, 3, 7, 14)  # one of each set of images, one of each shift
UNDER = 5.0  # points below Pooled from which on a draw counts as harmed


@dataclass(frozen=True)
class Cell:
    """A setting of ``support.py`` and the number of validation images."""

    setting: support.Setting
    n_val: int

    @property
    def name(self) -> str:
        """The cell in one word."""
        return f"{self.setting.name}-{self.n_val}"


CELLS = tuple(
    Cell(setting, n_val)
    for setting in support.SETTINGS
    for n_val in ((20, 100) if setting.shift == "noise" else (20,))
)


def run(args: argparse.Namespace) -> None:
    """Fit all methods of each cell and draw that has no rows yet, and append them."""
    torch.set_num_threads(1)
    cells = [CELLS[i] for i in (QUICK if args.quick else args.only or range(len(CELLS)))]
    done = {(row["cell"], int(row["draw"])) for row in support.read_rows(args.out)}
    for draw in [0] if args.quick else args.draws:
        for cell in cells:
            if (cell.name, draw) in done:
                continue
            start = time.perf_counter()
            rows = [{"cell": cell.name, "draw": draw} | row for row in fits(cell, draw, args)]
            for row in rows:  # together, so that a draw is there as a whole
                support.append(args.out, row)
            print(f"{cell.name} {draw}: {time.perf_counter() - start:.0f} s", flush=True)


def fits(cell: Cell, draw: int, args: argparse.Namespace) -> list[dict[str, object]]:
    """Accuracy of every method on one draw, and the processor time of its whole fit."""
    data = tensors(cell, draw, args)
    classes = int(data.y_train.max()) + 1
    net = build("lenet5", data.x_train.shape, classes, random_state=draw)
    config = TrainingConfig(
        epochs=EPOCHS, batch_size=BATCH, learning_rate=1e-3, weight_decay=1e-4,
        decay_every=EPOCHS // 2,
    )  # fmt: skip
    learnt = Tensors(data.x_train, data.y_train, data.x_val, data.y_val)
    trainings, clock = Trainings(net, learnt, config, draw), Clock()
    start = clock(lambda: pretrain(net, learnt, config, random_state=draw))
    before, records, seconds = clock.last, {}, {}
    for name in ("giw_plus", *SIMPLE):
        records[name] = clock(lambda name=name: trainings.alone(method_named(name), start))
        seconds[name] = clock.last + (before if method_named(name).pretrains else 0.0)
    probability = {name: probabilities(r, data.x_test) for name, r in records.items()}
    weight, left_out = stacked(trainings, start, records["train_only"], clock)
    probability["stack"] = sum(a * probability[name] for name, a in weight.items())
    kept = {name for name, a in weight.items() if a > 0} | {"train_only"}
    seconds["stack"] = before + left_out + sum(seconds[name] - before for name in kept)
    y = data.y_test.numpy()
    return [
        {"method": name, "accuracy": f"{(p.argmax(1) == y).mean():.4f}",
         "log_loss": f"{-np.log(p[np.arange(len(y)), y] + 1e-12).mean():.4f}",
         "seconds": f"{seconds[name]:.2f}", "weight": f"{weight.get(name, 0.0):.3f}"}
        for name, p in probability.items()
    ]  # fmt: skip


def stacked(
    trainings: Trainings, start: Pretrained, train_only: TrainingRecord, clock: Clock
) -> tuple[dict[str, float], float]:
    """Weights of the stack, and the processor time of the nets that leave points out.

    As :func:`giw.nets.stack.fit_stack` finds them; nets trained on all points are shared with the
    methods of the draw.
    """
    data, loss, seconds = trainings.data, {}, 0.0
    fold = val_folds(data.y_val, 3, trainings.random_state)
    shorter = trainings.shorter(0.5)
    for name in ("giw_plus", *RIVALS[:2]):
        loss[name] = clock(lambda name=name: shorter.without_folds(method_named(name), start, fold))
        seconds += clock.last
    everyone = torch.ones_like(data.y_val, dtype=torch.bool)
    loss["train_only"] = losses_under([train_only.module], data, [everyone])
    return weights_of(loss), seconds


def tensors(cell: Cell, draw: int, args: argparse.Namespace) -> Tensors:
    """The first images of a deal of ``support.py``: training, validation, test."""
    x, group = support.read_images(cell.setting.images, args.data, args.fashion)
    dealt = support.deal(cell.setting, x, group, draw)
    first = support.N_TRAIN
    places = (slice(N_TRAIN), slice(first, first + cell.n_val), slice(-N_TEST, None))
    parts = [torch.from_numpy(values[place]) for place in places for values in (dealt.x, dealt.y)]
    return Tensors(*parts)


def probabilities(record: TrainingRecord, x: torch.Tensor) -> NDArray[np.float64]:
    """Of every class for every test image."""
    net = FunctionalNet(record.module)
    return predict_in_blocks(net, net.params(), x).double().softmax(1).numpy()


class Clock:
    """Call something and keep the processor time that it took."""

    last = 0.0

    def __call__(self, work):
        """What the work gives."""
        start = time.process_time()
        found = work()
        self.last = time.process_time() - start
        return found


# --------------------------------------------------------------------------------------- show


def show(args: argparse.Namespace) -> None:
    """Accuracy cell by cell, and regret to the best of the simple methods in hindsight."""
    draws = set(args.draws)
    rows = [row for row in support.read_rows(args.out) if int(row["draw"]) in draws]
    cells = {cell.name: table(rows, cell.name) for cell in CELLS}
    cells = {name: found for name, found in cells.items() if len(found["stack"])}
    if not cells:
        return print("no rows of these draws")
    print("| cell | draws | " + " | ".join(SHOWN) + " |")
    print("| --- " * (len(SHOWN) + 2) + "|")
    for name, found in cells.items():
        means = " | ".join(f"{np.mean(found[m]):.1f}" for m in SHOWN)
        print(f"| {name} | {len(found['stack'])} | {means} |")
    print("\n| method | mean regret | worst cell | worst draw | draws > 5 under Pooled | "
          "over Pooled+ | over CCSA | × GIW's time |")  # fmt: skip
    print("| --- " * 8 + "|")
    for method in SHOWN:
        print(f"| {method} | " + " | ".join(summary(method, list(cells.values()), rows)) + " |")
    return None


def table(rows: Iterable[dict[str, str]], cell: str) -> dict[str, NDArray[np.float64]]:
    """Accuracies in percent of each method, draw by draw."""
    mine = sorted((r for r in rows if r["cell"] == cell), key=lambda r: int(r["draw"]))
    return {
        m: 100 * np.array([float(r["accuracy"]) for r in mine if r["method"] == m]) for m in SHOWN
    }


def summary(
    method: str, cells: list[dict[str, NDArray[np.float64]]], rows: list[dict[str, str]]
) -> Iterator[str]:
    """Regret of means over draws to the best simple method of the cell, and the rest."""
    gap = [found[method].mean() - max(found[m].mean() for m in SIMPLE) for found in cells]
    drawn = np.concatenate(
        [found[method] - np.max([found[m] for m in SIMPLE], axis=0) for found in cells]
    )
    below = np.concatenate([found["pooled"] - found[method] for found in cells]) > UNDER
    yield f"{np.mean(gap):+.2f}"
    yield f"{min(gap):+.1f}"
    yield f"{drawn.min():+.1f}"
    yield f"{int(below.sum())} of {len(below)}"
    for rival in ("pooled_plus", "ccsa"):
        over = np.mean([found[method].mean() - found[rival].mean() for found in cells])
        yield f"{over:+.2f}"
    time_of = {m: np.array([float(r["seconds"]) for r in rows if r["method"] == m])
               for m in (method, "giw")}  # fmt: skip
    yield f"{np.median(time_of[method] / time_of['giw']):.1f}"


# ------------------------------------------------------------------------------------ threads


def threads(args: argparse.Namespace) -> None:
    """Wall time of a fit on one thread and with the threads torch has, beside two busy processes.

    The thread settings of the caller are compared before and after.
    """
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (1_000, 1, 28, 28), dtype=np.uint8), np.arange(1_000) % 2
    busy = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2)]
    for process in busy:
        process.start()
    most, seconds = max(2, torch.get_num_threads()), {}
    for count in (1, most):
        torch.set_num_threads(count)
        start = time.perf_counter()
        net = giw.GIWClassifier(max_epochs=5, pretrain_epochs=2, batch_size=BATCH, random_state=0)
        net.fit(x, y, X_val=x[:20], y_val=y[:20])
        seconds[count] = time.perf_counter() - start
        print(f"{count} threads: {seconds[count]:.1f} s, afterwards {torch.get_num_threads()}")
    print(f"ratio {seconds[most] / seconds[1]:.2f}")
    for process in busy:
        process.terminate()


def spin() -> None:
    """Use up a core."""
    while True:
        sum(i * i for i in range(10_000))


COMMANDS = {"run": run, "show": show, "threads": threads}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=tuple(COMMANDS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fashion", type=Path, default=support.FASHION)
    parser.add_argument("--out", type=Path, default=Path("results/nets.csv"))
    parser.add_argument("--draws", type=support.numbers, default=support.numbers("0:6"))
    parser.add_argument("--only", type=support.numbers, default=[], help="numbers of cells")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    COMMANDS[args.what](args)


if __name__ == "__main__":
    main()
