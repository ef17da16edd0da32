"""GIW+ beside GIW and Pooled: on the paper's images and on tables.

    python benchmarks/plus.py images --seed 100 --protocol development    ablations, to choose by
    python benchmarks/plus.py compare FOLDER               paired tables from stored results alone
    python benchmarks/plus.py summary FOLDER               one line a setting from the same results
    python benchmarks/plus.py tables --jobs 16 --csv FILE  scikit-learn's tables, 50 draws a cell
                                                           (the same command goes on with a file)
    python benchmarks/plus.py tables --from-csv FILE       the same table from stored rows
    python benchmarks/plus.py step                         CPU time of a step beside GIW's
    python benchmarks/plus.py step --device cuda --trials 20         the same on a GPU

Results on images are stored as ``giw paper run`` stores them, and are runs of it: this only
runs chosen pairs of method and variant in one process, so that data and kernels are loaded once.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import torch
from scipy.stats import ttest_1samp

import giw
import practice
from giw.nets.augmentation import MNIST_AUGMENTATION
from giw.nets.devices import as_device
from giw.nets.methods import GIW, GIWPlus
from giw.nets.models import build
from giw.nets.training import (
    Tensors,
    TrainingConfig,
    pretrain_trials,
    train_trials,
)
from giw.paper.parallel import Place, run_job
from giw.paper.plan import RESAMPLED, Run, group
from giw.paper.printed import paper_accuracy
from giw.paper.rows import Result, Store
from giw.paper.settings import paper_setting

SETTINGS = ("mnist-iii-support", "mnist-iii-label_noise_0.4", "color_mnist-iii-support",
            "color_mnist-iii-label_noise_0.4")  # fmt: skip
METHODS = (
    *("giw_plus", "giw", "pooled", "pooled_plus"),
    *(f"giw_plus:plus_{part}" for part in ("no_align", "no_class_shares")),
    *(f"giw_plus:plus_{part}" for part in ("hard", "train_share_1", "one_copy")),
)
RIVALS = ("giw", "pooled", "giw:published")


# ---------------------------------------------------------------------------------- images


def images(options: argparse.Namespace) -> None:
    """Run chosen pairs of method and variant, and compare them."""
    device = str(as_device("auto"))
    place = Place(options.out, options.data, device)
    runs = []
    for setting in options.setting:
        dataset, case, shift = setting.split("-")
        paper_setting(dataset, case, shift)  # refuses unknown ones
        for name in options.method:
            method, _, variant = name.partition(":")
            published = variant.partition("_")[0] == "published"
            protocol = RESAMPLED if published else options.protocol
            variant = variant.partition("_")[2] if published else variant
            runs += [
                Run(dataset, case, shift, method, t, protocol, variant, options.epochs,
                    options.seed)
                for t in range(options.trials)
            ]  # fmt: skip
    for job in group(run for run in runs if not Store(options.out).has(run)):
        start = time.perf_counter()
        done = run_job(job, place)
        print(f"{time.perf_counter() - start:6.1f} s  {job.name}  {done.error}", flush=True)
    compare(options)


def compare(options: argparse.Namespace) -> None:
    """Mean accuracy, and the paired difference from each rival, setting by setting."""
    results, bad = Store(options.out).read_all()
    for line in bad:
        print("left out:", line)
    places = list(dict.fromkeys(_place(r.run) for r in results))
    rivals = [name for name in options.against if any(_name(r.run) == name for r in results)]
    for place in places:
        here = [r for r in results if _place(r.run) == place]
        cells = {name: _trials(here, name) for name in dict.fromkeys(_name(r.run) for r in here)}
        seconds = {name: np.mean([r.seconds for r in here if _name(r.run) == name])
                   for name in cells}  # fmt: skip
        count = max(map(len, cells.values()))
        print(f"\n### {', '.join(map(str, place))}, {count} trials\n")
        paper = paper_accuracy(*place[:3], "giw")
        if paper is not None:
            print(f"The paper's GIW, one draw for all trials: {paper}\n")
        print("| method | accuracy | " + " | ".join(f"minus {name}" for name in rivals)
              + " | minus paper | effective share | seconds |")  # fmt: skip
        print("| --- " * (len(rivals) + 5) + "|")
        for name in sorted(cells, key=lambda name: -np.mean(list(cells[name].values()))):
            values = 100 * np.array(list(cells[name].values()))
            share = np.mean([r.weights.get("effective_share", 1.0) for r in here
                             if _name(r.run) == name])  # fmt: skip
            print(f"| {name} | {values.mean():.2f} ± {values.std(ddof=1):.2f} | "
                  + " | ".join(_paired(cells[name], cells.get(rival, {})) for rival in rivals)
                  + f" | {'–' if paper is None else f'{values.mean() - paper.mean:+.2f}'}"
                  + f" | {share:.2f} | {seconds[name]:.1f} |")  # fmt: skip


def summary(options: argparse.Namespace) -> None:
    """One line a setting: GIW+, its paired differences from the rivals, and the paper's figure."""
    results, _ = Store(options.out).read_all()
    rivals = [name for name in options.against if any(_name(r.run) == name for r in results)]
    print("| setting | giw_plus | " + " | ".join(f"minus {name}" for name in rivals)
          + " | paper's GIW | minus paper |")  # fmt: skip
    print("| --- " * (len(rivals) + 4) + "|")
    won, lost = dict.fromkeys(rivals, 0), dict.fromkeys(rivals, 0)
    met, places, paired = 0, dict.fromkeys(_place(r.run) for r in results), dict.fromkeys(rivals, 0)
    for place in places:
        here = [r for r in results if _place(r.run) == place]
        mine, paper = _trials(here, "giw_plus"), paper_accuracy(*place[:3], "giw")
        cells = []
        for rival in rivals:
            gap = _differences(mine, _trials(here, rival))
            cells.append(_told(gap))
            if len(gap) < 2:
                continue
            paired[rival] += 1
            sure = ttest_1samp(gap, 0).pvalue < 0.05
            won[rival] += bool(sure and gap.mean() > 0)
            lost[rival] += bool(sure and gap.mean() < 0)
        values = 100 * np.array(list(mine.values()))
        over = "–" if paper is None else f"{values.mean() - paper.mean:+.2f}"
        met += paper is not None and values.mean() >= paper.mean
        own = f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
        print(f"| {place[0]} ({place[1]}) {place[2]} | {own} | {' | '.join(cells)} | "
              f"{paper or '–'} | {over} |")  # fmt: skip
    for rival in rivals:
        print(f"\nAgainst {rival}: better at the 5 % level in {won[rival]} of {paired[rival]} "
              f"settings, worse in {lost[rival]}.")  # fmt: skip
    print(f"\nThe paper's mean is reached in {met} of {len(places)} settings.")


