"""``giw fit``: train a classifier on two tables and save it."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from giw.cli.common import (
    AsJson,
    Quiet,
    Seed,
    Told,
    Train,
    Val,
    check_writable,
    err_console,
    option,
)
from giw.cli.torchrun import torchrun_processes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from giw.tables import Table


class Model(StrEnum):
    """What learns."""

    net = "net"
    boosting = "boosting"
    logistic = "logistic"


KINDS = "net: a small neural net; boosting: boosted trees; logistic: linear."
METHOD = "How a net learns: giw_plus if left out, giw, diw, pooled, val_only, train_only, …"
NAMES = "A column of numbers that are names, such as postal codes; repeatable."
DROP = "A column to leave out, such as one that names rows; repeatable."


def fit(
    train: Train,
    val: Val,
    label: Annotated[str, option("--label", "-l", help="Column that holds the label.")],
    out: Annotated[Path, option("--out", "-o", help="Folder for the model.")],
    model: Annotated[Model, option("--model", help=KINDS, metavar="NAME")] = Model.boosting,
    method: Annotated[str | None, option("--method", help=METHOD)] = None,
    epochs: Annotated[int, option("--epochs", help="Epochs of a net.", min=1)] = 50,
    categorical: Annotated[list[str] | None, option("--categorical", help=NAMES)] = None,
    drop: Annotated[list[str] | None, option("--drop", help=DROP)] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told | None:
    """Train a classifier for the distribution of the validation data, and save it.

    Training rows that look like validation rows get weight; validation rows outside the training
    data join training (generalized importance weighting). Text becomes one feature per category,
    a category that training never had is a value of its own, missing numbers are filled with the
    median and marked. The same encoding is saved with the model and used by giw predict.

    Validation rows are learned from: judge the model on other rows.

    Example:

        giw fit train.csv new.csv --label y -o model/

        giw predict model/ more.csv -o predictions.csv

    A net can be trained by several processes, on one machine or on several that all have the files;
    each computes a share of every batch, the first one writes the model, and it is the model that
    one process would have written, up to rounding:

        torchrun --nproc-per-node 2 -m giw fit a.csv b.csv -l y --model net -o m/

    While a net is trained, its state is kept beside the folder, as OUT.unfinished: killed or
    stopped by Ctrl-C, the same command goes on from there and ends with the same model. A model
    that is already in the folder stays whole until the new one takes its place.

    Exit code 0 when the model is saved, 1 if the work failed, 2 for a mistake in the input, 130
    after Ctrl-C.
    """
    check_writable(out, "--out")
    if model is not Model.net and method not in (None, "giw"):
        raise ValueError(f"--method {method} is for nets; add --model net, or leave it out")
    with torchrun_processes() as (rank, processes):
        if processes > 1 and model is not Model.net:
            raise ValueError(
                f"{processes} processes can share the training of a net only; add --model net, or "
                f"fit {model} in one process"
            )
        silent = quiet or as_json or rank > 0  # one of several processes speaks and writes
        from giw.estimators.limits import Reference
        from giw.estimators.saving import save
        from giw.judging.gain import gained
        from giw.tables import Encoder, read_table

        tables = [read_table(path) for path in (train, val)]
        for name in drop or ():
            if not any(name in table.columns for table in tables):
                raise ValueError(f"{train} and {val} have no column {name!r} to --drop")
            tables = [table.without(name) for table in tables]
        y, y_val = _labels(tables, label, model)
        x_table, x_val_table = (table.without(label) for table in tables)
        encoder = Encoder(categorical=categorical or ()).fit(x_table, x_val_table)
        data = encoder.transform(x_table), y, encoder.transform(x_val_table), y_val
        unfinished = out.absolute().with_name(f"{out.absolute().name}.unfinished")
        started = time.perf_counter()
        if model is Model.net:
            estimator = _fit_net(
                data, unfinished, method=method or "giw_plus", max_epochs=epochs,
                random_state=seed, distributed=processes > 1, verbose=not silent,
            )  # fmt: skip
        else:
            with err_console(silent).status(f"fitting {model} to {len(y):,} rows"):
                estimator = _fit_tables(data, model, seed)
        seconds = time.perf_counter() - started
        if rank > 0:
            return None
        estimator.reference_ = Reference.of(x_table, x_val_table, categorical=categorical or ())
        made_by = {"table": encoder.to_dict(), "label": label, "model": str(model)}
        save(estimator, out, notes=made_by)
        unfinished.unlink(missing_ok=True)
    notes = [*(note for table in tables for note in table.notes), *encoder.notes_]
    if y_val is None:
        notes.append(
            f"{val} has no column {label!r}: training rows were weighted by features alone, "
            "and rows outside the training data cannot join training without a label"
        )
    alpha, gain = estimator.alpha_, gained(estimator)
    values = {
        "model": str(out),
        "training_rows": len(y),
        "validation_rows": len(data[2]),
        "classes": [str(value) for value in estimator.classes_.tolist()],
        "inside_share": None if alpha is None else float(alpha),
        "seconds": round(seconds, 3),
        "left_out": gain and asdict(gain),
        "notes": [],
    }
    words = (
        f"Learned from {len(y):,} training and {len(data[2]):,} validation rows in "
        f"{seconds:.0f} s.{_inside(alpha, joined=y_val is not None)}\n"
        f"Saved to {out}. Next:\n  giw predict {out} DATA -o predictions.csv"
        + (f"\n{gain.summary()}" if gain else "")
    )
    return Told(values, words, notes=notes)


def _labels(
    tables: list[Table], label: str, model: Model
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    y = tables[0].labels(label)
    if y.dtype.kind == "f":
        raise ValueError(
            f"column {label!r} of {tables[0].source} holds measured numbers, and giw fit trains "
            "classifiers; for numbers use giw.ReweightedRegressor in Python"
        )
    if label not in tables[1].columns and model is not Model.net:
        return y, None
    y_val = tables[1].labels(label)
    if (y.dtype.kind == "U") != (y_val.dtype.kind == "U"):
        raise ValueError(
            f"column {label!r} holds {_kind(y)} in {tables[0].source} and {_kind(y_val)} in "
            f"{tables[1].source}; the same class needs the same label in both"
        )
    return y, y_val


def _kind(labels: NDArray[Any]) -> str:
    return f"text such as {str(labels[0])!r}" if labels.dtype.kind == "U" else "numbers"


def _fit_net(data: tuple[Any, ...], unfinished: Path, **settings: Any) -> Any:
    """Go on from an unfinished run of the same command; one of another command is discarded."""
    import giw
    from giw.nets.training import UnusableCheckpoint

    X, y, X_val, y_val = data
    net = giw.GIWClassifier(**settings)
    try:
        return net.fit(X, y, X_val=X_val, y_val=y_val, checkpoint=unfinished)
    except UnusableCheckpoint:
        unfinished.unlink(missing_ok=True)  # by the first of several processes that hear of it
        warnings.warn(
            f"{unfinished} was left by another command or is damaged: started afresh", stacklevel=2
        )
        return net.fit(X, y, X_val=X_val, y_val=y_val, checkpoint=unfinished)


def _fit_tables(data: tuple[Any, ...], model: Model, seed: int) -> Any:
    import giw

    if model is Model.boosting:
        from sklearn.ensemble import HistGradientBoostingClassifier

        inner: Any = HistGradientBoostingClassifier(random_state=seed)
    else:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    X, y, X_val, y_val = data
    return giw.ReweightedClassifier(inner, random_state=seed).fit(X, y, X_val=X_val, y_val=y_val)


def _inside(alpha: float | None, *, joined: bool) -> str:
    if alpha is None:
        return ""
    if alpha == 1:
        return " All validation rows count as inside the training data."
    others = "the others joined training" if joined else "the others taught nothing"
    share = f"{100 * alpha:.0f} % of the validation rows count as inside the training data"
    return f" {share}, {others}."
