"""``giw demo``: real tables and handwritten digits, giw beside its simple rivals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from giw.cli.common import AsJson, Quiet, Seed, check_writable, err_console, option, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from giw.nets.training import Method, OnEpoch, TrainingConfig, TrainingRecord

OUT = "Folder for report.html, the figures and the table."
TRIALS = "How often to draw validation data and train anew."


def demo(
    out: Annotated[Path, option("--out", "-o", help=OUT)] = Path("giw-demo"),
    trials: Annotated[int, option("--trials", help=TRIALS, min=1)] = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare giw with its simple rivals on two real tables and on handwritten digits.

    Tables: flights of another season, and an airline that training never had; boosted trees in
    every simple way and by the stack.

    Digits: training data hold the digits 0 to 3; test data have all ten. The task is odd against
    even. Twenty validation images, two of each digit, are drawn anew in every trial and are never
    training images. Six methods learn from the same draws and the same initial net: giw, giw_plus,
    diw, pooled, pretrain_val and val_only; the report says what each does.

    It takes about two minutes. The flights come with giw and the digits with scikit-learn;
    nothing is downloaded.

    Example:

        giw demo --trials 3 -o demo/

    Exit code 0 when the report is written, 2 for a mistake in the command.
    """
    check_writable(out / "report.html", "name another folder with --out")
    started = time.perf_counter()
    tables, scores = _run_with_progress(trials, seed, silent=quiet or as_json)
    seconds = time.perf_counter() - started
    import numpy as np

    from giw.cli.demo_page import demo_page
    from giw.cli.demo_tables import in_words, table_section
    from giw.pages import in_one_sentence, markdown_table, save, summarize, text_table, write_page
    from giw.pages.tables import MEANING, markdown_sheet, text_sheet
    from giw.writing import write_whole

    accuracy: dict[str, list[float]] = {}
    curves: dict[str, list[list[float]]] = {}
    for score in scores:
        curve = score.record.history["test_accuracy"]
        accuracy.setdefault(score.record.method, []).append(score.record.final_accuracy())
        curves.setdefault(score.record.method, []).append(list(map(float, curve)))
    split = [s.record.split for s in scores if s.record.method == "giw" and s.record.split]
    section = table_section(tables, trials)
    page = demo_page(
        tables=section,
        answer=in_words(tables),
        images=shown_images(seed, np.asarray(split[0].inside)),
        accuracy=accuracy,
        curves=curves,
        p_value=np.concatenate([np.asarray(one.p_value) for one in split]),
        inside=np.concatenate([s.inside for s in scores if s.record.method == "giw"]),
        alpha=float(np.mean([one.alpha for one in split])),
        seconds=seconds,
        command=f"giw demo --trials {trials} --seed {seed}",
    )
    rows = summarize(accuracy)
    for picture in (picture for section in page.sections for picture in section.pictures):
        save(picture.figure, out / picture.name)
    write_whole(out / "table.md", f"{markdown_sheet(section.sheets[0])}\n{markdown_table(rows)}")
    path = write_page(page, out / "report.html")
    table = text_table(rows, title="Test accuracy (%) on digits 0-9, trained on digits 0-3")
    place = f"{seconds:.0f} s. Figures, table and page are in {out}/; open {path}"
    # files first: who reads only the head of the output closes it, and the work would end there
    say(
        {
            "page": str(path),
            "seconds": round(seconds, 1),
            "accuracy": accuracy,
            "tables": {n: {w: s.tolist() for w, s in of.items()} for n, of in tables.items()},
        },
        f"{text_sheet(section.sheets[0])}\n{table}\n{MEANING}\n{in_one_sentence(rows)}\n{place}",
        as_json=as_json,
        quiet=False,
    )


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
    import torch

    from giw.nets.models import model_for
    from giw.nets.training import Tensors, pretrain, train

    config, scores = demo_config(), []
    for trial in range(trials):
        draw, _, _, init, batches, *_ = seeds_of(random_state, trial)
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


def seeds_of(random_state: int, trial: int) -> list[int]:
    """Seeds of one trial: draw, …, initial net, batches, …"""
    import numpy as np

    sequence = np.random.SeedSequence(random_state, spawn_key=(trial,))
    return [int(s.generate_state(1)[0]) for s in sequence.spawn(7)]


def shown_images(random_state: int, inside: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Images of the first trial: training, and validation inside and outside by the split."""
    arrays, _ = demo_arrays(seeds_of(random_state, 0)[0])
    step = len(arrays["x_train"]) // 12
    return {
        "training": arrays["x_train"][::step, 0],
        "validation, called inside": arrays["x_val"][inside, 0],
        "validation, called outside": arrays["x_val"][~inside, 0],
    }


def _run_with_progress(trials: int, seed: int, *, silent: bool) -> tuple[Any, list[Score]]:
    from giw.cli.demo_tables import SHOWN, compare_tables
    from giw.nets.epochs import note_of
    from giw.pages.progress import make_progress

    config = demo_config()
    per_trial = config.pretrain_epochs + len(demo_methods()) * config.epochs
    with make_progress(shown=not silent, console=err_console()) as progress:
        fits = progress.add_task("tables", total=trials * len(SHOWN) * 6, note="")
        task = progress.add_task("digits", total=trials * per_trial, note="")

        def on_epoch(trial: int, method: str) -> Callable[[str, int, dict[str, float]], None]:
            def advance(phase: str, epoch: int, values: dict[str, float]) -> None:
                name = f"trial {trial + 1} of {trials}, {method:<12}"
                progress.update(task, advance=1, description=name, note=note_of(values))

            return advance

        def on_fit(name: str) -> None:
            progress.update(fits, advance=1, description=name)

        tables = compare_tables(trials, seed, on_fit)
        scores = run_demo(trials=trials, random_state=seed, on_epoch=on_epoch)
    return tables, scores
