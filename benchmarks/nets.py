"""Nets on images of the paper and on images it does not have: GIW+, its stack, and their rivals.

    python benchmarks/nets.py run --data DATA                     # all cells, draws 0 to 5: hours
    python benchmarks/nets.py run --data DATA --jobs 8 --device cuda      # minutes on a large GPU
    python benchmarks/nets.py run --data DATA --quick             # four cells, one draw
    python benchmarks/nets.py run --data DATA --only 3 --draws 0  # one cell, one draw
    python benchmarks/nets.py run --data DATA --draws 100:104 --ideas --keep FOLDER
    python benchmarks/nets.py run --data DATA --only 14 --anew    # GIW+ and its stack once more
    python benchmarks/nets.py show                                # regret to the best in hindsight
    python benchmarks/nets.py figure                              # docs/images/giw_plus.png
    python benchmarks/nets.py resnet --data DATA                  # a few steps of ResNet-18
    python benchmarks/nets.py threads                             # a fit beside two busy processes

2,000 training images, LeNet-5, batches of 256, 30 epochs, everything else as ``GIWClassifier`` has
it. Validation images are drawn from the target and are not among the training images. All methods
of a draw have the same data and start from one pretrained net, so that they are compared in pairs.
Photographs: 3,000 training images of the paper's 40 classes, twenty superclasses, target all 100
classes, a net of four convolutions, batches of 128. ``run`` goes on where it was cut off. On a GPU
all draws of a cell are trained side by side.

Draws from 100 on are for development: every choice was made on them. Draws below are reported.
``--ideas`` adds what was tried and is not in the library, ``--keep`` writes probabilities, and
``--anew`` replaces the rows of GIW+ and of what is stacked with it; rivals keep theirs.
DATA holds ``mnist/`` and ``cifar100/`` (npz files and ``classes.json``); Fashion-MNIST is where
Debian's package ``dataset-fashion-mnist`` puts it.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

import giw
import nets_ideas
import support
from giw.nets.methods import method_named
from giw.nets.models import build, initialised
from giw.nets.stack import RIVALS, Trainings, weights_of
from giw.nets.training import (
    FunctionalNet,
    Method,
    Pretrained,
    Tensors,
    TrainingConfig,
    predict_in_blocks,
    pretrain_trials,
    train_trials,
)
from giw.pages.figures import new_figure, png_bytes, settled
from giw.pages.style import BLUE, INK, LINE, VERMILION
from giw.support import SupportSplit

N_TRAIN, N_TEST, EPOCHS, BATCH = 2_000, 2_000, 30, 256
PHOTOGRAPHS, PHOTOGRAPH_TESTS, PHOTOGRAPH_BATCH = 3_000, 1_500, 128
FOLDS, SHARE = 3, 0.5  # of the stack, as GIWClassifier has them
SIMPLE = ("giw", "pooled", "pooled_plus", "ccsa", "val_only", "pretrain_val", "train_only")
SHOWN = ("stack", "giw_plus", *SIMPLE, "dfr", "surgical", "gold")
QUICK = (0, 3, 7, 14)  # one of each set of images, one of each shift
DRAWN = {
    "pooled": ("Pooled", "0.65", "s"),
    "ccsa": ("CCSA", "0.35", "^"),
    "pooled_plus": ("Pooled+", BLUE, "D"),
    "giw_plus": ("GIW+", INK, "v"),
    "stack": ("GIWClassifier", VERMILION, "o"),
}
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "giw_plus.png"
UNDER = 5.0  # points below Pooled from which on a draw counts as harmed
COLUMNS = ("cell", "draw", "method", "accuracy", "log_loss", "seconds", "weight")
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A setting of ``support.py`` and the number of validation images."""

    setting: support.Setting
    n_val: int

    @property
    def name(self) -> str:
        """The cell in one word."""
        return f"{self.setting.name}-{self.n_val}"

    @property
    def photographs(self) -> bool:
        """Whether the images are those of CIFAR-100."""
        return self.setting.images == "cifar"


CELLS = (
    *(
        Cell(setting, n_val)
        for setting in support.SETTINGS
        for n_val in ((20, 100) if setting.shift == "noise" else (20,))
    ),
    *(Cell(replace(support.PHOTOGRAPHS, shift=shift), 100) for shift in ("none", "noise")),
)


