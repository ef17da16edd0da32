"""From a clean sample to a problem in which training and test differ, and the truth about it."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giw.checks import as_generator

Protocol = Literal["honest", "published", "authors"]
Indices = NDArray[np.int64]
Random = int | np.random.Generator | None

RED, GREEN, BLUE = range(3)
PUBLISHED_SEED = 0  # the published protocol has one validation draw for all trials
AUTHORS_SEED = 100  # of Python's own generator, in the loader that the authors released


@dataclass(frozen=True, eq=False)
class Sample:
    """Points, their task labels, and the subclass that a shift acts on.

    The subclass is the digit behind odd and even, the fine class behind a superclass, the square of
    the toy example. Pixels stay ``uint8`` in memory because they are a quarter of the size.
    """

    x: NDArray[Any]  # (n, d), or (n, channels, height, width) for images
    y: NDArray[np.int64]  # (n,), indices into classes
    group: NDArray[np.int64]  # (n,)
    classes: tuple[str, ...] = ()  # of the task, seen in this sample or not

    def __post_init__(self) -> None:
        for name in ("y", "group"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of classes of the task, seen in this sample or not."""
        return len(self.classes)

    def take(self, rows: ArrayLike) -> Sample:
        """The rows named by indices or by a boolean mask, in that order."""
        rows = np.asarray(rows)
        return replace(self, x=self.x[rows], y=self.y[rows], group=self.group[rows])


@dataclass(frozen=True, eq=False)
class ShiftProblem:
    """Training, validation and test samples of one trial: all that a method may see.

    Groups are set to zero, because comparing them tells inside from outside; that is kept in
    :class:`Truth`.
    """

    train: Sample
    val: Sample
    test: Sample

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            sample: Sample = getattr(self, name)
            object.__setattr__(self, name, replace(sample, group=np.zeros(len(sample), int)))


@dataclass(frozen=True, eq=False)
class Truth:
    """What only an evaluation may know: which validation points lie in a group of training."""

    inside: NDArray[np.bool_]  # (m,)

    @property
    def alpha(self) -> float:
        """Mean membership of the validation sample at hand, the α of the objective."""
        return float(np.mean(self.inside))


@dataclass(frozen=True)
class TrialSeeds:
    """Independent integer seeds, one for each thing that is random in a trial."""

    draw: int  # training, validation and test rows
    noise: int  # flipped labels
    prior: int  # rows that class-prior shift keeps
    init: int  # initial parameters of a net
    batches: int  # order of mini-batches
    augmentation: int  # random transformations of images
    split: int  # folds of the support split


def trial_seeds(random_state: int, trial: int) -> TrialSeeds:
    """Seeds of one trial of an experiment, the same for every method and number of trials."""
    sequence = np.random.SeedSequence(random_state, spawn_key=(trial,))
    children = sequence.spawn(len(fields(TrialSeeds)))
    return TrialSeeds(*(int(child.generate_state(1)[0]) for child in children))


# Drawing validation points ------------------------------------------------------------------------


def _generator(protocol: str, random_state: Random) -> np.random.Generator:
    """Of a draw: its own, or under the published protocol one for all trials."""
    return as_generator(PUBLISHED_SEED if protocol == "published" else random_state)


def equal_counts(groups: Indices, n: int) -> dict[int, int]:
    """``n`` points over groups as equally as can be, the lowest-numbered first."""
    each, rest = divmod(n, len(groups))
    return {int(g): each + (position < rest) for position, g in enumerate(groups)}


def deal(rows: Indices, group: Indices, counts: dict[int, int]) -> Indices:
    """So many validation rows of each group from the front of ``rows``."""
    parts = [rows[group[rows] == g][:count] for g, count in counts.items()]
    for part, (g, count) in zip(parts, counts.items(), strict=True):
        if len(part) < count:
            raise ValueError(
                f"group {g} has {len(part)} points, {count} are asked for; lower n_val"
            )
    return np.concatenate(parts)


def authors_draw(group: Indices, counts: dict[int, int]) -> tuple[Indices, random.Random]:
    """The validation rows of the authors' loader, and its generator as it is afterwards.

    The loader seeds Python's generator and samples from the rows of one digit after the other.
    It is published for Color-MNIST; that grey MNIST was drawn alike is an inference.
    """
    rng = random.Random(AUTHORS_SEED)
    rows = [rng.sample(np.flatnonzero(group == g).tolist(), n) for g, n in counts.items()]
    return np.concatenate(rows).astype(np.int64), rng


def authors_colors(rng: random.Random, n: int) -> Indices:
    """Colours of the authors' validation points: by their place in a shuffled list."""
    places = list(range(n))
    rng.shuffle(places)
    third = round(n * 7 / 20)  # seven red ones, one blue, seven green ones, the others blue
    color = np.full(n, BLUE)
    color[places[:third]] = RED
    color[places[third + 1 : 2 * third + 1]] = GREEN
    return color


# The shifts ---------------------------------------------------------------------------------------


