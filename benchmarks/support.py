"""How good is the split into inside and outside the training support, on honest validation data?

``images`` trains one small net per setting and draw, splits pixels and outputs of its hidden
layers, each representation on its own and all of them together, and writes one row; with
``--cache`` the features are kept, and a second run only splits. ``photographs`` does so for CIFAR
images with a small convolutional net, ``tables`` splits natural tables, ``share`` counts how often
the interval of the share inside covers a known share, and ``speed`` measures seconds and memory.

    python benchmarks/support.py images --data DATA --jobs 16          # resumable; minutes
    python benchmarks/support.py photographs --data DATA --device cuda
    python benchmarks/support.py tables --data DATA
    python benchmarks/support.py share
    python benchmarks/support.py speed --data DATA
    python benchmarks/support.py show

DATA holds ``mnist/``, ``cifar100/`` and ``natural/``; Fashion-MNIST is taken from ``--fashion``,
where Debian's package ``dataset-fashion-mnist`` puts it. What is missing is skipped, and said.

Draws 100 and above are for development (all but coloured Fashion): every choice was made on them.
Draws 0 to 9 are reported.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional

import giw
from giw.nets.methods import GIW
from giw.nets.models import LeNet5
from giw.nets.training import Evidence, Tensors, TrainingConfig
from giw.nets.training import train as train_giw

FASHION = Path("/usr/share/datasets/fashion-mnist")
N_TRAIN, N_HELD_OUT, N_VAL, N_TARGET = 10_000, 2_000, 200, 2_000
NOISE, RATIO = 0.4, 10
EPOCHS, BATCH, RATE = 10, 256, 5e-4
SHIFTS = ("none", "noise", "prior")
FIRST_OF_DEVELOPMENT = 100  # draws from here on are for choices, those below for reports
CIFAR_DRAWS, CIFAR_EPOCHS, VIEW_EPOCHS = 3, 40, 200
TABLE_DRAWS, SHARE_DRAWS = 3, 50
COLUMNS = (
    "setting", "draw", "false_inside", "false_outside", "auroc", "single_false_inside",
    "single_auroc", "alpha", "true_alpha", "share", "share_low", "share_high", "true_share",
    "seconds", "single_least_false_inside", "single_best_auroc",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Images, the groups that training and the target have, and what else shifts."""

    images: str  # mnist, fashion or cifar
    case: str  # iii or iv
    colored: bool
    shift: str  # one of SHIFTS

    @property
    def name(self) -> str:
        """The setting in one word."""
        return f"{self.images}-{'color' if self.colored else self.case}-{self.shift}"

    @property
    def weight_decay(self) -> float:
        """Of Adam, as the paper has it for its data sets."""
        if self.images == "cifar":
            return 1e-4
        if not self.colored:
            return 0.005
        return 1e-5 if self.shift == "prior" else 0.002


SETTINGS = tuple(
    Setting(images, case, colored, shift)
    for images, case, colored in (
        ("mnist", "iii", False),
        ("fashion", "iii", False),
        ("mnist", "iv", False),
        ("fashion", "iii", True),
        ("mnist", "iii", True),
    )
    for shift in SHIFTS
)
PHOTOGRAPHS = Setting("cifar", "iii", colored=False, shift="none")


@dataclass(frozen=True)
class Deal:
    """One draw: training rows (seen by the net, then held out), validation and target rows."""

    x: NDArray[np.uint8]  # (n + m, c, h, w), training first
    y: NDArray[np.int64]  # (n + m,) as a user has them: noisy in training
    inside: NDArray[np.bool_]  # (m,) the truth
    n_classes: int


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file as Yann LeCun wrote them, gzipped."""
    raw = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def read_images(
    name: str, data: Path, fashion: Path
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The training images of MNIST or Fashion-MNIST, (60000, 28, 28), and their groups."""
    folder = data / "mnist" if name == "mnist" else fashion
    x = read_idx(folder / "train-images-idx3-ubyte.gz")
    return x, read_idx(folder / "train-labels-idx1-ubyte.gz").astype(np.int64)