# ---------------------------------------------------------------------------------------- run


def run(args: argparse.Namespace) -> None:
    """Fit all methods of each cell and draw that has no rows yet, and append them."""
    cells = [CELLS[i] for i in (QUICK if args.quick else args.only or range(len(CELLS)))]
    rows = [] if args.anew else support.read_rows(args.out)
    done = {(row["cell"], int(row["draw"])) for row in rows}
    jobs = []
    for cell in cells:
        draws = [d for d in ([0] if args.quick else args.draws) if (cell.name, d) not in done]
        # nets side by side share a step; those with batch normalisation are trained in turn
        together = args.device == "cuda" and not cell.photographs
        jobs += [(cell, some) for some in ([draws] if together else [[d] for d in draws]) if some]
    if args.device == "cpu":
        jobs.sort(key=lambda job: job[1])  # whole draws are what is there
    parallel = joblib.Parallel(n_jobs=args.jobs, return_as="generator_unordered")
    for name, rows, seconds in parallel(joblib.delayed(rows_of)(*job, args) for job in jobs):
        if isinstance(rows, str):
            print(f"{name} failed:\n{rows}", flush=True)
            continue
        append(args.out, rows)
        print(f"{name}: {seconds:.0f} s", flush=True)


def rows_of(
    cell: Cell, draws: Sequence[int], args: argparse.Namespace
) -> tuple[str, list[dict[str, object]] | str, float]:
    """Rows of a cell, or what went wrong: other cells go on."""
    torch.set_num_threads(1)
    start, name = time.perf_counter(), f"{cell.name} {draws[0]}:{draws[-1] + 1}"
    try:
        rows: list[dict[str, object]] | str = fits(cell, draws, args)
    except Exception:
        rows = traceback.format_exc()
    return name, rows, time.perf_counter() - start


def append(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Rows more, in place of those of the same cell, draw and method."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def key(row: dict[str, object]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in ("cell", "draw", "method"))

    kept = {key(row): row for row in [*support.read_rows(path), *rows]}
    whole = path.with_suffix(".new")  # a run that is cut off leaves all rows or the new ones
    with whole.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.values())
    whole.replace(path)


