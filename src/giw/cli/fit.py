"""``giw fit``: train a classifier on two tables and save it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from giw.cli.common import (
    STOPPED,
    AsJson,
    Label,
    Quiet,
    Seed,
    Told,
    Train,
    Val,
    check_writable,
    option,
    stderr,
)

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
    label: Label,
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
    is_net = model is Model.net
    if not is_net and method not in (None, "giw"):
        raise ValueError(f"--method {method} is for nets; add --model net, or leave it out")
    with torchrun_processes() as (rank, processes):
        if processes > 1 and not is_net:
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
        tables = [table.without(*drop or ()) for table in tables]
        y, y_val = _labels(tables, label, needed=is_net)
        sides = [table.without(label) for table in tables]
        encoder = Encoder(categorical=categorical or ()).fit(*sides)
        X, X_val = map(encoder.transform, sides)
        started = time.perf_counter()
        if is_net:
            import giw

            estimator: Any = giw.GIWClassifier(
                method=method or "giw_plus", max_epochs=epochs, random_state=seed,
                distributed=processes > 1, verbose=not silent,
            )  # fmt: skip
            _fit_net(estimator, out, X, y, X_val, y_val)
        else:
            estimator = _tables_model(model, seed)
            with stderr(silent).status(f"fitting {model} to {len(y):,} rows"):
                estimator.fit(X, y, X_val=X_val, y_val=y_val)
        seconds = time.perf_counter() - started
        if rank > 0:
            return None
        estimator.reference_ = Reference.of(*sides, categorical=categorical or ())
        made_by = {"table": encoder.to_dict(), "label": label, "model": str(model)}
        save(estimator, out, notes=made_by)
        unfinished(out).unlink(missing_ok=True)
    notes = [*(note for table in tables for note in table.notes), *encoder.notes_]
    others = "joined training"
    if y_val is None:
        others = "taught nothing"
        notes.append(
            f"{val} has no column {label!r}: training rows were weighted by features alone, "
            "and rows outside the training data cannot join training without a label"
        )
    alpha, gain = estimator.alpha_, gained(estimator)
    values = {
        "model": str(out),
        "training_rows": len(y),
        "validation_rows": len(X_val),
        "classes": [str(value) for value in estimator.classes_.tolist()],
        "inside_share": None if alpha is None else float(alpha),
        "seconds": round(seconds, 3),
        "left_out": gain and asdict(gain),
        "notes": [],
    }
    words = (
        f"Learned from {len(y):,} training and {len(X_val):,} validation rows in {seconds:.0f} s."
    )
    if alpha is not None:
        share = "All" if alpha == 1 else f"{100 * alpha:.0f} % of the"
        words += f" {share} validation rows count as inside the training data"
        words += "." if alpha == 1 else f", the others {others}."
    words += f"\nSaved to {out}. Next:\n  giw predict {out} DATA -o predictions.csv"
    return Told(values, words + (f"\n{gain.summary()}" if gain else ""), notes=notes)


def _labels(
    tables: list[Table], label: str, *, needed: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Labels of both tables, None where the second has no such column and none is needed."""
    y = tables[0].labels(label)
    if y.dtype.kind == "f":
        raise ValueError(
            f"column {label!r} of {tables[0].source} holds measured numbers, and giw fit trains "
            "classifiers; for numbers use giw.ReweightedRegressor in Python"
        )
    if label not in tables[1].columns and not needed:
        return y, None
    y_val = tables[1].labels(label)
    if (y.dtype.kind == "U") != (y_val.dtype.kind == "U"):
        raise ValueError(
            f"column {label!r} holds text in one table and numbers in the other: {y.item(0)!r} in "
            f"{tables[0].source}, {y_val.item(0)!r} in {tables[1].source}; the same class needs "
            "the same label in both"
        )
    return y, y_val


def unfinished(out: Path) -> Path:
    """Where the state of a net is kept while it is trained."""
    return out.absolute().with_name(f"{out.absolute().name}.unfinished")


def _fit_net(net: Any, out: Path, *data: Any) -> None:
    """Go on from an unfinished run of the same command; one of another command is discarded."""
    from giw.nets.training import UnusableCheckpoint

    path = unfinished(out)
    try:
        net.fit(*data, checkpoint=path)
    except UnusableCheckpoint:
        path.unlink(missing_ok=True)  # by the first of several processes that hear of it
        warnings.warn(
            f"{path} was left by another command or is damaged: started afresh", stacklevel=2
        )
        net.fit(*data, checkpoint=path)


def _tables_model(model: Model, seed: int) -> Any:
    import giw

    if model is Model.boosting:
        from sklearn.ensemble import HistGradientBoostingClassifier

        base: Any = HistGradientBoostingClassifier(random_state=seed)
    else:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        base = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return giw.ReweightedClassifier(base, random_state=seed)


@contextmanager
def torchrun_processes() -> Iterator[tuple[int, int]]:
    """Rank of this process and the number of processes; 0 and 1 unless torchrun started several.

    They form a group as long as the context lasts: over NCCL where each has a GPU of its own, over
    gloo otherwise.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    # other schedulers set WORLD_SIZE too, without saying where to meet
    if "TORCHELASTIC_RUN_ID" not in os.environ or processes == 1:
        yield 0, 1
        return
    import torch

    # Loaded after a group is made, as the first optimizer would, it keeps that group for ever:
    # gloo's threads are then alive when Python ends; one that holds a tensor aborts the process.
    import torch._dynamo
    import torch.distributed as dist

    local = int(os.environ.get("LOCAL_RANK", "0"))
    on_gpus = local < torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if on_gpus else "gloo")
    rank = dist.get_rank()
    try:
        yield rank, processes
    except KeyboardInterrupt:  # all have stopped together; the first one says so
        if rank > 0:
            raise SystemExit(STOPPED) from None
        raise
    else:
        with suppress(RuntimeError):  # a process that has failed says so itself
            dist.barrier()  # whoever leaves early may take the others with it
    finally:
        dist.destroy_process_group()