def deal(setting: Setting, x: NDArray[np.uint8], group: NDArray[np.int64], seed: int) -> Deal:
    """Training and target rows, disjoint, from one pool."""
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    label = group if setting.colored else group % 2  # digits or kinds; odd or even
    n_classes = 10 if setting.colored else 2
    order = rng.permutation(len(x))
    wanted = range(2, 10) if setting.case == "iv" else range(10)
    target = order[np.isin(group[order], list(wanted))][: N_VAL + N_TARGET]
    rest = order[~np.isin(order, target)]
    train = rest if setting.colored else rest[group[rest] < 4]
    if setting.shift == "prior":
        train = thinned(
            rng.permutation(train), label, rare=(1, 2, 6, 7, 8) if setting.colored else (1,)
        )
    train = rng.permutation(train)[:N_TRAIN]
    y = label[np.concatenate([train, target])].copy()
    if setting.shift == "noise":
        flipped = np.flatnonzero(rng.random(N_TRAIN) < NOISE)
        y[flipped] = (y[flipped] + rng.integers(1, n_classes, len(flipped))) % n_classes
    images = x[np.concatenate([train, target]), None]
    if not setting.colored:
        return Deal(images, y, group[target] < 4, n_classes)
    color = np.zeros(len(images), dtype=int)  # red
    color[N_TRAIN:] = rng.integers(3, size=len(target))
    painted = np.zeros((len(images), 3, 28, 28), np.uint8)
    painted[np.arange(len(images)), color] = images[:, 0]
    return Deal(painted, y, color[N_TRAIN:] == 0, n_classes)


def thinned(
    rows: NDArray[np.int64], label: NDArray[np.int64], *, rare: tuple[int, ...]
) -> NDArray[np.int64]:
    """Rows with each rare class cut to one tenth of the mean size of the others."""
    size = np.bincount(label[rows])
    most = int(np.delete(size, rare).mean() / RATIO)
    kept = [rows[label[rows] == c][: most if c in rare else None] for c in range(len(size))]
    return np.concatenate(kept)


class LeNet(nn.Module):
    """LeNet-5 as in the paper: 6 and 16 channels for grey images, 20 and 50 for colored ones."""

    def __init__(self, channels: int, n_classes: int) -> None:
        super().__init__()
        first, second = (6, 16) if channels == 1 else (20, 50)
        self.conv1, self.conv2 = nn.Conv2d(channels, first, 5), nn.Conv2d(first, second, 5)
        self.fc1, self.fc2 = nn.Linear(second * 25, 120), nn.Linear(120, 84)
        self.output = nn.Linear(84, n_classes)

    def layers(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Every hidden layer after activation and pooling; large maps averaged over space."""
        x = functional.pad(x.float() / 255, (2, 2, 2, 2))
        conv1 = functional.max_pool2d(self.conv1(x), 2).relu()
        conv2 = functional.max_pool2d(self.conv2(conv1), 2).relu()
        fc1 = self.fc1(conv2.flatten(1)).relu()
        maps = {"conv1": conv1, "conv2": conv2}
        return {name: small(map_) for name, map_ in maps.items()} | {
            "fc1": fc1,
            "fc2": self.fc2(fc1).relu(),
        }

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.output(self.layers(x)["fc2"])


class SmallNet(nn.Module):
    """A small convolutional net for photographs, about 300,000 parameters at width 1."""

    def __init__(self, n_classes: int, width: int = 1, *, white: float = 255.0) -> None:
        super().__init__()
        self.white = white  # of pixels as they come: bytes here, numbers to 1 in the library
        widths = (3, 32 * width, 64 * width, 128 * width, 128 * width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
            for a, b in itertools.pairwise(widths)
        )
        self.fc = nn.Linear(widths[-1], 256)
        self.output = nn.Linear(256, n_classes)

    def layers(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Every hidden layer after activation and pooling; large maps averaged over space."""
        x = (x / self.white - 0.5) * 4
        found = {}
        for depth, block in enumerate(self.blocks):
            x = block(x)
            if depth < 3:
                x = functional.max_pool2d(x, 2)
            found[f"conv{depth + 1}"] = small(x)
        pooled = x.mean(dim=(2, 3))
        return found | {"pool": pooled, "fc": self.fc(pooled).relu()}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.output(self.layers(x)["fc"])


def small(maps: torch.Tensor) -> torch.Tensor:
    """Maps as rows; averaged over space where a row would have more than 1,024 columns."""
    return maps.mean(dim=(2, 3)) if maps[0].numel() > 1024 else maps.flatten(1)


def train(
    net: nn.Module, dealt: Deal, *, epochs: int, weight_decay: float, move: bool, device: str
) -> None:
    """Plain training on the training rows that are not held out; moved about if so asked."""
    x = torch.as_tensor(dealt.x[: N_TRAIN - N_HELD_OUT], device=device)
    y = torch.as_tensor(dealt.y, device=device)
    net.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, weight_decay=weight_decay)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).to(device).split(BATCH):
            images = moved(x[rows], least=0.8) if move else x[rows]
            optimizer.zero_grad()
            functional.cross_entropy(net(images), y[rows]).backward()
            optimizer.step()
    net.eval()


