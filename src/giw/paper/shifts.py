"""From a clean sample to a problem in which training and test differ, and the truth about it."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator
from giw.paper.mnist import COLORS, RED, colored
from giw.paper.sample import Sample

Protocol = Literal["honest", "published", "authors"]
Indices = NDArray[np.int64]
Random = int | np.random.Generator | None

PUBLISHED_SEED = 0  # the published protocol has one validation draw for all trials
AUTHORS_SEED = 100  # of Python's own generator, in the loader that the authors released


@dataclass(frozen=True, eq=False)
class ShiftProblem:
    """Training, validation and test samples of one trial: all that a method may see.

    Which points are inside the training support, true weights and flipped labels are kept in
    :class:`Truth`. Groups are set to zero, because comparing them tells inside from outside.
    """

    train: Sample
    val: Sample
    test: Sample

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            sample: Sample = getattr(self, name)
            if len(sample) == 0:
                raise ValueError(f"the {name} sample is empty; every part needs at least one point")
            if sample.classes != self.train.classes:
                raise ValueError(f"{name} has classes {sample.classes}, train {self.train.classes}")
            if sample.x.shape[1:] != self.train.x.shape[1:]:
                raise ValueError(
                    f"points of {name} have shape {sample.x.shape[1:]}, those of train "
                    f"{self.train.x.shape[1:]}; all three need the same"
                )
            object.__setattr__(self, name, sample.without_groups())

    @property
    def n_classes(self) -> int:
        """Number of classes of the task."""
        return self.train.n_classes


@dataclass(frozen=True, eq=False)
class Truth:
    r"""What only an evaluation may know about a :class:`ShiftProblem`.

    Parameters
    ----------
    inside : array of bool of shape (m,)
        Does the validation point lie in a group that training has?
    weight : array of shape (n,) or None
        True :math:`w = p(x, y \mid s = 1) / p_{\rm tr}(x, y)` at the training points, mean one,
        where :math:`s = 1` says that a validation-distributed point lies inside. ``None`` where
        nothing is inside.
    flipped : array of bool of shape (n,)
        Was this training label flipped?
    train_group, val_group, test_group : arrays of integers or None
        Group of each point, for accuracies by group.
    """

    inside: NDArray[np.bool_]  # (m,)
    weight: NDArray[np.float64] | None  # (n,)
    flipped: NDArray[np.bool_]  # (n,)
    train_group: Indices | None = None  # (n,)
    val_group: Indices | None = None  # (m,)
    test_group: Indices | None = None

    @property
    def alpha(self) -> float:
        """Mean membership of the validation sample at hand, the α of the objective."""
        return float(np.mean(self.inside))


def truth_of(train: Sample, val: Sample, test: Sample, weight: NDArray[np.float64]) -> Truth:
    """The truth about clean samples whose groups are still there."""
    return Truth(
        inside=np.isin(val.group, train.group),
        weight=mean_one(weight),
        flipped=np.zeros(len(train), dtype=bool),
        train_group=train.group,
        val_group=val.group,
        test_group=test.group,
    )


def keep_training_rows(
    problem: ShiftProblem, truth: Truth, rows: Indices, weight: NDArray[np.float64] | None
) -> tuple[ShiftProblem, Truth]:
    """The same problem with some training rows only, whose true weights come with them."""
    group = None if truth.train_group is None else truth.train_group[rows]
    fewer = replace(truth, weight=weight, flipped=truth.flipped[rows], train_group=group)
    return replace(problem, train=problem.train.take(rows)), fewer


def mean_one(weight: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Scale to mean one; None where all weight is gone."""
    total = weight.mean()
    return weight / total if total > 0 else None


# Seeds --------------------------------------------------------------------------------------------


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
    if random_state < 0 or trial < 0:
        raise ValueError(f"need random_state ≥ 0 and trial ≥ 0, got {random_state} and {trial}")
    sequence = np.random.SeedSequence(random_state, spawn_key=(trial,))
    children = sequence.spawn(len(fields(TrialSeeds)))
    return TrialSeeds(*(int(child.generate_state(1)[0]) for child in children))


