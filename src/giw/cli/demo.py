"""``giw demo``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from giw.paper.bench import Score


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

    Training data hold the digits 0 to 3; the world has all ten. The task is odd against even.
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


def _run_with_progress(
    trials: int, seed: int, console: Console, *, quiet: bool
) -> tuple[list[Score], float]:
    from giw.nets.training.progress import make_progress, note_of
    from giw.paper.bench import DemoSettings, demo_methods, run_demo

    config, methods = DemoSettings().config, demo_methods()
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

    from giw.pages import (
        in_one_sentence,
        learning_curves,
        markdown_table,
        rich_table,
        save,
        split_histogram,
        summarize,
        trial_dots,
        write_page,
    )
    from giw.pages.tables import MEANING
    from giw.paper.bench import DemoSettings
    from giw.paper.report import demo_page
    from giw.writing import write_whole

    methods = list(dict.fromkeys(score.method for score in scores))
    accuracy = {m: [s.accuracy for s in scores if s.method == m] for m in methods}
    curves = {m: np.stack([s.curve for s in scores if s.method == m]) for m in methods}
    split = [
        s for s in scores if s.method == "giw" and s.split is not None and s.inside is not None
    ]
    p_value = np.concatenate([np.asarray(s.split.p_value) for s in split if s.split is not None])
    inside = np.concatenate([s.inside for s in split if s.inside is not None])
    level = split[0].split.level if split[0].split is not None else 0.05
    settings = DemoSettings()
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
            "training digits": ", ".join(map(str, settings.train_digits)),
            "validation": f"{settings.n_val} images, two of each digit, drawn anew per trial",
            "epochs": f"{settings.config.pretrain_epochs} plain + {settings.config.epochs}",
            "share inside, in truth": f"{np.mean([s.true_alpha for s in split]):.2f}",
            "share inside, by the split": f"{np.mean([s.alpha for s in split]):.2f}",
            "on the wrong side": f"{100 * np.mean([s.split_error for s in split]):.0f} % of points",
            "wall time": f"{seconds:.0f} s",
        },
        footer=[f"Made by `{command}`."],
    )
    path = write_page(page, out / "report.html")
    # files first: who reads only the head of the output closes it, and the work would end there
    console.print(rich_table(rows, title="Test accuracy (%) on digits 0-9, trained on digits 0-3"))
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
