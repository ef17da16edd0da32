"""How good is the support split on honest validation data? Beside the published recipe and peers.

Every trial deals the data anew: a validation pool, calibration rows that the net never saw, and
training rows, on which a net is pretrained for ten epochs as in the paper. Validation samples are
then drawn i.i.d. from the pool. Nothing here looks at the pool before it is split.

    GIW_DATA=... python benchmarks/support.py mnist color          # half an hour on two cores
    GIW_DATA=... python benchmarks/support.py peers --trials 1     # one-class SVMs are slow
    GIW_DATA=... python benchmarks/support.py cifar20              # needs a GPU to pretrain
    GIW_DATA=... python benchmarks/support.py peers --on cifar20 --layers raw,pool --jobs 4
    GIW_DATA=... python benchmarks/support.py choice --on color
    python benchmarks/support.py overlap speed large

Features are kept in ``--cache`` between runs. Tables are printed, and appended to ``--out`` as csv.
``--keep`` writes a smaller copy of the features; given as ``--cache`` it brings the trial, with the
layer that is split, to a machine without a GPU.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import giw
from giw.nets.images import resize_images, unit_pixels
from giw.nets.models.lenet import LeNet5
from giw.nets.models.resnet import ResNet18
from giw.paper.readers.cifar100 import cifar20
from giw.paper.readers.cifar100_classes import PAPER_TRAINING_CLASSES
from giw.paper.readers.mnist import RED, colored, mnist
from giw.support import KNN, OSVM, SupportSplitter, choose_representation, which_case
from giw.support.halves import tilt_spread
from giw.support.mixture import Assumptions, split_with_doubt
from giw.support.scorers import Scorer

DIGITS = tuple(range(10))
MNIST_CASES = {
    "(i) 0-3": DIGITS[:4],
    "(ii) 2": (2,),
    "(iii) 0-9": DIGITS,
    "(iv) 2-9": DIGITS[2:],
}
TRUE_CASE = {"(i) 0-3": "i", "(ii) 2": "ii", "(iii) 0-9": "iii", "(iv) 2-9": "iv"}
SIZES = (20, 200, 2_000)  # of validation samples
VERDICT_SIZES = (20, 60, 200, 1_000)
ONE_GROUP = ("auroc (i) ", "auroc (ii) ")  # cases with nothing outside
KEPT_BYTES = 14_500_000  # of one file of features that is kept


@dataclass(frozen=True)
class Setting:
    """One way to deal training data, pretrain and validate."""

    name: str
    net: Callable[[], torch.nn.Module]
    cases: dict[str, tuple[int, ...]]  # groups of the test distribution
    train_groups: tuple[int, ...]
    layers: tuple[str, ...]  # that are kept, the least processed first
    layer: str  # that is split
    weight_decay: float
    noise: float = 0.0
    prior_ratio: float = 1.0  # even over odd digits in training
    epochs: int = 10


MNIST = Setting(
    name="mnist",
    net=lambda: LeNet5(2),
    cases=MNIST_CASES,
    train_groups=DIGITS[:4],
    layers=("raw", "conv1", "conv2", "fc1", "fc2"),  # all that GIW chooses among
    layer="conv2",
    weight_decay=0.005,
)
COLOR = Setting(
    name="color",
    net=lambda: LeNet5(10, channels=3),
    cases={"(iii) red-blue": (0, 1, 2), "(i) red": (RED,)},
    train_groups=(RED,),
    layers=("raw", "conv1", "conv2", "fc1", "fc2"),  # all that GIW chooses among
    layer="conv2",
    weight_decay=0.002,
)
CIFAR = Setting(
    name="cifar20",
    net=lambda: ResNet18(20),
    cases={"(iii) 100": tuple(range(100)), "(i) 40": PAPER_TRAINING_CLASSES},
    train_groups=PAPER_TRAINING_CLASSES,
    layers=("raw", "stage1", "stage2", "stage3", "pool"),
    layer="pool",
    weight_decay=1e-4,
)
SETTINGS = {
    "mnist": MNIST,
    "noise": replace(MNIST, name="noise", noise=0.2),
    "prior": replace(MNIST, name="prior", prior_ratio=10.0),
    "color": COLOR,
    "cifar20": CIFAR,
}


@dataclass(frozen=True)
class Trial:
    """Features of one deal: training rows, calibration rows and the validation pool."""

    setting: Setting
    seed: int
    train: dict[str, torch.Tensor]  # layer → (n, d)
    calibration: dict[str, torch.Tensor]
    pool: dict[str, torch.Tensor]
    y_train: np.ndarray
    y_calibration: np.ndarray
    pool_group: np.ndarray
    pool_inside: np.ndarray


# ---------------------------------------------------------------------------- dealing, pretraining


def deal(setting: Setting, seed: int, data_dir: str | None) -> dict[str, Any]:
    """Images, labels and groups of training rows, calibration rows and the pool."""
    rng = np.random.default_rng([seed, 4])
    if setting.name == "cifar20":
        return _deal_cifar(rng, data_dir)
    color = setting.name == "color"
    sample = mnist("train", task="digit" if color else "odd_even", data_dir=data_dir)
    order = rng.permutation(len(sample))
    pool, rest = sample.take(order[:12_000]), sample.take(order[12_000:])
    if color:
        pool = colored(pool, rng.integers(0, 3, len(pool)))
        rest = colored(rest, RED)
    else:
        rest = rest.take(np.isin(rest.group, setting.train_groups))
    y = rest.y.copy()
    keep = (y == 0) | (rng.random(len(y)) < 1 / setting.prior_ratio)
    flip = rng.random(len(y)) < setting.noise
    y[flip] = 1 - y[flip]
    rest, y = rest.take(keep), y[keep]
    return {
        "calibration": (rest.x[:3_000], y[:3_000]),
        "train": (rest.x[3_000:], y[3_000:]),
        "pool": (pool.x, pool.group),
    }


def _deal_cifar(rng: np.random.Generator, data_dir: str | None) -> dict[str, Any]:
    """A hundred images of every class for the pool, all recovered in the same way; see the docs."""
    sample = cifar20("train", data_dir=data_dir)
    order = rng.permutation(len(sample))
    pool = np.concatenate([order[sample.group[order] == g][:100] for g in range(100)])
    pool = rng.permutation(pool)
    rest = order[~np.isin(order, pool) & np.isin(sample.group[order], PAPER_TRAINING_CLASSES)]
    calibration, train = rest[:2_000], rest[2_000:]
    return {
        "calibration": (sample.x[calibration], sample.y[calibration]),
        "train": (sample.x[train], sample.y[train]),
        "pool": (sample.x[pool], sample.group[pool]),
    }


def pretrain(setting: Setting, x: np.ndarray, y: np.ndarray, seed: int) -> torch.nn.Module:
    """Ten epochs of Adam on plain cross-entropy."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = setting.net().to(device)
    optimizer = torch.optim.Adam(net.parameters(), 5e-4, weight_decay=setting.weight_decay)
    images = resize_images(unit_pixels(torch.from_numpy(x)), 32).to(device)
    labels = torch.from_numpy(y).to(device)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(setting.epochs):
        for rows in torch.randperm(len(images), generator=generator).split(256):
            rows = rows.to(device)
            loss = torch.nn.functional.cross_entropy(net(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net.eval()


@torch.no_grad()
def features(net: torch.nn.Module, x: np.ndarray, layers: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The named layers, and the pixels themselves as ``raw``; half precision on disk."""
    device = next(net.parameters()).device
    found: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
    for part in np.array_split(x, max(1, len(x) // 1_000)):
        hidden = net.layers(resize_images(unit_pixels(torch.from_numpy(part)), 32).to(device))
        for layer in layers:
            value = hidden[layer].cpu().numpy() if layer != "raw" else part.reshape(len(part), -1)
            found[layer].append(value.astype(np.float16))
    return {layer: np.concatenate(parts) for layer, parts in found.items()}


def trial(
    setting: Setting, seed: int, cache: Path, data_dir: str | None, rows: int | None, pool: int
) -> Trial:
    """Deal, pretrain and extract, or read all that from the cache."""
    stem = f"{setting.name}-{seed}-{rows or 'all'}-{pool}"
    paths = [cache / f"{stem}{part}.npz" for part in ("", "-train", "-rest")]
    if not any(path.exists() for path in paths):
        parts = deal(setting, seed, data_dir)
        parts["train"] = tuple(part[:rows] for part in parts["train"])
        parts["pool"] = tuple(part[:pool] for part in parts["pool"])
        net = pretrain(setting, *parts["train"], seed)
        arrays = {}
        for name, (x, y) in parts.items():
            arrays[f"{name}.y"] = y
            for layer, z in features(net, x, setting.layers).items():
                arrays[f"{name}.{layer}"] = z
        np.savez(paths[0], **arrays)
    arrays = {}
    for path in paths:
        if path.exists():
            with np.load(path) as file:
                arrays.update(file)
    parts = {
        name: {
            layer: torch.from_numpy(arrays[f"{name}.{layer}"].astype(np.float32))
            for layer in setting.layers
            if f"{name}.{layer}" in arrays
        }
        for name in ("train", "calibration", "pool")
    }
    y = {name: arrays[f"{name}.y"] for name in parts}
    inside = np.isin(y["pool"], setting.train_groups)
    return Trial(
        setting, seed, **parts, y_train=y["train"], y_calibration=y["calibration"],
        pool_group=y["pool"], pool_inside=inside,
    )  # fmt: skip


def keep(t: Trial, stem: str, folder: Path) -> None:
    """Write the layer that is split and, for calibration rows, all others but the pixels."""
    layer = t.setting.layer
    arrays = {f"{name}.{layer}": getattr(t, name)[layer] for name in ("pool", "train")}
    for name, z in t.calibration.items():
        if name != "raw":  # the pixels are where the data are
            arrays[f"calibration.{name}"] = z
    arrays = {name: z.numpy().astype(np.float16) for name, z in arrays.items()}
    arrays |= {"train.y": t.y_train, "calibration.y": t.y_calibration, "pool.y": t.pool_group}
    folder.mkdir(parents=True, exist_ok=True)
    if sum(z.nbytes for z in arrays.values()) <= KEPT_BYTES:
        np.savez_compressed(folder / f"{stem}.npz", **arrays)
        return
    train = f"train.{layer}"
    np.savez_compressed(folder / f"{stem}-train.npz", **{train: arrays.pop(train)})
    np.savez_compressed(folder / f"{stem}-rest.npz", **arrays)


# ------------------------------------------------------------------------------------ what is asked


@dataclass(frozen=True)
class PoolSplit:
    """The whole pool split at once; samples are drawn from it afterwards."""

    trial: Trial
    p_value: np.ndarray
    score: np.ndarray
    inside: np.ndarray
    count: np.ndarray
    cell: np.ndarray
    cell_share: np.ndarray
    cell_tilt: np.ndarray
    assumptions: Assumptions

    def assumed(self, rows: np.ndarray) -> Assumptions:
        """What the splitter would assume of a sample of these rows."""
        tilt = tilt_spread(self.p_value[rows], self.cell[rows], self.cell_tilt)
        return replace(self.assumptions, tilt=tilt)

    @property
    def rank(self) -> np.ndarray:
        """Conformal ranks; the mixture wants whole numbers."""
        return np.rint(self.p_value * (self.count + 1)).astype(np.int64)

    def rows(self, groups: tuple[int, ...]) -> np.ndarray:
        """Pool rows of a test distribution."""
        return np.flatnonzero(np.isin(self.trial.pool_group, groups))


def split_pool(t: Trial, scorer: Scorer | None = None, layer: str | None = None) -> PoolSplit:
    """Fit on training and calibration rows, split the pool."""
    layer = layer or t.setting.layer
    splitter = SupportSplitter(scorer or KNN(unit_norm=True), random_state=t.seed)
    splitter.fit(t.train[layer], t.y_train, t.calibration[layer], t.y_calibration)
    parts = [splitter.split(z) for z in t.pool[layer].split(4_000)]
    joined = {
        name: np.concatenate([getattr(part, name).numpy() for part in parts])
        for name in ("p_value", "score", "inside", "calibration_count", "cell")
    }
    return PoolSplit(
        trial=t,
        p_value=joined["p_value"].astype(np.float64),
        score=joined["score"],
        inside=joined["inside"],
        count=joined["calibration_count"],
        cell=joined["cell"],
        cell_share=parts[0].train_cell_share.numpy(),
        cell_tilt=splitter.cell_tilt_,
        assumptions=splitter.assumptions_,
    )


def auroc(inside: np.ndarray, p_value: np.ndarray, score: np.ndarray) -> float:
    """AUROC of the p-value, its ties broken by the score; NaN where there is one group only."""
    if inside.all() or not inside.any():
        return float("nan")
    order = np.lexsort((score, -p_value))
    strangeness = np.empty(len(order))
    strangeness[order] = np.arange(len(order))
    return float(roc_auc_score(~inside, strangeness))


def mean(values: list[float]) -> float:
    """Mean without the NaN of cases that have one group only."""
    kept = [v for v in values if not np.isnan(v)]
    return float(np.mean(kept)) if kept else float("nan")


def quality(splits: list[PoolSplit]) -> Iterator[dict[str, Any]]:
    """AUROC, error rates of the hard rule and its alpha, by case."""
    for case, groups in splits[0].trial.setting.cases.items():
        found: dict[str, list[float]] = {k: [] for k in ("auroc", "false_out", "false_in", "alpha")}
        for s in splits:
            rows = s.rows(groups)
            truth, inside = s.trial.pool_inside[rows], s.inside[rows]
            found["auroc"].append(auroc(truth, s.p_value[rows], s.score[rows]))
            found["false_out"].append(float(np.mean(~inside[truth])))
            outside = inside[~truth]
            found["false_in"].append(float(np.mean(outside)) if len(outside) else float("nan"))
            found["alpha"].append(float(np.mean(inside)))
        yield {
            "setting": splits[0].trial.setting.name,
            "case": case,
            "trials": len(splits),
            "true_share": mean([float(s.trial.pool_inside[s.rows(groups)].mean()) for s in splits]),
            **{name: mean(values) for name, values in found.items()},
            "auroc_min": min(found["auroc"]),
        }


def shares(splits: list[PoolSplit], draws: int) -> Iterator[dict[str, Any]]:
    """Error of the support share, coverage and width of its interval, over i.i.d. draws."""
    for case, groups in splits[0].trial.setting.cases.items():
        for m in SIZES:
            found = []
            for s in splits:
                rng = np.random.default_rng([s.trial.seed, m, 5])
                rows = s.rows(groups)
                population = float(s.trial.pool_inside[rows].mean())
                for _ in range(-(-draws // len(splits))):
                    drawn = rng.choice(rows, m)  # with replacement: i.i.d. from the pool
                    unseen = np.zeros(m, dtype=bool)
                    mixture = split_with_doubt(
                        s.rank[drawn], s.count[drawn], unseen, assumptions=s.assumed(drawn)
                    )
                    low, high = mixture.interval
                    own = float(s.trial.pool_inside[drawn].mean())
                    storey = min(1.0, 2 * float(np.mean(s.p_value[drawn] > 0.5)))
                    found.append(
                        (
                            mixture.share,
                            abs(mixture.share - own),
                            abs(mixture.share - population),
                            abs(storey - own),
                            low <= population <= high,
                            high - low,
                        )
                    )
            keys = ("estimate", "error_draw", "error_population", "storey_error", "covers", "width")
            yield {
                "setting": splits[0].trial.setting.name,
                "case": case,
                "n_val": m,
                "draws": len(found),
                **dict(zip(keys, np.mean(found, axis=0).tolist(), strict=True)),
            }


def verdicts(splits: list[PoolSplit], draws: int) -> Iterator[dict[str, Any]]:
    """How often the case is named, rightly and wrongly."""
    for case, groups in splits[0].trial.setting.cases.items():
        if case not in TRUE_CASE:
            continue
        for m in VERDICT_SIZES:
            named = []
            for s in splits:
                rng = np.random.default_rng([s.trial.seed, m, 6])
                for _ in range(-(-draws // len(splits))):
                    drawn = rng.choice(s.rows(groups), m)
                    named.append(
                        which_case(
                            s.p_value[drawn], s.count[drawn], np.zeros(m, dtype=bool),
                            s.cell[drawn], s.cell_share, assumptions=s.assumed(drawn),
                            look_ahead=False,
                        ).case
                    )  # fmt: skip
            wrong = [n not in (TRUE_CASE[case], "cannot tell") for n in named]
            yield {
                "setting": splits[0].trial.setting.name,
                "case": case,
                "n_val": m,
                "draws": len(named),
                "right": float(np.mean([n == TRUE_CASE[case] for n in named])),
                "wrong": float(np.mean(wrong)),
                "cannot_tell": float(np.mean([n == "cannot tell" for n in named])),
            }


def scorer_grid(t: Trial) -> Iterator[dict[str, Any]]:
    """Layers and scorers side by side: what the defaults of the library were chosen among."""
    grid: dict[str, Scorer] = {
        "k-NN, relative 0.5, unit norm": KNN(unit_norm=True),
        "k-NN, relative 0, unit norm": KNN(unit_norm=True, relative=0.0),
        "k-NN, relative 1, unit norm": KNN(unit_norm=True, relative=1.0),
        "k-NN, relative 0.5": KNN(),
        "Mahalanobis": giw.support.Mahalanobis(),
        "Mahalanobis per class": giw.support.Mahalanobis(per_class=True),
    }
    for layer in t.setting.layers:
        for name, scorer in grid.items():
            for row in quality([split_pool(t, scorer, layer)]):
                if not np.isnan(row["auroc"]):
                    yield {"layer": layer, "scorer": name, **row}


def choices(t: Trial) -> Iterator[dict[str, Any]]:
    """Features as hiding parts of training ranks them, beside the AUROC that they really have."""
    choice = choose_representation(t.calibration, t.y_calibration, random_state=t.seed)
    mean_of = choice.means
    for layer in t.calibration:
        unit = mean_of[layer, True] >= mean_of[layer, False]
        by_class, by_part = choice.scores[layer, unit]
        truth = {f"auroc {case}": float("nan") for case in t.setting.cases}
        if layer in t.pool and layer in t.train:
            split = split_pool(t, KNN(unit_norm=unit), layer)
            truth = {f"auroc {row['case']}": row["auroc"] for row in quality([split])}
        yield {
            "setting": t.setting.name, "seed": t.seed, "features": layer, "unit_norm": unit,
            "class_hidden": by_class, "part_hidden": by_part, "mean": mean_of[layer, unit],
            "chosen": layer == choice.name,
            **{name: value for name, value in truth.items() if not name.startswith(ONE_GROUP)},
        }  # fmt: skip


def overlap(draws: int, problems: int = 10) -> Iterator[dict[str, Any]]:
    """Does the interval hold where inside and outside overlap? Gaussian classes, half known.

    The wider the centres are spread, the better strangers can be told. Every problem has its own
    centres. A fifth of the draws will do for a row: there are many rows.
    """
    known, d, n = 6, 16, 1_500
    for spread in (0.3, 0.5, 0.8, 2.0):
        found: dict[tuple[float, int], list[tuple[float, ...]]] = {}
        for seed in range(problems):
            rng = np.random.default_rng([seed, round(10 * spread)])
            center = spread * rng.normal(size=(2 * known, d))
            label = rng.integers(0, known, n)
            splitter = SupportSplitter(random_state=seed)
            splitter.fit(center[label] + rng.normal(size=(n, d)), label)
            for share, m in itertools.product((0.2, 0.5, 1.0), SIZES):
                for _ in range(-(-draws // (5 * problems))):
                    inside = rng.random(m) < share
                    group = rng.integers(0, known, m) + np.where(inside, 0, known)
                    split = splitter.split(center[group] + rng.normal(size=(m, d)))
                    low, high = split.support_share_interval
                    area = auroc(inside, split.p_value, split.score)
                    row = (area, split.support_share, low <= share <= high, high - low)
                    found.setdefault((share, m), []).append(row)
        for (share, m), rows in found.items():
            keys = ("auroc", "estimate", "covers", "width")
            values = [mean(list(column)) for column in zip(*rows, strict=True)]
            yield {
                "spread": spread, "share": share, "n_val": m, "draws": len(rows),
                **dict(zip(keys, values, strict=True)),
            }  # fmt: skip


def peers(t: Trial, layers: tuple[str, ...], jobs: int, threads: int) -> Iterator[dict[str, Any]]:
    """The published recipe, in its own setting and honest, and scikit-learn's detectors."""
    case, groups = next((c, g) for c, g in t.setting.cases.items() if c.startswith("(iii)"))
    rows = np.flatnonzero(np.isin(t.pool_group, groups))[:4_000]
    truth = t.pool_inside[rows]
    work = [
        (layer, method, t.train[layer].numpy(), t.pool[layer][rows].numpy())
        for layer in layers
        for method in ("published, honest", "published, in pool", *DETECTORS)
    ]
    work.sort(key=lambda job: -job[2].shape[1])  # the long ones first
    found = dict(
        zip(
            [job[:2] for job in work],
            Parallel(n_jobs=jobs)(delayed(_peer)(*job[1:], truth, t.seed, threads) for job in work),
            strict=True,
        )
    )
    for layer in layers:
        start = time.perf_counter()
        ours = SupportSplitter(KNN(unit_norm=True), random_state=t.seed)
        ours.fit(t.train[layer], t.y_train, t.calibration[layer], t.y_calibration)
        split = ours.split(t.pool[layer][rows])
        ranked = np.lexsort((split.score.numpy(), -split.p_value.numpy())).argsort()
        seconds = time.perf_counter() - start
        results = [("calibrated k-NN (giw)", ranked, split.inside.numpy(), seconds)]
        for (of, _), part in found.items():
            results += part if of == layer else []
        for method, strange, inside, seconds in results:
            yield {
                "setting": t.setting.name, "case": case, "method": method, "layer": layer,
                "rows": len(t.y_train), "auroc": float(roc_auc_score(~truth, strange)),
                "false_out": float(np.mean(~inside[truth])),
                "false_in": float(np.mean(inside[~truth])),
                "alpha": float(inside.mean()), "true_share": float(truth.mean()),
                "seconds": seconds,
            }  # fmt: skip


DETECTORS: dict[str, Callable[[int], Any]] = {
    "OneClassSVM()": lambda seed: OneClassSVM(),
    "IsolationForest()": lambda seed: IsolationForest(random_state=seed),
    "LocalOutlierFactor(novelty=True)": lambda seed: LocalOutlierFactor(novelty=True),
}
Peer = tuple[str, np.ndarray, np.ndarray, float]  # name, strangeness, inside, seconds


def _peer(
    method: str, train: np.ndarray, val: np.ndarray, truth: np.ndarray, seed: int, threads: int
) -> list[Peer]:
    """One peer on one layer; both published thresholds at once, since they share the score."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    if method in DETECTORS:
        fitted = DETECTORS[method](seed).fit(train)
        margin = fitted.decision_function(val)  # score_samples up to a constant; predict's sign
        return [(method, -margin, margin >= 0, time.perf_counter() - start)]
    # the authors leave validation points in the training pool: their inside ones are rows of it
    reference = train if method == "published, honest" else np.concatenate([train, val[truth]])
    score = OSVM().fit(torch.tensor(reference)).score(torch.tensor(val)).numpy()
    seconds = time.perf_counter() - start
    return [
        (f"{method}, {rule} {threshold:g}", score, -score > threshold, seconds)
        for rule, threshold in giw.support.PUBLISHED_THRESHOLDS.items()
    ]


def speed(n: int = 60_000, d: int = 120, svm_sizes: tuple[int, ...] = (5_000, 10_000)) -> Any:
    """A split of 60,000 x 120 features against the one-class SVM, extrapolated as n squared.

    CPU seconds, so that other work on the machine does not count.
    """
    rng = np.random.default_rng(0)
    z = np.abs(rng.normal(size=(n, d))).astype(np.float32)
    y, val = rng.integers(0, 10, n), np.abs(rng.normal(size=(1_000, d))).astype(np.float32)
    start = time.process_time()
    SupportSplitter(random_state=0).fit(z, y).split(val)
    ours = time.process_time() - start
    yield {"method": "SupportSplitter", "n": n, "cpu_seconds": ours, "times_ours": 1.0}
    for size in svm_sizes:
        start = time.process_time()
        OSVM().fit(torch.from_numpy(z[:size])).score(torch.from_numpy(val))
        seconds = time.process_time() - start
        yield {
            "method": "OneClassSVM",
            "n": size,
            "cpu_seconds": seconds,
            "times_ours": seconds / ours,
        }
    at_n = seconds * (n / svm_sizes[-1]) ** 2
    yield {"method": "OneClassSVM, n² law", "n": n, "cpu_seconds": at_n, "times_ours": at_n / ours}


def large(n: int = 100_000, d: int = 512) -> Iterator[dict[str, Any]]:
    """A split of 100,000 x 512 features: CPU seconds, and memory beyond the features themselves."""
    rng = np.random.default_rng(0)
    z = torch.from_numpy(np.abs(rng.normal(size=(n, d))).astype(np.float32))
    y, val = rng.integers(0, 10, n), z[:1_000] + 0.1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    SupportSplitter(random_state=0).fit(z, y).split(val)
    yield {
        "n": n,
        "d": d,
        "cpu_seconds": time.process_time() - start,
        "seconds": time.perf_counter() - wall,
        "features_MB": z.nbytes / 1e6,
        "extra_MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3,
    }


# ----------------------------------------------------------------------------------------- printing


def table(title: str, rows: Iterator[dict[str, Any]], out: Path | None, name: str) -> None:
    """Print rows as they are, and append them to a csv file."""
    found = list(rows)
    if not found:
        return
    cells = [[_text(v) for v in row.values()] for row in found]
    width = [max(map(len, column)) for column in zip(found[0], *cells, strict=True)]
    print(f"\n{title}")
    for line in ([*found[0]], *cells):
        print("  " + "  ".join(text.ljust(w) for text, w in zip(line, width, strict=True)))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"support-{name}.csv"
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, ["version", "torch", *found[0]])
            if new:
                writer.writeheader()
            for row in found:
                writer.writerow({"version": giw.__version__, "torch": torch.__version__, **row})


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = [*SETTINGS, "peers", "scorers", "choice", "overlap", "speed", "large"]
    parser.add_argument("what", nargs="+", choices=what, help="settings and tables to run")
    parser.add_argument("--trials", type=int, default=5, help="deals of the data, each with a net")
    parser.add_argument("--first", type=int, default=10, help="seed of the first trial")
    parser.add_argument("--draws", type=int, default=500, help="validation samples per size")
    parser.add_argument("--rows", type=int, default=None, help="training rows at most")
    parser.add_argument("--pool", type=int, default=12_000, help="validation pool at most")
    parser.add_argument("--no-choice", action="store_true", help="do not compare features")
    on = "for peers, scorers and choice"
    parser.add_argument("--on", default="mnist", choices=SETTINGS, help=on)
    parser.add_argument("--layers", default="fc1,conv2", help="for peers")
    parser.add_argument("--jobs", type=int, default=1, help="processes, for peers")
    parser.add_argument("--keep", type=Path, default=None, help="folder for a copy of features")
    parser.add_argument("--data", default=None, help="data folder; else GIW_DATA")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "giw-support-features"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for csv files")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _trial(setting: Setting, seed: int, args: argparse.Namespace) -> Trial:
    t = trial(setting, seed, args.cache, args.data, args.rows, args.pool)
    if args.keep is not None:
        keep(t, f"{setting.name}-{seed}-{args.rows or 'all'}-{args.pool}", args.keep)
    return t


def main() -> None:
    """Run what was asked, table by table."""
    args = arguments()
    torch.set_num_threads(args.threads)
    args.cache.mkdir(parents=True, exist_ok=True)
    seeds = range(args.first, args.first + args.trials)
    for what in args.what:
        if what in ("speed", "large", "overlap"):
            tables = {"speed": speed, "large": large, "overlap": lambda: overlap(args.draws)}
            table(what.capitalize(), tables[what](), args.out, what)
            continue
        setting = SETTINGS[what if what in SETTINGS else args.on]
        trials = (_trial(setting, seed, args) for seed in seeds)
        if what == "peers":
            for t in trials:
                rows = peers(t, tuple(args.layers.split(",")), args.jobs, args.threads)
                table(f"Peers, trial {t.seed}", rows, args.out, what)
            continue
        if what in ("scorers", "choice"):
            for t in trials:
                rows = scorer_grid(t) if what == "scorers" else choices(t)
                table(f"{what.capitalize()}, trial {t.seed}", rows, args.out, what)
            continue
        splits = []
        for t in trials:
            if not splits and not args.no_choice:  # once is enough to show
                choice = choose_representation(t.calibration, t.y_calibration, random_state=t.seed)
                print(f"\n{what}, trial {t.seed}: {choice.summary()}", flush=True)
            splits.append(split_pool(t))
        table("Split of the whole pool", quality(splits), args.out, f"{what}-quality")
        table("Support share", shares(splits, args.draws), args.out, f"{what}-share")
        table("Verdicts", verdicts(splits, args.draws // 5), args.out, f"{what}-verdict")


if __name__ == "__main__":
    main()
