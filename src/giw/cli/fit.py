"""``giw fit``."""

from __future__ import annotations

import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.messages import (
    AsJson,
    Quiet,
    Seed,
    check_writable,
    err_console,
    heard_warnings,
    one_line_errors,
    say_json,
    say_notes,
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


def fit(
    train: Annotated[Path, typer.Argument(help="Training data: csv, parquet or npz.")],
    val: Annotated[
        Path, typer.Option("--val", help="Validation data, from where the model will be used.")
    ],
    label: Annotated[str, typer.Option("--label", "-l", help="Column that holds the label.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")],
    model: Annotated[
        Model,
        typer.Option(help="net: a small neural net; boosting: boosted trees; logistic: linear."),
    ] = Model.boosting,
    method: Annotated[
        str | None,
        typer.Option(
            help="How a net learns: giw_plus if left out, or any of giw.nets.methods.METHODS."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of a net.")] = 50,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers that are names, such as postal codes; repeatable."),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier for the distribution of the validation data, and save it.

    Training rows that look like validation rows get weight; validation rows outside the training
    data join training (generalized importance weighting). Text becomes one feature per category,
    a category that training never had is a value of its own, missing numbers are filled with the
    median and marked. The same encoding is saved with the model and used by giw predict.

    Validation rows are learned from: judge the model on other rows.

    Example:

        giw fit train.csv --val new.csv --label y -o model/

        giw predict model/ more.csv -o predictions.csv

    A net can be trained by several processes, on one machine or on several that all have the files;
    each computes a share of every batch, the first one writes the model, and it is the model that
    one process would have written, up to rounding:

        torchrun --nproc-per-node 2 -m giw fit train.csv --val new.csv -l y --model net -o model/

    While a net is trained, its state is kept beside the folder, as OUT.unfinished: killed or
    stopped by Ctrl-C, the same command goes on from there and ends with the same model. A model
    that is already in the folder stays whole until the new one takes its place.

    Exit code 0 when the model is saved, 1 if the work failed, 2 for a mistake in the input, 130
    after Ctrl-C.
    """
    way_on = f"run the same command again to go on; {out} is as it was"
    with one_line_errors("giw fit", way_on), torchrun_processes() as (rank, processes):
        if processes > 1 and model is not Model.net:
            raise ValueError(
                f"{processes} processes can share the training of a net only; add --model net, or "
                f"fit {model} in one process"
            )
        quiet = quiet or rank > 0  # one of them speaks and writes
        as_json = as_json and rank == 0
        if model is not Model.net and method not in (None, "giw"):
            raise ValueError(f"--method {method} is for nets; add --model net, or leave it out")
        check_writable(out, "name another folder with --out")
        from giw.estimators.saving import save
        from giw.tables import Encoder, read_table

        tables = [read_table(path) for path in (train, val)]
        y, y_val = _labels(tables, label, model)
        x_table, x_val_table = (table.without(label) for table in tables)
        encoder = Encoder(categorical=categorical or ()).fit(x_table, x_val_table)
        X, X_val = encoder.transform(x_table), encoder.transform(x_val_table)
        estimator = _estimator(
            model,
            method or "giw_plus",
            epochs,
            seed,
            verbose=not (quiet or as_json),
            distributed=processes > 1,
        )
        unfinished = out.absolute().with_name(f"{out.absolute().name}.unfinished")
        started = time.perf_counter()
        with heard_warnings() as warned:
            if model is Model.net:
                _fit_net(estimator, X, y, X_val, y_val, unfinished)
            elif quiet or as_json:
                estimator.fit(X, y, X_val=X_val, y_val=y_val)
            else:
                with err_console().status(f"fitting {model} to {len(y):,} rows"):
                    estimator.fit(X, y, X_val=X_val, y_val=y_val)
        seconds = time.perf_counter() - started
        table_notes = [note for table in tables for note in table.notes]
        notes = [*table_notes, *encoder.notes_, *warned]
        if y_val is None:
            notes.append(
                f"{val} has no column {label!r}: training rows were weighted by features alone, "
                "and rows outside the training data cannot join training without a label"
            )
        if rank == 0:
            save(
                estimator,
                out,
                notes={"table": encoder.to_dict(), "label": label, "model": str(model)},
            )
            unfinished.unlink(missing_ok=True)
        say_notes(notes, quiet=quiet or as_json)
        joined = y_val is not None
        _say_result(estimator, out, len(y), len(X_val), joined, seconds, notes, as_json, quiet)


def _fit_net(estimator: Any, X: Any, y: Any, X_val: Any, y_val: Any, unfinished: Path) -> None:
    """Go on from an unfinished run of the same command; one of another command is discarded."""
    from giw.nets.training import UnusableCheckpoint

    try:
        estimator.fit(X, y, X_val=X_val, y_val=y_val, checkpoint=unfinished)
    except UnusableCheckpoint:
        unfinished.unlink(missing_ok=True)  # by the first of several processes that hear of it
        warnings.warn(
            f"{unfinished} was left by another command or is damaged: started afresh", stacklevel=2
        )
        estimator.fit(X, y, X_val=X_val, y_val=y_val, checkpoint=unfinished)


def _labels(
    tables: list[Table], label: str, model: Model
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    y = tables[0].labels(label)
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


def _estimator(
    model: Model, method: str, epochs: int, seed: int, *, verbose: bool, distributed: bool
) -> Any:
    import giw

    if model is Model.net:
        return giw.GIWClassifier(
            method=method,
            max_epochs=epochs,
            random_state=seed,
            distributed=distributed,
            verbose=verbose,
        )
    if model is Model.boosting:
        from sklearn.ensemble import HistGradientBoostingClassifier

        inner: Any = HistGradientBoostingClassifier(random_state=seed)
    else:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return giw.ReweightedClassifier(inner, random_state=seed)


def _say_result(
    estimator: Any,
    out: Path,
    n: int,
    m: int,
    joined: bool,
    seconds: float,
    notes: list[str],
    as_json: bool,
    quiet: bool,
) -> None:
    alpha = estimator.alpha_
    if as_json:
        say_json(
            {
                "model": str(out),
                "training_rows": n,
                "validation_rows": m,
                "classes": [str(value) for value in estimator.classes_.tolist()],
                "inside_share": None if alpha is None else float(alpha),
                "seconds": round(seconds, 3),
                "notes": notes,
            }
        )
    elif not quiet:
        inside = (
            ""
            if alpha is None
            else (
                f" {100 * alpha:.0f} % of the validation rows count as inside the training data, "
                + ("the others joined training." if joined else "the others taught nothing.")
            )
        )
        typer.echo(
            f"Learned from {n:,} training and {m:,} validation rows in {seconds:.0f} s.{inside}"
        )
        typer.echo(f"Saved to {out}. Next: giw predict {out} DATA -o predictions.csv")
