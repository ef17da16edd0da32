"""``giw predict``: label the rows of a file with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.common import AsJson, Quiet, check_writable, option, say, say_notes
from giw.writing import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = (".csv", ".parquet", ".npz")
OUT = "File for the predictions: .csv, .parquet or .npz."


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder that giw fit has written.")
    ],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Rows to predict: csv, parquet or npz.")
    ],
    out: Annotated[Path, option("--out", "-o", help=OUT)],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every row with a model that giw fit has saved.

    Writes one row per row of DATA, in its order: the prediction, and the probability of each
    class. Columns are found by name; columns that the model does not know are ignored. If DATA
    has the label, the accuracy over the rows that have one is shown too.

    Example:

        giw predict model/ more.csv -o predictions.csv

    Exit code 0 when the predictions are written, 1 if the work failed, 2 for a mistake in the
    input.
    """
    if out.suffix not in ENDINGS:
        raise ValueError(f"--out must end in one of {', '.join(ENDINGS)}, got {out}")
    check_writable(out, "name a file with --out", a_file=True)
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
    probability = estimator.predict_proba(X)  # (n, c)
    prediction = estimator.classes_[probability.argmax(axis=1)]
    label = notes["label"]
    accuracy = None
    if label in table.columns:
        known = ~missing_in(table.columns[label])  # rows to be labelled have none yet
        if known.any():
            truth = Table({label: table.columns[label][known]}).labels(label)
            accuracy = float((truth.astype(str) == prediction[known].astype(str)).mean())
    write_predictions(out, prediction, probability, estimator.classes_)
    say_notes(table.notes, quiet=quiet or as_json)
    right = "" if accuracy is None else f" {100 * accuracy:.1f} % match column {label!r}."
    say(
        {"predictions": str(out), "rows": len(prediction), "accuracy": accuracy},
        f"{len(prediction):,} predictions in {out}.{right}",
        as_json=as_json,
        quiet=quiet,
    )


def write_predictions(
    out: Path, prediction: NDArray[Any], probability: NDArray[Any], classes: NDArray[Any]
) -> None:
    """One row per prediction; the file appears whole or not at all."""
    import numpy as np

    names = [f"probability of {value}" for value in classes.tolist()]
    with whole_file(out) as file:
        if out.suffix == ".npz":
            words = classes.astype(str) if classes.dtype == object else classes
            said = prediction.astype(str) if prediction.dtype == object else prediction
            np.savez(file, prediction=said, probability=probability, classes=words)
            return
        import pandas as pd

        frame = pd.DataFrame({"prediction": prediction})
        frame[names] = probability
        if out.suffix == ".csv":
            frame.to_csv(file, index=False, mode="wb")
        else:
            frame.to_parquet(file)
