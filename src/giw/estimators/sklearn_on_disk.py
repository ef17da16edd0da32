"""scikit-learn estimators as bytes and back, by skops: no pickle, unknown types refused."""

from __future__ import annotations

from typing import Any

import numpy as np

# Trees keep their nodes in compiled classes. skops refuses them by itself, because nodes
# that point outside their array would be followed; here every node is checked after loading.
TREES = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)
DTYPE = "numpy.dtype"  # that of an imputer, kept as that of an empty array


def to_skops(estimator: Any, name: str) -> bytes:
    """The estimator as bytes; one that could not be read back is refused now, not later."""
    skops = _skops()
    content: bytes = skops.dumps(estimator)
    _check_types(skops, content, name)
    return content


def from_skops(content: bytes, name: str) -> Any:
    """The estimator from bytes; types other than scikit-learn's and numpy's are refused."""
    skops = _skops()
    try:
        unknown = _check_types(skops, content, name)
        estimator = skops.loads(content, trusted=unknown)
        _check_trees(estimator, name)
    except Exception as error:  # whatever a damaged file makes of it
        if isinstance(error, ValueError) and name in str(error):
            raise
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} cannot be read as a skops file: {said}") from error
    return estimator


def _check_types(skops: Any, content: bytes, name: str) -> list[str]:
    unknown: list[str] = skops.get_untrusted_types(data=content)
    strange = sorted(set(unknown) - {*TREES, DTYPE})
    if strange:
        raise ValueError(
            f"{name} holds types that are neither scikit-learn's nor numpy's and are refused: "
            f"{', '.join(strange)}"
        )
    return unknown


def _check_trees(root: Any, name: str) -> None:
    """Every node of every tree points to nodes that come after it and to existing features."""
    width = getattr(root, "n_features_in_", None)
    for tree in _trees_in(root, set()):
        if hasattr(tree, "children_left"):  # sklearn.tree
            left, right, feature = tree.children_left, tree.children_right, tree.feature
            leaf = left == -1
            most = tree.n_features
        else:
            nodes = tree.nodes
            left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
            leaf, feature = nodes["is_leaf"].astype(bool), nodes["feature_idx"]
            most = width if width is not None else np.iinfo(np.int32).max
            if np.any(nodes["is_categorical"]):  # they point into further arrays
                raise ValueError(f"{name} splits on categories, which is not read; encode first")
        place = np.arange(len(left))
        inner = ~leaf
        sound = (
            len(left) > 0
            and np.all((left > place)[inner] & (right > place)[inner])
            and np.all((left < len(left))[inner] & (right < len(left))[inner])
            and np.all((feature >= 0)[inner] & (feature < most)[inner])
        )
        if not sound:
            raise ValueError(f"{name} holds a tree whose nodes point outside it: refused")


def _trees_in(value: Any, seen: set[int]) -> list[Any]:
    """All trees that can be reached from an estimator."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | None):
        return []
    seen.add(id(value))
    if f"{type(value).__module__}.{type(value).__name__}" in TREES:
        return [value]
    if isinstance(value, np.ndarray):
        inner = list(value.flat) if value.dtype == object else []
    elif isinstance(value, list | tuple):
        inner = list(value)
    elif isinstance(value, dict):
        inner = list(value.values())
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    return [tree for item in inner for tree in _trees_in(item, seen)]


def _skops() -> Any:
    import skops.io

    return skops.io
