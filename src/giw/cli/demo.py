"""``giw demo``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from giw.nets.training import Method, OnEpoch, TrainingConfig, TrainingRecord


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for report.html, the figures and the table.")
    ] = Path("giw-demo"),
    trials: Annotated[
        int, typer.Option(min=1, help="How often to draw validation data and train anew.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws; trials get their own.")] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the table.")
    ] = False,
) -> None:
    """Compare GIW with its baselines on real handwritten digits, in about a minute.

    Training data hold the digits 0 to 3; test data have all ten. The task is odd against even.
    Twenty validation images, two of each digit, are drawn anew in every trial and are never
    training images. Six methods learn from the same draws and the same initial net:

    giw           weights training data, lets validation data outside their support join in

    giw_plus      the same, and draws what joined to training data of its class

    diw           weights training data to look like validation data

    pooled        half training loss, half validation loss

    pretrain_val  training data first, then validation data

    val_only      validation data alone

    The digits come with scikit-learn; nothing is downloaded.
    """
    console = Console()
    _check_writable(out)
    scores, seconds = _run_with_progress(trials, seed, console, quiet=quiet)
    _write_demo(scores, out, trials=trials, seed=seed, seconds=seconds, console=console)


@dataclass(frozen=True)
class Score:
    """One method in one trial of the demo."""

    record: TrainingRecord
    inside: NDArray[np.bool_]  # (m,) the truth about the validation points


TRAINING_DIGITS, PER_DIGIT, TEST_SHARE = 4, 2, 0.4


def demo_arrays(seed: int) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Digits 0 to 3 to train on, two of each digit to validate, 40 % of each digit to test.

    Returns x and y of the three parts, and which validation points show a digit of training.
    """
    import numpy as np
    from sklearn.datasets import load_digits

    bunch = load_digits()
    digit = bunch.target
    images = (bunch.images / 16.0).astype(np.float32)[:, None]  # (n, 1, 8, 8); 17 grey levels
    order = np.random.default_rng(seed).permutation(len(digit))
    parts: dict[str, list[NDArray[np.int64]]] = {"test": [], "val": [], "train": []}
    for d in range(10):
        rows = order[digit[order] == d]
        n_test = round(TEST_SHARE * len(rows))
        parts["test"].append(rows[:n_test])
        parts["val"].append(rows[n_test : n_test + PER_DIGIT])
        if d < TRAINING_DIGITS:
            parts["train"].append(rows[n_test + PER_DIGIT :])
    arrays: dict[str, NDArray[Any]] = {}
    for name, rows_by_digit in parts.items():
        rows = np.concatenate(rows_by_digit)
        rows = rows if name == "val" else np.sort(rows)
        arrays |= {f"x_{name}": images[rows], f"y_{name}": digit[rows] % 2}
    return arrays, np.repeat(np.arange(10) < TRAINING_DIGITS, PER_DIGIT)


def demo_methods() -> tuple[Method, ...]:
    """The six methods of the demo, those that split doing so on pixels."""
    from giw.nets.methods import DIW, GIW, GIWPlus, Pooled, PretrainVal, ValOnly

    own = GIWPlus(split_on="input"), GIW(split_on="input")
    return *own, DIW(), Pooled(), PretrainVal(), ValOnly()


def demo_config() -> TrainingConfig:
    """How all of them are trained."""
    from giw.nets.training import TrainingConfig

    return TrainingConfig(
        epochs=60, pretrain_epochs=10, batch_size=64, learning_rate=1e-3, weight_decay=5e-3
    )


def run_demo(
    *,
    trials: int = 5,
    random_state: int = 0,
    on_epoch: Callable[[int, str], OnEpoch] | None = None,
) -> list[Score]:
    """Train the six methods, with a new draw in each trial that all of them share."""
    import numpy as np
    import torch

    from giw.nets.models import model_for
    from giw.nets.training import Tensors, pretrain, train

    config, scores = demo_config(), []
    for trial in range(trials):
        sequence = np.random.SeedSequence(random_state, spawn_key=(trial,))
        draw, _, _, init, batches, *_ = (int(s.generate_state(1)[0]) for s in sequence.spawn(7))
        arrays, inside = demo_arrays(draw)
        data = Tensors(**{name: torch.as_tensor(part) for name, part in arrays.items()})
        net = model_for(arrays["x_train"].shape, 2, random_state=init)
        said = on_epoch(trial, "pretraining") if on_epoch else None
        start = pretrain(net, data, config, random_state=batches, on_epoch=said)
        for method in demo_methods():
            said = on_epoch(trial, method.name) if on_epoch else None
            record = train(
                method, net, data, config, random_state=batches, pretrained=start, on_epoch=said
            )
            scores.append(Score(record, inside))
    return scores