def moved(images: torch.Tensor, *, least: float) -> torch.Tensor:
    """A part of each image, at least so long a side, somewhere, mirrored in half the cases."""
    n, device = len(images), images.device
    side = least + (1 - least) * torch.rand(n, device=device)
    mirror = torch.where(torch.rand(n, device=device) < 0.5, -1.0, 1.0)
    shift = (1 - side)[:, None] * (2 * torch.rand(n, 2, device=device) - 1)
    theta = torch.zeros(n, 2, 3, device=device)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = side * mirror, side, shift
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    return functional.grid_sample(images.float(), grid, padding_mode="border", align_corners=False)


def recolored(images: torch.Tensor) -> torch.Tensor:
    """Contrast, brightness and every channel changed a little; one image in five grey."""
    n, device = len(images), images.device

    def factor(width: int) -> torch.Tensor:
        return 0.6 + 0.8 * torch.rand(n, width, 1, 1, device=device)

    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    images = ((images - middle) * factor(1) + middle * factor(1)) * factor(3)
    grey = torch.rand(n, 1, 1, 1, device=device) < 0.2
    return torch.where(grey, images.mean(dim=1, keepdim=True), images).clamp(0, 255)


def train_without_labels(net: SmallNet, dealt: Deal, *, epochs: int, device: str) -> None:
    """Two views of an image are to be alike, and different images not (SimCLR)."""
    x = torch.as_tensor(dealt.x[: N_TRAIN - N_HELD_OUT], device=device)
    net.to(device, memory_format=torch.channels_last)
    head = nn.Sequential(nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, 64)).to(device)
    head(net.layers(x[:2])["pool"])  # makes the weights
    weights = [*net.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(weights, lr=2 * RATE, weight_decay=1e-6)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).to(device).split(2 * BATCH):
            views = torch.cat([recolored(moved(x[rows], least=0.5)) for _ in range(2)])
            z = functional.normalize(head(net.layers(views)["pool"]))
            alike = (z @ z.T / 0.2).fill_diagonal_(-torch.inf)
            partner = torch.arange(len(z), device=device).roll(len(rows))
            optimizer.zero_grad()
            functional.cross_entropy(alike, partner).backward()
            optimizer.step()
    net.eval()


def extract(net: nn.Module, x: NDArray[np.uint8], device: str) -> dict[str, NDArray[np.float32]]:
    """All layers, channels last and in blocks of 256."""
    with torch.no_grad():
        parts = [
            net.layers(block.to(device).contiguous(memory_format=torch.channels_last))
            for block in torch.as_tensor(x).split(256)
        ]
    return {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}