def _place(run: Run) -> tuple[str, ...]:
    kind = "development" if run.protocol == "development" else "test images"
    return run.dataset, run.case, run.shift, kind, f"{run.epochs} epochs", f"seed {run.seed}"


def _name(run: Run) -> str:
    published = "published" if run.protocol == RESAMPLED else ""
    variant = "_".join(part for part in (published, run.variant) if part)
    return run.method + (f":{variant}" if variant else "")


def _trials(results: Iterable[Result], name: str) -> dict[int, float]:
    return {r.run.trial: r.accuracy for r in results if _name(r.run) == name}


def _paired(mine: dict[int, float], theirs: dict[int, float]) -> str:
    return "–" if mine == theirs else _told(_differences(mine, theirs))


def _differences(mine: dict[int, float], theirs: dict[int, float]) -> np.ndarray:
    """In points, of the trials that both have."""
    return 100 * np.array([mine[t] - theirs[t] for t in sorted(set(mine) & set(theirs))])


def _told(difference: np.ndarray) -> str:
    if len(difference) < 2:
        return "–"
    p = ttest_1samp(difference, 0).pvalue
    return f"{difference.mean():+.2f} (p {'< 0.001' if p < 0.001 else f'{p:.3f}'})"


# ---------------------------------------------------------------------------------- tables

NETS = ("train_only", "val_only", "pooled", "giw", "giw_plus")


