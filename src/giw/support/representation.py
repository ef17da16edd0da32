"""Which features tell inside from outside? Ask training: hide a part of it from the rest.

How well *validation* data separate must not decide, or the choice would find differences where
there are none. Training data alone can tell: hide a class, or a part of one, from the others and
see which features find it strange. Parts matter more than they seem to: a net that learned the
classes separates them in its last layers by construction, and forgets there what else it saw.
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
from giw.support.cells import AGREEMENT, cells_within, cluster, neighbour_agreement
from giw.support.hiding import hidden_aurocs
from giw.support.scorers import KNN

MOST_ROWS = 3_000
TIE = 0.01  # of AUROC: less than hiding eight groups can tell apart


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
        (name, unit_norm) → (AUROC when classes are hidden, AUROC when parts of classes are).
    """

    name: str
    scorer: KNN
    scores: dict[tuple[str, bool], tuple[float, float]]

    def summary(self) -> str:
        """The candidates, best first, and the rule that chose."""
        norm = {True: "unit norm", False: "as it is"}
        ranked = sorted(self.scores.items(), key=lambda item: -float(np.mean(item[1])))
        rows = [
            f"  {name:<16} {norm[unit]:<10} {by_class:.3f}  {by_part:.3f}  "
            f"{(by_class + by_part) / 2:.3f}" + "  <- chosen" * ((name, unit) == self._key)
            for (name, unit), (by_class, by_part) in ranked
        ]
        return "\n".join(
            [
                "AUROC with a part of training hidden from the rest (no validation data involved)",
                f"  {'features':<16} {'scale':<10} class  part   mean",
                *rows,
                f"the first of those within {TIE:g} of the best: earlier features forget less",
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
        Labels; without them, or where neighbours disagree on them, only clusters are hidden.
    scorer : KNN, optional
        Neighbour scorer to try the features with; unit norm is tried with and without.
    random_state : int, numpy generator or None

    Notes
    -----
    Parts of classes are clusters of the first representation, which knows nothing of the net.
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
    first = next(iter(kept.values()))
    if not _trusted(kept, label, generator):
        label = np.zeros_like(label)
    part = _parts(first, label, generator)
    if len(np.unique(part)) < 2:
        raise ValueError(
            f"nothing to hide among {n} rows of one class and one cluster; "
            "choose the representation yourself"
        )
    base = KNN() if scorer is None else scorer
    seed = int(generator.integers(2**31))
    groupings = [part, label] if len(np.unique(label)) > 1 else [part]
    scores: dict[tuple[str, bool], tuple[float, float]] = {}
    for name, z in kept.items():
        for unit in (False, True):
            trial = replace(base, unit_norm=unit)
            areas = hidden_aurocs(z, groupings, trial, random_state=seed)
            scores[name, unit] = (areas[-1], areas[0])
    mean = {key: float(np.mean(value)) for key, value in scores.items()}
    best = max(mean.values())
    name = next(key[0] for key in mean if mean[key] >= best - TIE)
    unit = mean[name, True] >= mean[name, False]
    return RepresentationChoice(name, replace(base, unit_norm=unit), scores)


def _trusted(
    kept: Mapping[str, Tensor], label: NDArray[np.int64], generator: np.random.Generator
) -> bool:
    """Whether neighbours agree on labels in any of the representations.

    Hiding the holders of a noisy label hides a random part of training, which no features find;
    what differs then between features is how well they remember the noise.
    """
    codes = {name: torch.as_tensor(label, device=z.device) for name, z in kept.items()}
    agreement = [neighbour_agreement(z, codes[name], generator) for name, z in kept.items()]
    return max(agreement) >= AGREEMENT


def _parts(
    z: Tensor, label: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Clusters within each class, at least two where there is only one, (n,)."""
    code = torch.as_tensor(label, device=z.device)
    part = cells_within(z, code, calibration_rows=len(z), generator=generator)
    if int(part.max()) == 0:
        part = cluster(z, 2, generator)
    return part.cpu().numpy()