def cifar_deal(data: Path, seed: int) -> Deal:
    """Photographs in twenty superclasses, of which training has two of five classes each."""
    parts = [np.load(data / "cifar100" / f"train_{part}.npz") for part in "ab"]
    x = np.concatenate([part["images"] for part in parts]).transpose(0, 3, 1, 2)
    fine, coarse = (np.concatenate([p[k] for p in parts]).astype(int) for k in ("fine", "coarse"))
    rng = np.random.default_rng([seed, 77])
    known = np.flatnonzero(np.bincount(fine) > 200)  # the classes that training has
    order = rng.permutation(len(x))
    is_known = np.isin(fine[order], known)
    half = (N_VAL + N_TARGET) // 2
    inside, outside = order[is_known][:half], order[~is_known][:half]
    target = rng.permutation(np.concatenate([inside, outside]))
    train_rows = order[is_known][half : half + N_TRAIN]
    rows = np.concatenate([train_rows, target])
    return Deal(np.ascontiguousarray(x[rows]), coarse[rows], np.isin(fine[target], known), 20)


def images(args: argparse.Namespace) -> None:
    """One net per setting and draw; draws on the outside, so that what is there is even."""
    run(
        args,
        [
            (setting, seed)
            for seed in args.draws
            for setting in SETTINGS
            if seed < FIRST_OF_DEVELOPMENT or not setting.colored or setting.images == "mnist"
        ],
    )


def photographs(args: argparse.Namespace) -> None:
    """The same for photographs, fewer draws and a net with batch normalisation."""
    run(args, [(PHOTOGRAPHS, seed) for seed in args.draws if seed % 100 < CIFAR_DRAWS])


def run(args: argparse.Namespace, asked: list[tuple[Setting, int]]) -> None:
    """Rows that are not there yet, several at a time."""
    done = {(row["setting"], row["draw"]) for row in read_rows(args.out)}
    todo = [
        (setting, seed)
        for setting, seed in asked
        if (setting.name, str(seed)) not in done and setting.name.startswith(args.only)
    ]
    parallel = joblib.Parallel(n_jobs=args.jobs, return_as="generator_unordered")
    for rows in parallel(joblib.delayed(rows_of)(args, *job) for job in todo):
        for row in rows:
            append(args.out, row)
            print(row["setting"], row["draw"], flush=True)


def rows_of(args: argparse.Namespace, setting: Setting, seed: int) -> list[dict[str, object]]:
    """Train a net, split what it sees, count; no rows where the images are not there."""
    torch.set_num_threads(1)
    path = args.cache and args.cache / f"{setting.name}-{seed}.npz"
    if path and path.exists():
        data = dict(np.load(path))
    else:
        try:
            data = features(setting, seed, args)
        except FileNotFoundError as error:
            print(f"{setting.name} skipped: {error}")
            return []
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part.npz")  # what has the right name is whole
            np.savez(part, **data)
            part.rename(path)
    if setting != PHOTOGRAPHS:
        return [{"setting": setting.name, "draw": seed} | rates_of(data)]
    truth = {name: data.pop(name) for name in ("y", "inside")}
    layers = {name: part for name, part in data.items() if name not in ("input", "views")}
    parts = {
        "": {"input": data["input"]} | layers,  # last, as it is what makes the rows complete
        "-all": data,
        "-views": {"views": data["views"]},
        "-layers": layers,
        "-input": {"input": data["input"]},
    }
    return [
        {"setting": setting.name + part, "draw": seed} | rates_of(parts[part] | truth)
        for part in reversed(parts)
    ]