def fit_all(task: str, shift: str, seed: int, methods: tuple[str, ...]) -> list[dict]:
    """Test accuracy of every method on one draw of one table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    x, y, xv, yv, xt, yt = practice.deal(practice.tables()[task], task, shift, seed)
    rows = []
    for method in methods:
        clf = giw.GIWClassifier(method=method, random_state=seed, device="cpu")
        score = clf.fit(x, y, X_val=xv, y_val=yv).score(xt, yt)
        rows.append({"task": task, "shift": shift, "seed": seed, "method": method,
                     "accuracy": round(float(score), 5)})  # fmt: skip
    return rows


def tables(options: argparse.Namespace) -> None:
    """All cells, in parallel; draws from 3000 on are the reported ones.

    A draw of a cell is written as soon as it is done, and what the file has already is not done
    again: a run that is cut off goes on with the same command.
    """
    if options.from_csv:
        return report_tables(list(csv.DictReader(options.from_csv.open())))
    draws = range(options.first_seed, options.first_seed + options.repeats)
    cells = [(task, shift, seed) for seed in draws for task in options.task
             for shift in options.shift]  # fmt: skip
    rows = stored_rows(options.csv)
    done = {(row["task"], row["shift"], int(row["seed"]), row["method"]) for row in rows}
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = []
        for cell in cells:
            missing = tuple(m for m in options.method if (*cell, m) not in done)
            if missing:
                waiting.append(pool.submit(fit_all, *cell, missing))
        for future in as_completed(waiting):
            rows += future.result()
            append_rows(options.csv, future.result())
    return report_tables(rows)


def stored_rows(path: Path | None) -> list[dict]:
    """Rows of a file; a last line that was cut off in the middle is removed from it."""
    if path is None or not path.exists():
        return []
    whole = path.read_text()
    kept = whole[: whole.rfind("\n") + 1]
    if kept != whole:
        path.write_text(kept)
    return list(csv.DictReader(kept.splitlines()))


def append_rows(path: Path | None, rows: list[dict]) -> None:
    """Write rows at the end, below a head where the file is new."""
    if path is None:
        return
    new = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def report_tables(rows: list[dict]) -> None:
    """Mean accuracies, and GIW+ against the best of the others in each cell."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    methods.sort(key=lambda m: NETS.index(m) if m in NETS else len(NETS))
    rivals = [m for m in ("train_only", "val_only", "pooled", "giw") if m in methods]
    if not rivals or "giw_plus" not in methods:
        return print(f"{len(rows)} rows of {', '.join(methods)}: nothing to compare giw_plus with")
    print("| task | shift | " + " | ".join(methods) + " | giw_plus minus best (95 %) |")
    print("| --- " * (len(methods) + 3) + "|")
    under, counts = [], []
    for task in practice.VALIDATION:
        for shift in practice.SHIFTS:
            here = [row for row in rows if row["task"] == task and row["shift"] == shift]
            if not here:
                continue
            found = {m: {int(r["seed"]): 100 * float(r["accuracy"]) for r in here
                         if r["method"] == m} for m in methods}  # fmt: skip
            seeds = sorted(set.intersection(*map(set, found.values())))  # done by all
            if len(seeds) < 2:
                continue
            value = {m: np.array([found[m][seed] for seed in seeds]) for m in methods}
            counts.append(len(seeds))
            best = max(rivals, key=lambda m, value=value: value[m].mean())
            mean, low, high = practice.interval(value["giw_plus"] - value[best])
            if high < -0.5:
                under.append(f"{task}, {shift}")
            print(f"| {task} | {shift} | " + " | ".join(f"{value[m].mean():.1f}" for m in methods)
                  + f" | {mean:+.1f} ({low:+.1f} to {high:+.1f}) |")  # fmt: skip
    if not counts:
        return print("no cell has two draws yet")
    print(f"\n{min(counts)} to {max(counts)} draws a cell. Significantly more than 0.5 points "
          f"under the best of {', '.join(rivals)}: {len(under)} of {len(counts)} cells"
          f"{': ' * bool(under)}{'; '.join(under)}.")  # fmt: skip


# ------------------------------------------------------------------------------------- step