# Drawing validation points ------------------------------------------------------------------------


def _check_protocol(protocol: str) -> None:
    if protocol not in get_args(Protocol):
        raise ValueError(
            f"protocol must be one of {', '.join(get_args(Protocol))}, got {protocol!r}"
        )


def equal_counts(groups: Indices, n: int) -> dict[int, int]:
    """``n`` points over groups as equally as can be, the lowest-numbered first."""
    each, rest = divmod(n, len(groups))
    return {int(g): each + (position < rest) for position, g in enumerate(groups)}


def deal(rows: Indices, group: Indices, n: int, counts: dict[int, int]) -> Indices:
    """So many validation rows of each group from the front of ``rows``."""
    if n < 1:
        raise ValueError(f"n_val must be at least 1, got {n}")
    parts = {g: rows[group[rows] == g][:count] for g, count in counts.items()}
    for g, count in counts.items():
        if len(parts[g]) < count:
            raise ValueError(
                f"n_val={n} asks for {count} points of group {g}, which has {len(parts[g])} left; "
                "lower n_val or test_share"
            )
    return np.concatenate(list(parts.values()))


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
    color = np.full(n, COLORS.index("blue"))
    color[places[:third]] = RED
    color[places[third + 1 : 2 * third + 1]] = COLORS.index("green")
    return color


def density_by_group(
    group: Indices, counts: dict[int, int]
) -> NDArray[np.float64]:  # (largest group + 1,)
    """How likely validation draws one point of each group, up to one constant."""
    density = np.zeros(int(group.max()) + 1)
    for g, count in counts.items():
        density[g] = count / np.sum(group == g)
    return density


# The shifts ---------------------------------------------------------------------------------------