def features(setting: Setting, seed: int, args: argparse.Namespace) -> dict[str, NDArray[Any]]:
    """Pixels and hidden layers of training and target rows, labels and the truth."""
    if setting == PHOTOGRAPHS:
        dealt = cifar_deal(args.data, seed)
        torch.manual_seed(seed)
        net: nn.Module = SmallNet(dealt.n_classes)
        epochs, move = CIFAR_EPOCHS, True
    else:
        dealt = deal(setting, *read_images(setting.images, args.data, args.fashion), seed)
        torch.manual_seed(1000 * seed + SETTINGS.index(setting))
        net = LeNet(dealt.x.shape[1], dealt.n_classes)
        epochs, move = EPOCHS, False
    train(
        net, dealt, epochs=epochs, weight_decay=setting.weight_decay, move=move, device=args.device
    )
    pixels = dealt.x.reshape(len(dealt.x), -1)
    layers = extract(net, dealt.x, args.device)
    if setting == PHOTOGRAPHS:
        unlabelled = SmallNet(1, width=2)
        train_without_labels(unlabelled, dealt, epochs=VIEW_EPOCHS, device=args.device)
        layers["views"] = extract(unlabelled, dealt.x, args.device)["pool"]
    return {"input": pixels, "y": dealt.y, "inside": dealt.inside} | layers


def rates_of(data: dict[str, NDArray[Any]]) -> dict[str, object]:
    """Errors of all representations together, and of the best single one in hindsight."""
    y, inside = data.pop("y"), data.pop("inside").astype(bool)
    z = {name: part.astype(np.float32) for name, part in data.items()}
    seen, held, new = (
        {name: part[rows] for name, part in z.items()}
        for rows in (slice(N_TRAIN - N_HELD_OUT), slice(N_TRAIN - N_HELD_OUT, N_TRAIN),
                     slice(N_TRAIN, None))
    )  # fmt: skip
    start = time.perf_counter()
    splitter = giw.SupportSplitter(random_state=0)
    y_seen, y_held_out = y[: N_TRAIN - N_HELD_OUT], y[N_TRAIN - N_HELD_OUT : N_TRAIN]
    splitter.fit(seen, y_seen, held_out=held, y_held_out=y_held_out)
    split = splitter.split(new, y[N_TRAIN:])
    seconds = time.perf_counter() - start
    single = {name: errors(p[N_VAL:], inside[N_VAL:]) for name, p in split.p_values.items()}
    least = min(single, key=lambda name: single[name][0])
    best = max(single, key=lambda name: single[name][2])
    val = replace(split, inside=split.inside[:N_VAL], p_value=split.p_value[:N_VAL])
    share, (low, high) = giw.support_share(val)
    together = errors(split.p_value[N_VAL:], inside[N_VAL:])
    numbers_ = dict(zip(("false_inside", "false_outside", "auroc"), together, strict=True)) | {
        "single_false_inside": single[least][0],
        "single_auroc": single[best][2],
        "alpha": float(val.inside.mean()),
        "true_alpha": float(inside[:N_VAL].mean()),
        "share": share,
        "share_low": low,
        "share_high": high,
        "true_share": float(inside.mean()),
        "seconds": seconds,
    }
    rounded = {name: f"{value:.4f}" for name, value in numbers_.items()}
    return rounded | {"single_least_false_inside": least, "single_best_auroc": best}


