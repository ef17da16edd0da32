"""``giw predict``: label the rows of a file with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.common import AsJson, Quiet, Told, check_writable, option
from giw.writing import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL, DATA = "Folder that giw fit has written.", "Rows to predict: csv, parquet or npz."
OUT = "File for the predictions: .csv, .parquet or .npz."
FLAG = "Mark rows unlike all training and validation rows, in column 'outside'."
SETS = "Add column 'set': labels of which one is right with the probability --level."
LEVEL = "How often a set holds the right label."


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL)],
    data: Annotated[Path, typer.Argument(metavar="DATA", help=DATA)],
    out: Annotated[Path, option("--out", "-o", help=OUT)],
    flag: Annotated[bool, option("--flag", help=FLAG)] = False,
    sets: Annotated[bool, option("--sets", help=SETS)] = False,
    level: Annotated[float, option("--level", help=LEVEL, metavar="SHARE")] = 0.9,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Predict the label of every row with a model that giw fit has saved.

    Writes one row per row of DATA, in its order: the prediction, and the probability of each
    class. Columns are found by name; columns that the model does not know are ignored. If DATA
    has the label, the accuracy over the rows that have one is shown too.

    What is predicted for a row that --flag marks is a guess: nothing like it was there to learn
    from. Sets of --sets hold their level on rows from where the validation data come from.

    Example:

        giw predict model/ more.csv -o predictions.csv --flag --sets

    Exit code 0 when the predictions are written, 1 if the work failed, 2 for a mistake in the
    input.
    """
    check_writable(out, "--out", ".csv", ".parquet", ".npz", read=[data])
    import numpy as np

    from giw.estimators.saving import load_with_notes
    from giw.tables import Encoder, Table, read_table
    from giw.tables.table import missing_in

    estimator, notes = load_with_notes(model)
    if "table" not in notes:
        raise ValueError(
            f"{model} was saved from Python and not by giw fit, so how its table was encoded "
            "is not known; use giw.load and predict in Python"
        )
    table = read_table(data)
    X = Encoder.from_dict(notes["table"]).transform(table)
    probability, classes = estimator.predict_proba(X), estimator.classes_  # (n, c), (c,)
    prediction = classes[probability.argmax(axis=1)]
    more: dict[str, Any] = {}
    if sets and not hasattr(estimator, "predict_set"):
        raise ValueError(
            "--sets needs left-out validation rows, and a net has none; fit with --model boosting "
            f"or --model logistic instead of {notes['model']}"
        )
    if sets:
        more["set"] = estimator.predict_set(X, level=level)
    if flag:
        more["outside"] = reference_of(estimator, model).outside(table)
    values: dict[str, Any] = {"predictions": str(out), "rows": len(prediction), "accuracy": None}
    words, told = [f"{len(prediction):,} predictions in {out}."], ""
    column = table.columns.get(notes["label"], np.full(1, np.nan))
    known = ~missing_in(column)  # rows to be labelled have none yet
    if known.any():
        truth = Table({"y": column[known]}).labels("y").astype(str)
        right = truth == prediction[known].astype(str)
        values["accuracy"] = float(right.mean())
        words.append(f"{100 * right.mean():.1f} % match column {notes['label']!r}.")
        if sets:
            held = (more["set"][known] & (truth[:, None] == classes.astype(str))).any(axis=1)
            values["coverage"] = float(held.mean())
            told = f"; {100 * held.mean():.1f} % hold the right one"
    if sets:
        values["set_size"] = float(more["set"].sum(axis=1).mean())
        words.append(f"Sets hold {values['set_size']:.2f} labels on average{told}.")
    if flag:
        values["outside"] = int(more["outside"].sum())
        words.append(f"{values['outside']:,} rows are unlike all training and validation rows.")
    write_predictions(out, prediction, probability, classes, more)
    return Told(values, " ".join(words), notes=table.notes)


def reference_of(estimator: Any, model: Path) -> Any:
    """The rows that a saved model keeps."""
    if getattr(estimator, "reference_", None) is None:
        raise ValueError(
            f"{model} keeps no rows to compare with: it saw no validation data; run giw fit again"
        )
    return estimator.reference_


def write_predictions(
    out: Path,
    prediction: NDArray[Any],  # (n,)
    probability: NDArray[Any],  # (n, c)
    classes: NDArray[Any],  # (c,)
    more: dict[str, Any],  # sets, (n, c), and flags, (n,)
) -> None:
    """One row per prediction; the file appears whole or not at all."""
    import numpy as np
    import pandas as pd

    with whole_file(out) as file:
        if out.suffix == ".npz":
            said, words = (v.astype(str) if v.dtype == object else v for v in (prediction, classes))
            np.savez(file, prediction=said, probability=probability, classes=words, **more)
            return
        frame = pd.DataFrame({"prediction": prediction})
        frame[[f"probability of {value}" for value in classes.tolist()]] = probability
        labels = classes.astype(str)
        for name, values in more.items():
            frame[name] = ["|".join(labels[row]) for row in values] if name == "set" else values
        if out.suffix == ".csv":
            frame.to_csv(file, index=False, mode="wb")
        else:
            frame.to_parquet(file)
