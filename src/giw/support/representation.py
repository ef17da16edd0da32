"""Which features tell inside from outside? Ask training: hide a part of it from the rest.

How well *validation* data separate must not decide, or the choice would find differences where
there are none. Training data alone can tell: hide a class, or a part of one, from the others and
see which features find it strange. Parts matter more than they seem to: a net that learned the
classes separates them in its last layers by construction, and forgets there what else it saw.

Parts are clusters, and clusters of some features are what these features see best. Every candidate
therefore proposes some, and each is judged by what the others proposed, and not by its own unless
it is the first of all, which should know nothing but the points themselves. Clusters are of
directions, since the length of a net's features is little but its confidence, on which all
its last layers agree; and of all rows together, since under noisy labels a part of one class has
its twin in another, beside which nobody finds it strange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import as_generator, as_labels, as_points
from giw.support.cells import CLUSTERS, ROWS_PER_CLUSTER, cluster, neighbour_agreement
from giw.support.hiding import MOST_HIDDEN, REST, hidden_aurocs
from giw.support.scorers import KNN
from giw.support.scorers.knn import nearest
from giw.support.scorers.unit_norm import unit_norm

MOST_ROWS = 2_000
TIE = 0.05  # of AUROC: by so much a net that has seen what is hidden flatters its last layers
UNIT_TIE = 0.02  # less than hiding so few groups can tell apart
BEYOND_CHANCE = 0.25  # of the way from chance to certainty: neighbours that know labels so well
PARTS = 16  # hidden in all, shared by the candidates' proposals
VOTERS = 20  # neighbours that are asked for a row's class


@dataclass(frozen=True)
class RepresentationChoice:
    """The chosen features and why.

    Attributes
    ----------
    name : str
        Key of the chosen representation.
    scorer : KNN
        The scorer to give to :class:`giw.SupportSplitter`, unit norm or not.
    scores : dict
        (name, unit_norm) → (AUROC when classes are hidden, AUROC when parts of training are: of
        :func:`fair_means`).
    by_proposal : dict
        (name, unit_norm) → {name of the candidate whose clusters were hidden: AUROC}.
    means : dict
        (name, unit_norm) → what is compared: the mean over all proposals, of which classes are one.
    """

    name: str
    scorer: KNN
    scores: dict[tuple[str, bool], tuple[float, float]]
    by_proposal: dict[tuple[str, bool], dict[str, float]]
    means: dict[tuple[str, bool], float]

    def summary(self) -> str:
        """The candidates, best first, and the rule that chose."""
        norm = {True: "unit norm", False: "as it is"}
        ranked = sorted(self.scores.items(), key=lambda item: -self.means[item[0]])
        rows = [
            f"  {name:<16} {norm[unit]:<10} {by_class:.3f}  {by_part:.3f}  "
            f"{self.means[name, unit]:.3f}" + "  <- chosen" * ((name, unit) == self._key)
            for (name, unit), (by_class, by_part) in ranked
        ]
        return "\n".join(
            [
                "AUROC with a part of training hidden from the rest (no validation data involved)",
                f"  {'features':<16} {'scale':<10} class  part   mean",
                *rows,
                f"the first of those within {TIE:g} of the best: earlier features forget less; of "
                "unit norm unless most judges disagree",
            ]
        )

    @property
    def _key(self) -> tuple[str, bool]:
        return self.name, self.scorer.unit_norm


def choose_representation(
    representations: Mapping[str, Any],
    y_train: Any | None = None,
    *,
    scorer: KNN | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> RepresentationChoice:
    """Choose features by hiding training classes, and parts of classes, from each other.

    Parameters
    ----------
    representations : mapping from name to array of shape (n, d)
        Candidate features of the *same* training rows, the least processed first: raw input, then
        layers in their order. Rows that the net was not trained on make the fairest judges. Several
        layers joined are one more candidate: ``np.concatenate``.
    y_train : array of shape (n,), optional
        Labels. The classes that are hidden are those that a row's neighbours name, which are
        cleaner than noisy labels; without labels, or where neighbours know hardly more of them than
        chance, only clusters are hidden.
    scorer : KNN, optional
        Neighbour scorer to try the features with; unit norm is tried with and without.
    random_state : int, numpy generator or None

    Notes
    -----
    Parts are clusters, proposed by every representation in turn; 16 parts are hidden in all. Two
    representations are compared by what the others proposed (:func:`fair_means`).
    """
    if not representations:
        raise ValueError("representations is empty; pass at least one array by name")
    features = {
        name: as_points(z, f"representations[{name!r}]") for name, z in representations.items()
    }
    lengths = {name: len(z) for name, z in features.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"representations must describe the same rows, got {lengths}")
    n = next(iter(lengths.values()))
    labels = np.zeros(n, dtype=np.int64) if y_train is None else as_labels(y_train, n, "y_train")
    generator = as_generator(random_state)
    rows = np.sort(generator.permutation(n)[:MOST_ROWS])
    kept = {name: z[torch.as_tensor(rows, device=z.device)] for name, z in features.items()}
    label = np.unique(labels[rows], return_inverse=True)[1].reshape(-1)
    trusted = _trusted(kept, label, generator)
    label = voted_labels(kept, label) if trusted else np.zeros_like(label)
    proposals = {name: _parts(z, generator) for name, z in kept.items()}
    proposals = {name: part for name, part in proposals.items() if len(np.unique(part)) > 1}
    if not proposals:
        raise ValueError(
            f"nothing to hide among {n} rows of one class and one cluster; "
            "choose the representation yourself"
        )
    base = KNN() if scorer is None else scorer
    seed = int(generator.integers(2**31))
    groupings = [_some_groups(part, max(2, PARTS // len(proposals))) for part in proposals.values()]
    if len(np.unique(label)) > 1:
        groupings.append(_some_groups(label, MOST_HIDDEN))
    keys = [(name, unit) for name in kept for unit in (False, True)]
    areas = np.array(
        [
            hidden_aurocs(kept[name], groupings, replace(base, unit_norm=unit), random_state=seed)
            for name, unit in keys
        ]
    )  # (2K, proposals and classes)
    by_part = areas[:, : len(proposals)]
    # the first features were fitted to nothing: their clusters are facts, not a view of their own
    learnt = list(kept)[1:] if len(kept) > 2 else []
    own = np.array([[name == other and name in learnt for other in proposals] for name, _ in keys])
    part = fair_means(by_part, own)
    with_classes = areas.shape[1] > len(proposals)
    by_class = areas[:, -1] if with_classes else part
    # classes are one proposal more, and nobody's own; a net that has learnt them sees them best
    judged = np.column_stack([own, np.zeros(len(keys), dtype=bool)]) if with_classes else own
    scores = {key: (float(by_class[i]), float(part[i])) for i, key in enumerate(keys)}
    by_proposal = {
        key: dict(zip(proposals, row.tolist(), strict=True))
        for key, row in zip(keys, by_part, strict=True)
    }
    mean = dict(zip(keys, fair_means(areas, judged).tolist(), strict=True))
    best = max(mean.values())
    name = next(key[0] for key in mean if mean[key] >= best - TIE)
    row = keys.index((name, True))
    # a single judge may care for lengths only, such as clusters of a net's confidence
    unit = bool(np.median(areas[row] - areas[row - 1]) >= -UNIT_TIE)
    return RepresentationChoice(name, replace(base, unit_norm=unit), scores, by_proposal, mean)


def fair_means(area: NDArray[np.float64], own: NDArray[np.bool_]) -> NDArray[np.float64]:
    r"""Mean of each row over all columns, as if it had no column of its own.

    Columns differ in how hard they are, so that leaving out one each would compare answers to
    different questions. The model

    .. math:: A_{ij} = r_i + c_j

    is fitted by least squares to the entries that are not a row's own, which compares any two rows
    by the columns of third ones; returned is :math:`r_i + \bar c`. With fewer than three kinds of
    column there are no third ones, and all entries count.

    Parameters
    ----------
    area : array of shape (k, p)
    own : bool array of shape (k, p)
    """
    k, p = area.shape
    used = ~own if p > 2 else np.ones_like(own)
    row, column = np.nonzero(used)
    design = np.zeros((len(row), k + p))
    design[np.arange(len(row)), row] = 1.0
    design[np.arange(len(row)), k + column] = 1.0
    effect = np.linalg.lstsq(design, area[used], rcond=None)[0]  # up to a constant that cancels
    return np.asarray(effect[:k] + effect[k:].mean())


def _trusted(
    kept: Mapping[str, Tensor], label: NDArray[np.int64], generator: np.random.Generator
) -> bool:
    """Whether neighbours know more of labels than chance in any of the representations.

    Hiding the holders of a noisy label hides a random part of training, which no features find;
    what differs then between features is how well they remember the noise. Hard classes are
    another matter: neighbours often miss them, and still far less than chance would.
    """
    codes = {name: torch.as_tensor(label, device=z.device) for name, z in kept.items()}
    agreement = [neighbour_agreement(z, codes[name], generator) for name, z in kept.items()]
    share = np.bincount(label) / len(label)
    chance = float(np.square(share).sum())
    if chance == 1:
        return True
    return (max(agreement) - chance) / (1 - chance) >= BEYOND_CHANCE


def _some_groups(group: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Codes 0, 1, ... for at most so many groups, evenly chosen, and one more for the rest."""
    value, code = np.unique(group, return_inverse=True)
    chosen = np.linspace(0, len(value) - 1, min(most, len(value))).round().astype(np.int64)
    new = np.full(len(value), REST)
    new[chosen] = np.arange(len(chosen))
    return new[code.reshape(-1)]


def voted_labels(kept: Mapping[str, Tensor], label: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class that most neighbours of a row have, over all representations, (n,).

    A row has no vote of its own: that is the one label that may be flipped.
    """
    n = len(label)
    votes = np.zeros((n, int(label.max()) + 1))
    for z in kept.values():
        direction = unit_norm(z)
        index = nearest(direction, direction, min(VOTERS + 1, n))[1].cpu().numpy()
        others = index != np.arange(n)[:, None]  # a copy may stand in for the row itself
        for column, counts in zip(index.T, others.T, strict=True):
            np.add.at(votes, (np.arange(n), label[column]), counts)
    return np.asarray(votes.argmax(axis=1))


def _parts(z: Tensor, generator: np.random.Generator) -> NDArray[np.int64]:
    """Clusters of directions, at least two, (n,)."""
    z = unit_norm(z)
    part = cluster(z, min(CLUSTERS, len(z) // ROWS_PER_CLUSTER), generator)
    if int(part.max()) == 0:
        part = cluster(z, 2, generator)
    return part.cpu().numpy()