def errors(p_value: NDArray[np.float64], inside: NDArray[np.bool_]) -> tuple[float, float, float]:
    """False inside, false outside and AUROC of p-values at level 0.05."""
    called = p_value > 0.05
    area = float(roc_auc_score(inside, p_value))
    return float(called[~inside].mean()), float((~called[inside]).mean()), area


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a csv file, none where it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: dict[str, object]) -> None:
    """One row more; the first one writes the names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def show(args: argparse.Namespace) -> None:
    """Means over draws below 100, and development draws below them."""
    rows = read_rows(args.out)
    names = ("false_inside", "single_false_inside", "false_outside", "auroc", "single_auroc")
    print("| setting | draws |", " | ".join(names), "| worst false inside | share covered |")
    print("| --- |" + " --- |" * (len(names) + 3))
    for kind in ("reported", "development"):
        some = [r for r in rows if (int(r["draw"]) >= FIRST_OF_DEVELOPMENT) == (kind != "reported")]
        for setting in dict.fromkeys(row["setting"] for row in some):
            mine = [row for row in some if row["setting"] == setting]
            means = [f"{np.mean([float(row[name]) for row in mine]):.3f}" for name in names]
            worst = max(float(row["false_inside"]) for row in mine)
            covered = sum(
                float(row["share_low"]) <= float(row["true_share"]) <= float(row["share_high"])
                for row in mine
            )
            name = setting if kind == "reported" else f"{setting} (development)"
            print(f"| {name} | {len(mine)} | " + " | ".join(means) +
                  f" | {worst:.3f} | {covered}/{len(mine)} |")  # fmt: skip


def tables(args: argparse.Namespace) -> None:
    """Natural tables: rows that show what their source lacks, and source rows as a control.

    false_inside counts target rows with an unseen class, or with an unseen category or missing
    value in a column where at most a twentieth of source rows have one of their own; it has to be
    zero. false_outside counts further source rows.
    """
    done = {(row["setting"], row["draw"]) for row in read_rows(args.out)}
    for task in json.loads((args.data / "natural" / "tasks.json").read_text()):
        frame = pd.read_parquet(args.data / "natural" / task["file"])
        domain, label = frame.pop("domain").astype(str), frame.pop("label")
        label = label.astype(str) if task["kind"] == "classification" else None
        for seed in [seed for seed in args.draws if seed < TABLE_DRAWS]:
            name = f"table-{task['name']}"
            if (name, str(seed)) in done or not name.startswith(args.only):
                continue
            rng = np.random.default_rng([seed, 99])
            source, target = (
                rng.permutation(np.flatnonzero(domain.isin(task[side])))
                for side in ("source", "target")
            )
            fit = source[: min(N_TRAIN - N_HELD_OUT, len(source) * 4 // 5)]
            control = source[len(fit) :][:N_TARGET]
            row = table_row(frame, label, fit, control, target[:N_TARGET])
            append(args.out, {"setting": name, "draw": seed} | row)
            print(name, seed, flush=True)


def table_row(
    frame: pd.DataFrame,
    label: pd.Series[Any] | None,
    fit: NDArray[np.int64],
    control: NDArray[np.int64],
    target: NDArray[np.int64],
) -> dict[str, object]:
    """Errors on one table; counted with pandas alone, not with the splitter's own rules."""
    X, new = frame.iloc[fit], frame.iloc[target]
    y = None if label is None else label.iloc[fit]
    splitter = giw.SupportSplitter(random_state=0).fit(X, y)
    split = splitter.split(new, None if label is None else label.iloc[target])
    ordinary = splitter.split(frame.iloc[control], None if label is None else label.iloc[control])
    unseen = np.zeros(len(new), dtype=bool)
    if label is not None:
        unseen |= ~label.iloc[target].isin(y).to_numpy()
    alone, strange = np.zeros(len(X), dtype=bool), np.zeros(len(new), dtype=bool)
    for name in X:
        category = not pd.api.types.is_numeric_dtype(X[name])
        key, new_key = (
            part[name].astype(object).where(part[name].notna(), "missing")
            if category
            else part[name].isna()
            for part in (X, new)
        )
        lone = key.map(key.value_counts()).to_numpy() == 1
        if lone.mean() <= 0.05:  # rarer than the level: such a level says something
            strange |= ~new_key.isin(key).to_numpy()
            alone |= lone
    unseen |= strange & (alone.mean() <= 0.05)
    return {
        "false_inside": f"{split.inside[unseen].mean():.4f}" if unseen.any() else "",
        "false_outside": f"{1 - ordinary.inside.mean():.4f}",
        "alpha": f"{split.alpha:.4f}",
        "true_share": f"{1 - unseen.mean():.4f}",
    }