def support_shift(
    sample: Sample,
    *,
    train_groups: Collection[int],
    test_groups: Collection[int],
    n_val: int,
    test: Sample | None = None,
    test_share: float = 0.3,
    protocol: Protocol = "honest",
    draw_ten: bool = False,
    random_state: Random = None,
) -> tuple[ShiftProblem, Truth]:
    r"""Train on some groups, validate and test on others.

    Equal sets of groups are case (i) of the paper, fewer test groups case (ii), more case (iii),
    an overlap case (iv).

    Parameters
    ----------
    sample : Sample
        Clean data from which training and validation points are drawn.
    train_groups, test_groups : collections of int
        Groups that training has, and groups that validation and test have.
    n_val : int
        Number of validation points, the same from every test group (one more in the lowest-numbered
        ones where ``n_val`` does not divide), as in the paper. The true α is the share of inside
        points among them, and the true weight that of a test distribution with those group shares.
    test : Sample, optional
        A test set of its own, cut to the test groups; without it ``test_share`` of every test
        group is set aside.
    test_share : float, default=0.3
    protocol : {"honest", "published", "authors"}
        ``"honest"``: validation is disjoint from training and test and drawn anew for every
        ``random_state``. ``"published"``: as the paper's authors did, validation is drawn from
        the training pool, left in it, and the same for every ``random_state``; a split of
        validation data then only has to find duplicates. ``"authors"``: the very points that the
        authors' loader draws, left in the pool.
    draw_ten : bool, default=False
        The authors' loader draws from every group, and what is not tested is dropped.
    random_state : int, generator or None
    """
    _check_protocol(protocol)
    known, wanted = _groups(sample, train_groups), _groups(sample, test_groups)
    rng = as_generator(PUBLISHED_SEED if protocol == "published" else random_state)

    pool = rng.permutation(len(sample))  # a random order from which the front is dealt
    testable = pool[np.isin(sample.group[pool], wanted)]
    if test is None:
        if not 0 < test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {test_share}")
        test_rows = _share_of_each_group(testable, sample.group, test_share)
        pool = pool[~np.isin(pool, test_rows)]
        testable = testable[~np.isin(testable, test_rows)]
        test_sample = sample.take(np.sort(test_rows))
    else:
        test_sample = test.take(np.isin(test.group, wanted))

    counts = equal_counts(wanted, n_val)
    if protocol == "authors":
        drawn = np.unique(sample.group) if draw_ten else wanted
        val_rows, _ = authors_draw(
            sample.group, equal_counts(drawn, n_val * len(drawn) // len(wanted))
        )
        val_rows = val_rows[np.isin(sample.group[val_rows], wanted)]
    else:
        val_rows = deal(testable, sample.group, n_val, counts)
    train_rows = pool[np.isin(sample.group[pool], known)]
    if protocol == "honest":
        train_rows = train_rows[~np.isin(train_rows, val_rows)]

    train, val = sample.take(np.sort(train_rows)), sample.take(val_rows)
    problem = ShiftProblem(train, val, test_sample)  # refuses empty parts
    density = density_by_group(sample.group, counts)
    return problem, truth_of(train, val, test_sample, density[train.group])


def _groups(sample: Sample, groups: Collection[int]) -> Indices:
    wanted = np.unique(np.asarray(list(groups), dtype=np.int64))
    present = np.unique(sample.group)
    if len(wanted) == 0 or not np.isin(wanted, present).all():
        raise ValueError(
            f"groups must be some of those of the sample, {present.tolist()}; got {list(groups)}"
        )
    return wanted


def _share_of_each_group(rows: Indices, group: Indices, share: float) -> Indices:
    """The first ``share`` of each group in the given order, at least one point."""
    parts = [rows[group[rows] == g] for g in np.unique(group[rows])]
    return np.concatenate([part[: max(1, round(share * len(part)))] for part in parts])


def color_shift(
    sample: Sample,
    *,
    test: Sample,
    n_val: int = 20,
    protocol: Protocol = "honest",
    random_state: Random = None,
) -> tuple[ShiftProblem, Truth]:
    """Paint training images red, and validation and test images red, green or blue evenly.

    Case (iii) of the paper. The test image in row i has color i mod 3.

    Parameters
    ----------
    sample, test : Sample
        Grey images from which training and validation are drawn, and grey images for the test.
    n_val : int, default=20
        Number of validation points: as many of each class as of any other (two per digit for 20)
        and, in random order, as many of each color, red first where it does not divide. The true α
        is the share of red in the draw, 7 of 20.
    protocol, random_state
        As in :func:`support_shift`.
    """
    _check_protocol(protocol)
    rng = as_generator(PUBLISHED_SEED if protocol == "published" else random_state)
    order = rng.permutation(len(sample))
    n_colors = len(COLORS)
    counts = equal_counts(np.unique(sample.y), n_val)
    if protocol == "authors":
        val_rows, theirs = authors_draw(sample.y, counts)
        val_color = authors_colors(theirs, n_val)
    else:
        val_rows = deal(order, sample.y, n_val, counts)
        val_color = rng.permutation(np.arange(n_val) % n_colors)
    train_rows = np.arange(len(sample))
    if protocol == "honest":
        train_rows = np.setdiff1d(train_rows, val_rows)

    train = colored(sample.take(train_rows), RED)
    val = colored(sample.take(val_rows), val_color)
    test = colored(test, np.arange(len(test)) % n_colors)
    density = density_by_group(sample.y, counts)  # here by class
    return ShiftProblem(train, val, test), truth_of(train, val, test, density[train.y])


def label_noise(
    problem: ShiftProblem, truth: Truth, *, rate: float, random_state: Random = None
) -> tuple[ShiftProblem, Truth]:
    r"""Flip training labels to another class with probability ``rate``.

    The rate :math:`\rho` is the total probability of leaving the true class, spread equally over
    the others: :math:`p(\tilde y \mid y) = 1 - \rho` for :math:`\tilde y = y` and
    :math:`\rho / (c - 1)` otherwise. Validation and test labels stay clean.

    In terms of the pair :math:`(x, y)` test data never show a flipped label, so its true weight is
    zero, and that of all others grows by one common factor to keep the mean at one.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is a probability between 0 and 1, got {rate}")
    if problem.n_classes < 2:
        raise ValueError("label noise needs at least two classes to flip between")
    if truth.flipped.any():
        raise ValueError("labels are noisy already; apply label_noise once, at the rate you want")
    rng = as_generator(random_state)
    train, n = problem.train, len(problem.train)
    # Both draws have a fixed length, so that a higher rate flips a superset of the same labels.
    flipped = rng.random(n) < rate
    step = rng.integers(1, problem.n_classes, size=n)  # 1 .. c − 1: never back to the true class
    noisy = np.where(flipped, (train.y + step) % problem.n_classes, train.y)
    weight = None if truth.weight is None else mean_one(np.where(flipped, 0.0, truth.weight))
    changed = replace(problem, train=replace(train, y=noisy))
    return changed, replace(truth, weight=weight, flipped=flipped)


def class_prior(
    problem: ShiftProblem,
    truth: Truth,
    *,
    ratio: float,
    minority: Collection[int],
    random_state: Random = None,
) -> tuple[ShiftProblem, Truth]:
    r"""Thin out the minority classes of the training sample.

    Every minority class is cut to :math:`1 / \rho` of the mean size of a majority class (at least
    one point, at most all it has). A class of which a share :math:`k_y` is kept has its true
    weight multiplied by :math:`1 / k_y`, up to the common factor that keeps the mean at one.
    Where labels are noisy, classes are those of the labels as training shows them, which keeps
    this exact.

    Parameters
    ----------
    problem, truth : ShiftProblem and Truth
    ratio : float
        Size of a majority class over that of a minority class, at least 1.
    minority : collection of int
        The classes to thin out; some but not all.
    random_state : int, generator or None
    """
    if not (np.isfinite(ratio) and ratio >= 1):
        raise ValueError(f"ratio is majority over minority size, at least 1; got {ratio}")
    rare = np.unique(np.asarray(list(minority), dtype=np.int64))
    y = problem.train.y
    size = np.bincount(y, minlength=problem.n_classes)  # (c,)
    common = np.setdiff1d(np.flatnonzero(size), rare)
    if len(rare) == 0 or rare.min() < 0 or rare.max() >= problem.n_classes or len(common) == 0:
        raise ValueError(
            f"minority must name some but not all of the classes 0 to {problem.n_classes - 1} "
            f"seen in training, got {sorted(minority)}"
        )
    kept = size.copy()
    kept[rare] = np.minimum(size[rare], max(1, round(float(size[common].mean()) / ratio)))

    order = as_generator(random_state).permutation(len(y))
    rows = np.sort(np.concatenate([order[y[order] == c][: kept[c]] for c in np.flatnonzero(size)]))
    weight = None
    if truth.weight is not None:
        grown = size / np.maximum(kept, 1)  # (c,): one over the share kept
        weight = mean_one(truth.weight[rows] * grown[y[rows]])
    return keep_training_rows(problem, truth, rows, weight)


def fewer_training_points(
    problem: ShiftProblem, truth: Truth, n: int, random_state: int
) -> tuple[ShiftProblem, Truth]:
    """A random part of the training points, for the ablation of the paper."""
    if n > len(problem.train):
        raise ValueError(f"{n} is more than the {len(problem.train)} training points")
    rows = np.sort(np.random.default_rng(random_state).permutation(len(problem.train))[:n])
    weight = None if truth.weight is None else truth.weight[rows] / truth.weight[rows].mean()
    return keep_training_rows(problem, truth, rows, weight)


def development_samples(pool: Sample) -> tuple[Sample, Sample]:
    """A training pool and a test sample, both from a training pool: to choose constants on.

    What is chosen there has never seen a test image. All trials share one cut, a sixth for the
    test: 10,000 of MNIST's 60,000 images.
    """
    order = np.random.default_rng(20_230_923).permutation(len(pool))
    n_test = round(len(pool) / 6)
    return pool.take(np.sort(order[n_test:])), pool.take(np.sort(order[:n_test]))