def support_shift(
    sample: Sample,
    *,
    train_groups: Collection[int],
    test_groups: Collection[int],
    n_val: int,
    test: Sample,
    protocol: Protocol = "honest",
    draw_ten: bool = False,
    random_state: Random = None,
) -> tuple[ShiftProblem, Truth]:
    """Train on some groups, validate and test on others.

    Equal sets of groups are case (i) of the paper, fewer test groups case (ii), more case (iii),
    an overlap case (iv). Validation has as many points of every test group, one more in the
    lowest-numbered ones where ``n_val`` does not divide.

    Parameters
    ----------
    sample, test : Sample
        Clean data from which training and validation are drawn, and a test set of its own, which
        is cut to the test groups.
    protocol : {"honest", "published", "authors"}
        ``"honest"``: validation is disjoint from training and test and drawn anew for every
        ``random_state``. ``"published"``: as the paper's authors did, validation is drawn from
        the training pool, left in it, and the same for every ``random_state``; a split of
        validation data then only has to find duplicates. ``"authors"``: the very points that the
        authors' loader draws, left in the pool; with ``draw_ten`` it draws from every group, and
        what is not tested is dropped.
    """
    known, wanted = np.unique(list(train_groups)), np.unique(list(test_groups))
    pool = _generator(protocol, random_state).permutation(len(sample))  # dealt from its front
    if protocol == "authors":
        drawn = np.unique(sample.group) if draw_ten else wanted
        counts = equal_counts(drawn, n_val * len(drawn) // len(wanted))
        val_rows, _ = authors_draw(sample.group, counts)
        val_rows = val_rows[np.isin(sample.group[val_rows], wanted)]
    else:
        val_rows = deal(pool, sample.group, equal_counts(wanted, n_val))
    train_rows = pool[np.isin(sample.group[pool], known)]
    if protocol == "honest":
        train_rows = train_rows[~np.isin(train_rows, val_rows)]
    train, val = sample.take(np.sort(train_rows)), sample.take(val_rows)
    test = test.take(np.isin(test.group, wanted))
    return ShiftProblem(train, val, test), Truth(np.isin(val.group, train.group))


def colored(sample: Sample, color: ArrayLike) -> Sample:
    """Grey images of shape (n, 1, height, width) painted red (0), green (1) or blue (2).

    The color is the channel that gets the grey values, and becomes the group.
    """
    channel = np.broadcast_to(np.asarray(color), (len(sample),))
    here = (channel[:, None] == np.arange(3))[:, :, None, None]  # (n, 3, 1, 1)
    return Sample(sample.x * here, sample.y, channel, sample.classes)


def color_shift(
    sample: Sample,
    *,
    test: Sample,
    n_val: int = 20,
    protocol: Protocol = "honest",
    random_state: Random = None,
) -> tuple[ShiftProblem, Truth]:
    """Paint training images red, and validation and test images red, green or blue evenly.

    Case (iii) of the paper, from grey images. Validation has as many of each class (two per digit
    for 20) and, in random order, of each color, red first where it does not divide. The test image
    in row i has color i mod 3. Protocols are those of :func:`support_shift`.
    """
    rng = _generator(protocol, random_state)
    order = rng.permutation(len(sample))
    counts = equal_counts(np.unique(sample.y), n_val)
    if protocol == "authors":
        val_rows, theirs = authors_draw(sample.y, counts)
        val_color = authors_colors(theirs, n_val)
    else:
        val_rows = deal(order, sample.y, counts)
        val_color = rng.permutation(np.arange(n_val) % 3)
    train_rows = np.arange(len(sample))
    if protocol == "honest":
        train_rows = np.setdiff1d(train_rows, val_rows)
    train = colored(sample.take(train_rows), RED)
    val = colored(sample.take(val_rows), val_color)
    test = colored(test, np.arange(len(test)) % 3)
    return ShiftProblem(train, val, test), Truth(val_color == RED)


def label_noise(train: Sample, *, rate: float, random_state: Random = None) -> Sample:
    r"""Flip training labels to another class with probability ``rate``.

    The rate :math:`\rho` is the total probability of leaving the true class, spread equally over
    the others: :math:`p(\tilde y \mid y) = 1 - \rho` for :math:`\tilde y = y` and
    :math:`\rho / (c - 1)` otherwise. A higher rate flips a superset of the same labels.
    """
    rng = as_generator(random_state)
    # both draws have a fixed length, so that what is flipped does not depend on the rate before
    flipped = rng.random(len(train)) < rate
    step = rng.integers(1, train.n_classes, size=len(train))  # 1 .. c − 1: never the true class
    return replace(train, y=np.where(flipped, (train.y + step) % train.n_classes, train.y))


def class_prior(
    train: Sample, *, ratio: float, minority: Collection[int], random_state: Random = None
) -> Sample:
    """Thin out the minority classes of the training sample.

    Every minority class is cut to one ``ratio``-th of the mean size of a majority class: at least
    one point, at most all it has.
    """
    y, rare = train.y, np.unique(list(minority))
    size = np.bincount(y, minlength=train.n_classes)  # (c,)
    common = np.setdiff1d(np.flatnonzero(size), rare)
    kept = size.copy()
    kept[rare] = np.minimum(size[rare], max(1, round(float(size[common].mean()) / ratio)))
    order = as_generator(random_state).permutation(len(y))
    rows = np.concatenate([order[y[order] == c][: kept[c]] for c in np.flatnonzero(size)])
    return train.take(np.sort(rows))


def fewer_training_points(train: Sample, n: int, random_state: int) -> Sample:
    """A random part of the training points, for the ablation of the paper."""
    if n > len(train):
        raise ValueError(f"{n} is more than the {len(train)} training points")
    return train.take(np.sort(np.random.default_rng(random_state).permutation(len(train))[:n]))


def development_samples(pool: Sample) -> tuple[Sample, Sample]:
    """A training pool and a test sample, both from a training pool: to choose constants on.

    What is chosen there has never seen a test image. All trials share one cut, a sixth for the
    test: 10,000 of MNIST's 60,000 images.
    """
    order = np.random.default_rng(20_230_923).permutation(len(pool))
    n_test = round(len(pool) / 6)
    return pool.take(np.sort(order[n_test:])), pool.take(np.sort(order[:n_test]))