@dataclass
class Fits:
    """Trainings of the draws of a cell from shared pretrained nets, and what came of them."""

    data: list[Tensors]  # with test images
    modules: list[nn.Module]
    config: TrainingConfig
    draws: Sequence[int]
    starts: list[Pretrained]

    def __post_init__(self) -> None:
        self.test: dict[str, list[Vector]] = {}  # of each method and draw (t, c)
        self.left_out: dict[str, list[Vector]] = {}  # the same of validation images (m, c)
        self.seconds: dict[str, float] = {}  # of all draws together
        self.nets: dict[str, list[nn.Module]] = {}
        self.splits: dict[str, list[SupportSplit | None]] = {}

    def learnt(self) -> list[Tensors]:
        """What methods see."""
        return [data.without_test() for data in self.data]

    def train(
        self,
        name: str,
        method: Method,
        weight: Sequence[Tensor] | None = None,
        labels: Sequence[Tensor] | None = None,
        starts: list[Pretrained] | None = None,
    ) -> None:
        """Train on all points, where asked with weights or other labels of training images."""
        learnt = self.learnt()
        if weight is not None:
            learnt = [replace(d, weight=w) for d, w in zip(learnt, weight, strict=True)]
        if labels is not None:
            learnt = [replace(d, y_train=y) for d, y in zip(learnt, labels, strict=True)]
        clock = Clock(self.data[0].x_train.device)
        records = train_trials(method, self.modules, learnt, self.config, self.draws,
                               pretrained=starts or self.starts)  # fmt: skip
        self.seconds[name] = clock()
        self.nets[name] = [record.module for record in records]
        self.splits[name] = [record.split for record in records]
        pairs = zip(self.nets[name], self.data, strict=True)
        self.test[name] = [probabilities(net, data.x_test) for net, data in pairs]

    def of(self, name: str, t: int, of_folds: float = 0.5) -> Vector:
        """Probabilities of a candidate: of its net and, where there are some, of those of folds."""
        folds = self.test.get(f"{name}/folds")
        own = self.test[name][t]
        return own if folds is None else (1 - of_folds) * own + of_folds * folds[t]

    def surgical(self, name: str) -> None:
        """Surgical fine-tuning (Lee et al. 2023): the first layer alone, by validation images."""
        first = next(iter(self.starts[0].params)).rpartition(".")[0]
        starts = [
            replace(start, optimizer={}, params={
                key: p.detach().clone().requires_grad_(key.startswith(first))
                for key, p in start.params.items()
            })
            for start in self.starts
        ]  # fmt: skip
        self.train(name, method_named("pretrain_val"), starts=starts)

    def leave_out(self, name: str, method: Method, *, folds: int, share: float) -> None:
        """Predict validation images by nets trained without them, for a share of the epochs."""
        clock = Clock(self.data[0].x_train.device)
        epochs, drop = round(share * self.config.epochs), round(share * self.config.drop_every)
        cuts = [
            Trainings(module, data, self.config, draw).cuts(folds)
            for module, data, draw in zip(self.modules, self.data, self.draws, strict=True)
        ]
        parts = [
            replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest])
            for data, cut in zip(self.learnt(), cuts, strict=True)
            for _, rest in cut
        ]

        def repeated(values: Sequence) -> list:
            return [value for value in values for _ in range(folds)]

        records = train_trials(
            method, repeated(self.modules), parts,
            replace(self.config, epochs=epochs, decay_every=drop), repeated(self.draws),
            pretrained=repeated(self.starts),
        )  # fmt: skip
        self.seconds[f"{name} left out"] = clock()
        self.left_out[name], self.test[f"{name}/folds"] = [], []
        for t, (data, cut) in enumerate(zip(self.data, cuts, strict=True)):
            mine = records[t * folds : (t + 1) * folds]
            found = np.zeros((len(data.y_val), self.test["train_only"][0].shape[1]))
            for (out, _), record in zip(cut, mine, strict=True):
                found[out.cpu().numpy()] = probabilities(record.module, data.x_val[out])
            self.left_out[name].append(found)
            all_folds = [probabilities(record.module, data.x_test) for record in mine]
            self.test[f"{name}/folds"].append(np.mean(all_folds, axis=0))

    def last_layer(self, name: str, strength: float = 0.1) -> None:
        """DFR (Kirichenko, Izmailov and Wilson 2023): a last layer anew, by validation images.

        By logistic regression on unit-norm features of the net trained on training images alone.
        """
        self.test[name] = []
        for net, data in zip(self.nets["train_only"], self.data, strict=True):
            form = FunctionalNet(net)
            z, z_test = (
                predict_in_blocks(form, form.params(), x, hidden=True).cpu().numpy()
                for x in (data.x_val, data.x_test)
            )
            y = data.y_val.cpu().numpy()
            found = np.full((len(z_test), self.test["train_only"][0].shape[1]), 1e-6)
            if len(set(y)) > 1:
                fit = LogisticRegression(C=1 / strength, max_iter=500).fit(z, y)
                found[:, fit.classes_] = fit.predict_proba(z_test)
            self.test[name].append(found)
        self.seconds[name] = self.seconds["train_only"]