def share(args: argparse.Namespace) -> None:
    """Coverage of :func:`giw.support_share` on normal data of known share inside.

    Outside points lie a few standard deviations away in one of five directions.
    """
    print("| outside points | validation points | share inside | covered | mean width | bias |")
    print("| --- |" + " --- |" * 5)
    for away, m, inside in itertools.product((4, 8), (20, 200), (0.0, 0.2, 0.5, 0.8, 1.0)):
        found = []
        for seed in range(SHARE_DRAWS):
            rng = np.random.default_rng([seed, away, m, round(10 * inside)])
            x, new = rng.normal(size=(1_000, 5)), rng.normal(size=(m, 5))
            new[rng.random(m) >= inside, 0] += away
            split = giw.SupportSplitter(random_state=0).fit(x).split(new)
            estimate, (low, high) = giw.support_share(split)
            found.append((low <= inside <= high, high - low, estimate - inside))
        covered, width, bias = np.mean(found, axis=0)
        print(f"| {away} away | {m} | {inside} | {covered:.2f} | {width:.2f} | {bias:+.2f} |")


def speed(args: argparse.Namespace) -> None:
    """Seconds and memory of fit and split on matrices, each in this one process."""
    for n, d in ((60_000, 120), (1_000_000, 20)):
        rng = np.random.default_rng(0)
        x, new = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(200, d))
        y = rng.integers(0, 10, n)
        start, cpu = time.perf_counter(), time.process_time()
        giw.SupportSplitter(random_state=0).fit(x, y).split(new.astype(np.float32))
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{n:,} x {d}: {took:.1f} s, {cpu:.1f} CPU s, at most {most:.2f} GB", flush=True)
    colored_epoch(args)


class Timed(GIW):
    """GIW that says what its split took."""

    def split(self, evidence: Evidence) -> giw.SupportSplit:
        """The default split, timed."""
        start = clock(evidence.x_train.device)
        split = super().split(evidence)
        print(f"split: {clock(evidence.x_train.device) - start:.1f} s", flush=True)
        return split


def clock(device: Any) -> float:
    """CPU seconds of all threads, or wall time where another device does the work."""
    if torch.device(device).type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def colored_epoch(args: argparse.Namespace) -> None:
    """The default split of 59,980 coloured images against epochs of GIW, in one run."""
    x, y = read_images("mnist", args.data, args.fashion)
    red = np.zeros((len(x), 3, 32, 32), np.uint8)
    red[:, 0, 2:30, 2:30] = x
    images, label = torch.as_tensor(red, device=args.device), torch.as_tensor(y, device=args.device)
    train_rows, val_rows = slice(0, 59_980), slice(59_980, 60_000)
    data = Tensors(images[train_rows], label[train_rows], images[val_rows], label[val_rows])
    ends = [clock(args.device)]

    def on_epoch(phase: str, epoch: int, values: dict[str, float]) -> None:
        ends.append(clock(args.device))
        print(f"{phase}ing, epoch {epoch + 1}: {ends[-1] - ends[-2]:.1f} s", flush=True)

    config = TrainingConfig(epochs=3, pretrain_epochs=1)
    train_giw(Timed(), LeNet5(channels=3, n_classes=10), data, config, on_epoch=on_epoch)


def numbers(text: str) -> list[int]:
    """Read ``0:10,100`` as a list."""
    parts = [part.split(":") for part in text.split(",")]
    return [i for a, *b in parts for i in range(int(a), int(b[0]) if b else int(a) + 1)]


COMMANDS = {
    "images": images,
    "photographs": photographs,
    "tables": tables,
    "show": show,
    "share": share,
    "speed": speed,
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=tuple(COMMANDS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fashion", type=Path, default=FASHION)
    parser.add_argument("--cache", type=Path, help="a folder in which features are kept")
    parser.add_argument("--device", default="cpu", help="where nets are trained")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results/support.csv"))
    parser.add_argument("--draws", type=numbers, default=numbers("0:10,100:102"))
    parser.add_argument("--only", default="", help="settings whose name starts so")
    args = parser.parse_args()
    COMMANDS[args.what](args)


if __name__ == "__main__":
    main()
