"""Estimators as bytes and back, by skops: no pickle, types that are not named here refused.

Trees keep their nodes in compiled classes. skops refuses them by itself, because nodes that point
outside their array would be followed; here every node is checked.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.lib import format as npy

TREE = "sklearn.tree._tree.Tree"
BOOSTED_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
OTHERS = {
    "numpy.dtype",  # that of an imputer, kept as that of an empty array
    "sklearn.utils._bunch.Bunch",  # a mapping, of members of an ensemble by their names
}
OURS = {
    "giw.estimators": "candidates.Mapped limits.Reference reweighted.ReweightedClassifier "
    "reweighted.ReweightedRegressor stack.LeftOut stack.Mixture",
    "giw.nets": "classifier.GIWClassifier saving.Held",
    "giw.support": "scores.KNN split.SupportSplit splitter.SupportSplitter",
    "giw.tables": "encoder.CategoryColumn encoder.Encoder encoder.NumberColumn",
    "giw.weights": "kmm.KMM least_squares.LSIF least_squares.RULSIF least_squares.ULSIF "
    "log_linear.ClassifierRatio log_linear.KLIEP",
}
KNOWN = {TREE, BOOSTED_TREE, *OTHERS}
KNOWN |= {f"{room}.{name}" for room, names in OURS.items() for name in names.split()}


def to_skops(estimator: Any, name: str) -> bytes:
    """The estimator as bytes; one that could not be read back is refused now, not later."""
    import skops.io

    try:
        content = _numbered(skops.io.dumps(estimator))
    except Exception as error:  # in any way that foreign objects may fail
        raise ValueError(
            f"{name} cannot be saved without pickle: {' '.join(str(error).split())[:200]}"
        ) from error
    _check_types(content, name)
    _check_trees(estimator, name)
    return content


def _numbered(content: bytes) -> bytes:
    """The same with objects in the order of their numbers and no times: equal estimators are equal.

    skops numbers them by where they lie in memory.
    """
    numbers: dict[int, int] = {}
    files: dict[str, str] = {}

    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        for key, value in node.items():
            if key == "__id__" and isinstance(value, int):
                node[key] = numbers.setdefault(value, len(numbers) + 1)
            elif key == "file" and isinstance(value, str):
                node[key] = files.setdefault(value, f"{len(files)}{PurePath(value).suffix}")
        return node

    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(made := BytesIO(), "w") as new:
        schema = json.loads(old.read("schema.json"), object_hook=renamed)
        for name, number in files.items():
            new.writestr(zipfile.ZipInfo(number), old.read(name))
        new.writestr(zipfile.ZipInfo("schema.json"), json.dumps(schema))
    return made.getvalue()


def from_skops(content: bytes, name: str) -> Any:
    """The estimator from bytes; types that are not known are refused."""
    import skops.io

    try:
        _check_sizes(content)
        estimator = skops.io.loads(content, trusted=_check_types(content, name))
        _check_trees(estimator, name)
    except ImportError:  # of torch
        raise
    except Exception as error:  # whatever a damaged file makes of it
        if isinstance(error, ValueError) and name in str(error):
            raise
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} cannot be read as a skops file: {said}") from error
    return estimator


def _check_sizes(content: bytes) -> None:
    """Only bytes that are there take memory, whatever headers claim."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"its part {member.filename!r} is compressed")
            if member.filename.endswith(".npy"):
                stream = BytesIO(archive.read(member))
                old = npy.read_magic(stream) == (1, 0)
                header = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
                shape, _, dtype = header(stream)
                if prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"an array claims shape {shape}, more than its bytes")


def _check_types(content: bytes, name: str) -> list[str]:
    import skops.io

    unknown: list[str] = skops.io.get_untrusted_types(data=content)
    if strange := sorted(set(unknown) - KNOWN):
        raise ValueError(
            f"{name} holds types that are neither giw's, scikit-learn's nor numpy's and are "
            f"refused: {', '.join(strange)}"
        )
    return unknown


def _check_trees(root: Any, name: str) -> None:
    """Every node of every tree points to nodes that come after it and to existing features."""
    for tree, width, owner in _trees_in(root):
        if hasattr(tree, "children_left"):  # sklearn.tree
            left, right, feature = tree.children_left, tree.children_right, tree.feature
            leaf = left == -1
        else:
            nodes = tree.nodes
            left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
            leaf, feature = nodes["is_leaf"].astype(bool), nodes["feature_idx"]
            if np.any(nodes["is_categorical"]):  # they point into further arrays
                raise ValueError(f"{name} splits on categories, which is not read; encode first")
            if "HistGradientBoosting" not in owner:
                raise ValueError(f"{name} holds a tree that belongs to no estimator: refused")
        place, inner = np.arange(len(left)), ~leaf
        sound = (
            len(left) > 0
            and np.all((left > place)[inner] & (right > place)[inner])
            and np.all((left < len(left))[inner] & (right < len(left))[inner])
            and np.all((feature >= 0)[inner] & (feature < width)[inner])
        )
        if not sound:
            raise ValueError(f"{name} holds a tree whose nodes point outside it: refused")


def _trees_in(root: Any) -> Iterator[tuple[Any, int, str]]:
    """All trees that can be reached, with the features and the class of the estimators they are of.

    Members of an ensemble of trees see no more features than it checks. A pipeline or any other
    estimator may make more of those that it sees.
    """
    seen: set[tuple[int, int]] = set()
    held: list[tuple[Any, int, str]] = [(root, 0, "")]
    while held:
        value, width, owner = held.pop()
        if isinstance(value, str | bytes | int | float | None) or (id(value), width) in seen:
            continue
        kind = f"{type(value).__module__}.{type(value).__name__}"
        if kind in (TREE, BOOSTED_TREE):
            yield value, width, owner
            continue
        seen.add((id(value), width))
        if isinstance(value, np.ndarray):
            inner: Any = value.flat if value.dtype == object else ()
        elif isinstance(value, list | tuple):
            inner = value
        elif isinstance(value, dict):
            inner = value.values()
        else:
            state, owner = getattr(value, "__dict__", {}), type(value).__name__
            own = int(state.get("n_features_in_", width))
            of_trees = kind.startswith(("sklearn.tree.", "sklearn.ensemble."))
            width = min(own, width or own) if of_trees else 0
            inner = state.values()
        held += [(item, width, owner) for item in inner]