def fits(cell: Cell, draws: Sequence[int], args: argparse.Namespace) -> list[dict[str, object]]:
    """Accuracy of every method on some draws, and the time of its whole fit."""
    data = [tensors(cell, draw, args) for draw in draws]
    n_classes = 20 if cell.photographs else 10 if cell.setting.colored else 2
    modules = [net_of(cell, data[0], n_classes, draw).to(args.device) for draw in draws]
    config = TrainingConfig(
        epochs=EPOCHS, batch_size=PHOTOGRAPH_BATCH if cell.photographs else BATCH,
        learning_rate=1e-3, weight_decay=1e-4, decay_every=EPOCHS // 2,
    )  # fmt: skip
    clock = Clock(data[0].x_train.device)
    learnt = [d.without_test() for d in data]
    found = Fits(data, modules, config, draws, pretrain_trials(modules, learnt, config, draws))
    before = clock()
    begun = [FunctionalNet(module).with_params(start.params, start.buffers)
             for module, start in zip(modules, found.starts, strict=True)]  # fmt: skip
    found.test["pretrained"] = [
        probabilities(net, d.x_test) for net, d in zip(begun, data, strict=True)
    ]
    for name in ("giw_plus", *(RIVALS if args.anew else SIMPLE)):
        found.train(name, method_named(name))
    if not args.anew:
        found.last_layer("dfr")
        found.surgical("surgical")
        found.train("gold", nets_ideas.GoldLoss())
    for name in ("giw_plus", *RIVALS[:2]):
        found.leave_out(name, method_named(name), folds=FOLDS, share=SHARE)
    found.left_out["train_only"] = [
        probabilities(net, d.x_val) for net, d in zip(found.nets["train_only"], data, strict=True)
    ]
    if args.ideas:
        nets_ideas.tried(found)
    weights = stack(found)
    if args.ideas:
        stacks_tried(found)
    after = {name: found.seconds[name] + before for name in found.seconds if "left" not in name}
    if "val_only" in after:
        after["val_only"] -= before
    judged = [found.seconds[f"{name} left out"] for name in ("giw_plus", *RIVALS[:2])]
    rows: list[dict[str, object]] = []
    for t, draw in enumerate(draws):
        y = data[t].y_test.cpu().numpy()
        used = {name for name, a in weights[t].items() if a > 0} | {"train_only"}
        after["stack"] = before + sum(judged) + sum(found.seconds[name] for name in used)
        for name, probability in found.test.items():
            p = probability[t]
            rows.append({
                "cell": cell.name, "draw": draw, "method": name,
                "accuracy": f"{(p.argmax(1) == y).mean():.4f}",
                "log_loss": f"{-np.log(p[np.arange(len(y)), y] + 1e-12).mean():.3f}",
                # a time is worth something beside that of GIW in the same run
                "seconds": "0.0" if args.anew else f"{after.get(name, 0.0) / len(draws):.1f}",
                "weight": f"{weights[t].get(name, 0.0):.2f}",
            })  # fmt: skip
        if args.keep:
            keep(args.keep / f"{cell.name}-{draw}.npz", found, t)
    return rows


def stack(found: Fits) -> list[dict[str, float]]:
    """Weights of the stack of each draw, as in :func:`giw.nets.stack.fit_stack`; its prediction."""
    weights, found.test["stack"] = [], []
    for t, data in enumerate(found.data):
        y = data.y_val.cpu().numpy()
        loss = {
            name: -np.log(found.left_out[name][t][np.arange(len(y)), y] + 1e-12)
            for name in ("giw_plus", *RIVALS)
        }
        weight = weights_of(loss)
        weights.append(weight)
        found.test["stack"].append(sum(a * found.of(name, t) for name, a in weight.items()))
    return weights


def stacks_tried(found: Fits) -> None:
    """Other priors, and other shares of nets of folds."""
    names = ("giw_plus", *RIVALS)
    tried: dict[str, tuple[dict[str, float], float]] = {
        "stack lead 8": ({"lead": 8.0}, 0.5),
        "stack lead 1": ({"lead": 1.0}, 0.5),
        "stack 1 point each": ({"each": 1.0}, 0.5),
        "stack 2 points each": ({"each": 2.0}, 0.5),
        "stack without folds": ({}, 0.0),
        "stack mostly folds": ({}, 0.75),
    }
    for title, (settings, of_folds) in tried.items():
        found.test[title] = []
        for t, data in enumerate(found.data):
            y = data.y_val.cpu().numpy()
            loss = {
                name: -np.log(found.left_out[name][t][np.arange(len(y)), y] + 1e-12)
                for name in names
            }
            weight = weights_of(loss, **settings)
            found.test[title].append(sum(a * found.of(name, t, of_folds)
                                         for name, a in weight.items()))  # fmt: skip


