"""The recommendation as Python that runs on the table diagnosed."""

from __future__ import annotations

from collections.abc import Sequence

TEXT = """\
from sklearn.compose import (
    make_column_transformer,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
)

text = {text!r}
one_hot = OneHotEncoder(
    handle_unknown="ignore",
    sparse_output=False,
)
encoder = make_column_transformer(
    (one_hot, text),
    remainder="passthrough",
)
model = make_pipeline(encoder, model)
"""
CLASS_WEIGHTS = """\
new = pd.Series(y_val).value_counts(
    normalize=True
)
old = pd.Series(y).value_counts(
    normalize=True
)
weight = pd.Series(y).map(new / old)
model.fit(
    X, y, {keyword}=weight.fillna(0)
)
"""
REWEIGHTED = """\
model = giw.ReweightedClassifier(model)
model.fit({arguments})
"""


def python_code(
    remedy: str, text: Sequence[str | int], *, labels: bool, val_labels: bool, frame: bool
) -> str:
    """Lines that train as advised, with boosted trees and an encoder where there is text.

    Parameters
    ----------
    remedy : str
        Of :class:`Recommendation`.
    text : sequence of str or int
        Names of the columns that hold text, positions of an array.
    labels, val_labels : bool
        Whether training and validation rows have them.
    frame : bool
        Whether the tables are data frames.
    """
    if not labels:
        return ""
    uses = ["giw"] if remedy in ("giw", "weighting") else []
    lines = [
        "from sklearn.ensemble import (",
        "    HistGradientBoostingClassifier,",
        ")",
        "",
        "model = HistGradientBoostingClassifier()",
    ]
    lines += TEXT.format(text=list(text)).splitlines() if len(text) else []
    if remedy == "class weights":
        uses = ["pandas as pd"]
        prefix = "histgradientboostingclassifier__" if len(text) else ""
        lines += CLASS_WEIGHTS.format(keyword=f"{prefix}sample_weight").splitlines()
    elif uses:
        arguments = "\n    X, y, X_val=X_val, y_val=y_val\n" if val_labels else "X, y, X_val=X_val"
        lines += REWEIGHTED.format(arguments=arguments).splitlines()
    elif val_labels:
        uses = ["numpy as np", *(["pandas as pd"] if frame else [])]
        rows = "pd.concat" if frame else "np.concatenate"
        lines += ["model.fit(", f"    {rows}([X, X_val]),", "    np.concatenate([y, y_val]),", ")"]
    else:
        lines += ["model.fit(X, y)"]
    return "\n".join([*(f"import {name}" for name in uses), *lines])