def step(options: argparse.Namespace) -> None:
    """Time of a step of LeNet-5 with 256 training and 20 validation images a trial.

    Processor time on a CPU; on a GPU the time that passes, for trials side by side.
    """
    torch.set_num_threads(1)
    cuda = options.device.startswith("cuda")
    steps, rng = (100 if cuda else 10), np.random.default_rng(0)

    def noise(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = rng.integers(0, 256, (size, 1, 32, 32), dtype=np.uint8)
        x, y = torch.from_numpy(x), torch.from_numpy(np.arange(size) % 2)
        return x.to(options.device), y.to(options.device)

    data = [Tensors(*noise(256 * steps), *noise(20)) for _ in range(options.trials)]
    modules = [build("lenet5", d.x_train.shape, 2, random_state=0).to(options.device)
               for d in data]  # fmt: skip
    print("| images | giw | giw_plus | ratio (its range over repeats) |")
    print("| --- | --- | --- | --- |")
    for moved in (True, False):
        augmentation = MNIST_AUGMENTATION if moved else None
        config = TrainingConfig(epochs=4 if cuda else 2, pretrain_epochs=1,
                                augmentation=augmentation)  # fmt: skip
        start = pretrain_trials(modules, data, config)
        clock = time.perf_counter if cuda else time.process_time

        def seconds(method: GIW, config=config, start=start, clock=clock) -> float:
            """Of an epoch; the first one has the split in it."""
            ends: list[float] = []

            def on_epoch(trial: int) -> Callable[..., None]:
                return lambda *_: ends.append(clock()) if trial == 0 else None

            train_trials(method, modules, data, config, pretrained=start, on_epoch=on_epoch)
            return (ends[-1] - ends[0]) / (len(ends) - 1)

        # a split that takes no time: that of the default would take most of a run, and is no step
        split = {"split_on": "hidden", "splitter": giw.SupportSplitter(most_held_out=50)}
        times = np.array([[seconds(m(**split)) for m in (GIW, GIWPlus)]
                          for _ in range(options.repeats)])  # fmt: skip
        ratio = times[:, 1] / times[:, 0]
        giw_step, plus_step = 1000 / steps * np.median(times, axis=0)  # ms
        print(f"| {'moved about' if moved else 'as they are'} | {giw_step:.2f} ms | "
              f"{plus_step:.2f} ms | {np.median(ratio):.2f} ({ratio.min():.2f} to "
              f"{ratio.max():.2f}) |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    on_images = commands.add_parser("images")
    on_images.add_argument("--setting", nargs="*", default=list(SETTINGS))
    on_images.add_argument("--method", nargs="*", default=list(METHODS),
                     help="method, method:variant, method:published or "
                     "method:published_variant: validation points stay in training")  # fmt: skip
    on_images.add_argument("--protocol", default="honest", choices=["honest", "development"])
    on_images.add_argument("--trials", type=int, default=10)
    on_images.add_argument("--epochs", type=int, default=40)
    on_images.add_argument("--seed", type=int, default=100)
    on_images.add_argument("--data", type=Path)
    on_images.add_argument("--out", type=Path, required=True)
    stored = commands.add_parser("compare")
    short = commands.add_parser("summary")
    for command in (stored, short):
        command.add_argument("out", type=Path)
    for command in (on_images, stored, short):
        command.add_argument("--against", nargs="*", default=list(RIVALS),
                             help="methods that all others are paired with")  # fmt: skip
    on_tables = commands.add_parser("tables")
    on_tables.add_argument("--repeats", type=int, default=50)
    on_tables.add_argument("--first-seed", type=int, default=3000)
    on_tables.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    on_tables.add_argument("--task", nargs="*", default=list(practice.VALIDATION))
    on_tables.add_argument("--shift", nargs="*", default=list(practice.SHIFTS))
    on_tables.add_argument("--method", nargs="*", default=list(NETS))
    on_tables.add_argument("--csv", type=Path)
    on_tables.add_argument("--from-csv", type=Path)
    cost = commands.add_parser("step")
    cost.add_argument("--repeats", type=int, default=5)
    cost.add_argument("--device", default="cpu")
    cost.add_argument("--trials", type=int, default=1)
    options = parser.parse_args()
    run = {
        "images": images,
        "compare": compare,
        "summary": summary,
        "tables": tables,
        "step": step,
    }
    run[options.command](options)


if __name__ == "__main__":
    main()