def keep(path: Path, found: Fits, draw: int) -> None:
    """Probabilities of one draw, in half precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = found.data[draw]
    kept = {f"test {name}": p[draw].astype(np.float16) for name, p in found.test.items()}
    kept |= {f"left {name}": p[draw].astype(np.float32) for name, p in found.left_out.items()}
    labels = {"y_test": data.y_test.cpu().numpy(), "y_val": data.y_val.cpu().numpy()}
    np.savez_compressed(path, **kept, **labels)


def net_of(cell: Cell, data: Tensors, n_classes: int, draw: int) -> nn.Module:
    """LeNet-5, or the small convolutional net of ``support.py`` for photographs."""
    if cell.photographs:
        return initialised(lambda: support.SmallNet(n_classes, white=1.0), draw)
    return build("lenet5", data.x_train.shape, n_classes, random_state=draw)


def tensors(cell: Cell, draw: int, args: argparse.Namespace) -> Tensors:
    """Training, validation and test images, disjoint."""
    if cell.photographs:
        parts = photographs(cell, draw, args.data / "cifar100")
    else:
        x, group = support.read_images(cell.setting.images, args.data, args.fashion)
        dealt = support.deal(cell.setting, x, group, draw)
        first = support.N_TRAIN
        places = (slice(N_TRAIN), slice(first, first + cell.n_val), slice(-N_TEST, None))
        parts = [values[place] for place in places for values in (dealt.x, dealt.y)]
    return Tensors(*(torch.from_numpy(part).to(args.device) for part in parts))


def photographs(cell: Cell, draw: int, folder: Path) -> list[NDArray]:
    """The CIFAR subset by superclass: training has two of five classes of each, the target all.

    Labels of its training images were recovered, see the README of the data.
    """
    files = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    if not files:
        raise FileNotFoundError(f"{folder} has no npz files")
    x, fine, coarse = (np.concatenate([f[k] for f in files]) for k in ("images", "fine", "coarse"))
    named = json.loads((folder / "classes.json").read_text())
    known = [named["fine_names"].index(name) for name in named["paper_training_classes"]]
    rng = np.random.default_rng([draw, 22])
    order = rng.permutation(len(x))
    each = (cell.n_val + PHOTOGRAPH_TESTS) // 100  # of every class
    target = np.concatenate([order[fine[order] == c][:each] for c in range(100)])
    target = rng.permutation(target)
    train = order[np.isin(fine[order], known) & ~np.isin(order, target)][:PHOTOGRAPHS]
    y = coarse[train].astype(np.int64)
    if cell.setting.shift == "noise":
        flipped = np.flatnonzero(rng.random(len(y)) < support.NOISE)
        y[flipped] = (y[flipped] + rng.integers(1, 20, len(flipped))) % 20
    val, test = target[: cell.n_val], target[cell.n_val :]
    images = [np.ascontiguousarray(x[rows].transpose(0, 3, 1, 2)) for rows in (train, val, test)]
    labels = [y, coarse[val].astype(np.int64), coarse[test].astype(np.int64)]
    return [part for pair in zip(images, labels, strict=True) for part in pair]


def probabilities(module: nn.Module, x: Tensor) -> Vector:
    """Of every class for every image."""
    net = FunctionalNet(module)
    return predict_in_blocks(net, net.params(), x).double().softmax(1).cpu().numpy()


class Clock:
    """Seconds since it was made: of the processor, or of the wall where a GPU works."""

    def __init__(self, device: torch.device) -> None:
        self.now: Callable[[], float] = time.perf_counter
        if device.type == "cpu":
            self.now = time.process_time
        self.start = self.now()

    def __call__(self) -> float:
        """The seconds."""
        return self.now() - self.start


# --------------------------------------------------------------------------------------- show


def show(args: argparse.Namespace) -> None:
    """Accuracy cell by cell, and regret to the best of the simple methods in hindsight."""
    draws = set(args.draws)
    rows = [row for row in support.read_rows(args.out) if int(row["draw"]) in draws]
    methods = list(dict.fromkeys([*SHOWN, *(r["method"] for r in rows)] if args.ideas else SHOWN))
    cells = {cell.name: table(rows, cell.name, methods) for cell in CELLS}
    cells = {name: found for name, found in cells.items() if len(found["stack"])}
    if not cells:
        return print("no rows of these draws")
    print("| cell | draws | " + " | ".join(methods) + " |")
    print("| --- " * (len(methods) + 2) + "|")
    for name, found in cells.items():
        means = " | ".join(f"{np.mean(found[m]):.1f}" for m in methods)
        print(f"| {name} | {len(found['stack'])} | {means} |")
    print("\n| method | mean regret | worst cell | worst draw | draws > 5 under Pooled | "
          "over Pooled+ | over CCSA | × GIW's time |")  # fmt: skip
    print("| --- " * 8 + "|")
    for method in methods:
        print(f"| {method} | " + " | ".join(summary(method, list(cells.values()), rows)) + " |")
    return None


def table(
    rows: Iterable[dict[str, str]], cell: str, methods: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Accuracies in percent of each method, draw by draw."""
    mine = sorted((r for r in rows if r["cell"] == cell), key=lambda r: int(r["draw"]))
    return {
        m: 100 * np.array([float(r["accuracy"]) for r in mine if r["method"] == m]) for m in methods
    }