def _run_with_progress(
    trials: int, seed: int, console: Console, *, quiet: bool
) -> tuple[list[Score], float]:
    from giw.nets.epochs import note_of
    from giw.pages.progress import make_progress

    config, methods = demo_config(), demo_methods()
    per_trial = config.pretrain_epochs + len(methods) * config.epochs
    started = time.perf_counter()
    with make_progress(shown=not quiet, console=console) as progress:
        task = progress.add_task("digits", total=trials * per_trial, note="")

        def on_epoch(trial: int, method: str) -> Callable[[str, int, dict[str, float]], None]:
            def advance(phase: str, epoch: int, values: dict[str, float]) -> None:
                name = f"trial {trial + 1} of {trials}, {method:<12}"
                progress.update(task, advance=1, description=name, note=note_of(values))

            return advance

        scores = run_demo(trials=trials, random_state=seed, on_epoch=on_epoch)
    return scores, time.perf_counter() - started


def _write_demo(
    scores: list[Score], out: Path, *, trials: int, seed: int, seconds: float, console: Console
) -> None:
    import numpy as np

    from giw.cli.demo_page import demo_page
    from giw.pages import (
        in_one_sentence,
        learning_curves,
        markdown_table,
        save,
        split_histogram,
        summarize,
        text_table,
        trial_dots,
        write_page,
    )
    from giw.pages.tables import MEANING
    from giw.writing import write_whole

    methods = list(dict.fromkeys(score.record.method for score in scores))
    records = {m: [s.record for s in scores if s.record.method == m] for m in methods}
    accuracy = {m: [r.final_accuracy() for r in found] for m, found in records.items()}
    curves = {m: np.stack([r.history["test_accuracy"] for r in records[m]]) for m in methods}
    giw = [score for score in scores if score.record.method == "giw"]
    split = [score.record.split for score in giw if score.record.split is not None]
    p_value = np.concatenate([np.asarray(one.p_value) for one in split])
    called = np.concatenate([np.asarray(one.inside) for one in split])
    inside = np.concatenate([score.inside for score in giw])
    level = getattr(split[0], "level", 0.05)
    config = demo_config()
    command = f"giw demo --trials {trials} --seed {seed}"

    rows = summarize(accuracy)
    save(learning_curves(curves), out / "learning_curves")
    save(split_histogram(p_value, inside, threshold=level), out / "split")
    save(trial_dots(accuracy), out / "trials")
    write_whole(out / "table.md", markdown_table(rows))
    page = demo_page(
        accuracy=accuracy,
        curves=curves,
        p_value=p_value,
        inside=inside,
        level=level,
        facts={
            "data": "scikit-learn's 1,797 handwritten digits, 8 × 8 pixels",
            "training digits": ", ".join(map(str, range(TRAINING_DIGITS))),
            "validation": "20 images, two of each digit, drawn anew per trial",
            "epochs": f"{config.pretrain_epochs} plain + {config.epochs}",
            "share inside, in truth": f"{np.mean(inside):.2f}",
            "share inside, by the split": f"{np.mean([float(one.alpha) for one in split]):.2f}",
            "on the wrong side": f"{100 * np.mean(called != inside):.0f} % of points",
            "wall time": f"{seconds:.0f} s",
        },
        footer=[f"Made by `{command}`."],
    )
    path = write_page(page, out / "report.html")
    # files first: who reads only the head of the output closes it, and the work would end there
    title = "Test accuracy (%) on digits 0-9, trained on digits 0-3"
    console.print(text_table(rows, title=title), markup=False, highlight=False)
    console.print(MEANING, style="dim")
    console.print(in_one_sentence(rows))
    console.print(f"{seconds:.0f} s. Figures, table and page are in {out}/; open {path}")


def _check_writable(out: Path) -> None:
    """A minute of work should not end at a folder that cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".giw"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {out}: {error.strerror}; name another folder with --out"
        ) from None