def summary(
    method: str, cells: list[dict[str, NDArray[np.float64]]], rows: list[dict[str, str]]
) -> Iterator[str]:
    """Regret of means over draws to the best simple method of the cell, and the rest."""
    cells = [found for found in cells if len(found[method])]
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
    times = {(r["cell"], r["draw"], r["method"]): float(r["seconds"]) for r in rows}
    ratio = [s / times[c, d, "giw"] for (c, d, m), s in times.items() if m == method and s > 0]
    yield f"{np.median(ratio):.1f}" if ratio else "–"


def figure(args: argparse.Namespace) -> None:
    """Accuracy over the best simple method in hindsight, cell by cell: one picture."""
    rows = [r for r in support.read_rows(args.out) if int(r["draw"]) in set(args.draws)]
    cells = {cell.name: table(rows, cell.name, SHOWN) for cell in CELLS}
    cells = {name: found for name, found in cells.items() if len(found["stack"])}
    best = {name: max(found[m].mean() for m in SIMPLE) for name, found in cells.items()}
    drawn, axes = new_figure(height=1.2 + 0.27 * len(cells))
    height = np.arange(len(cells))[::-1]
    axes.axvline(0.0, color=INK, linewidth=1.0)
    for method, (title, color, marker) in DRAWN.items():
        gap = [found[method].mean() - best[name] for name, found in cells.items()]
        axes.scatter(gap, height, s=44, color=color, marker=marker, linewidth=0, label=title)
    axes.set_yticks(height, list(cells), fontsize=9)
    axes.grid(axis="x", color=LINE, linewidth=0.7)
    axes.set_xlabel("points over the best simple method")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.3, 1.0), ncols=len(DRAWN), frameon=False,
                handletextpad=0.1, columnspacing=1.0)  # fmt: skip
    IMAGE.write_bytes(png_bytes(settled(drawn), dpi=130))


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


def resnet(args: argparse.Namespace) -> None:
    """A few steps of ResNet-18 on photographs by the same code."""
    cell = next(cell for cell in CELLS if cell.photographs)
    data = tensors(cell, 0, args).without_test()
    some = replace(data, x_train=data.x_train[:256], y_train=data.y_train[:256])
    config = TrainingConfig(epochs=1, pretrain_epochs=1, batch_size=64)
    module = build("resnet18", some.x_train.shape, 20, random_state=0).to(args.device)
    for name in ("giw", "giw_plus", "pooled_plus"):
        (record,) = train_trials(method_named(name), [module], [some], config, [0])
        print(f"{name}: loss {record.history['loss'][-1]:.2f}, {record.seconds:.1f} s, 8 steps")


def spin() -> None:
    """Use up a core."""
    while True:
        sum(i * i for i in range(10_000))


COMMANDS = {"run": run, "show": show, "figure": figure, "threads": threads,
            "resnet": resnet}  # fmt: skip


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
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--ideas", action="store_true", help="also what is not in the library")
    parser.add_argument("--anew", action="store_true", help="replace rows of GIW+ and its stack")
    parser.add_argument("--keep", type=Path, help="folder for probabilities")
    args = parser.parse_args()
    COMMANDS[args.what](args)


if __name__ == "__main__":
    main()
