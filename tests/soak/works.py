"""Work that is killed: each runs in a process of its own and is called again until it is done."""

import os
import sys
from pathlib import Path

import torch
from tests.bench import tiny_grid
from tests.cli.tables import write_tables
from tests.training.toy import toy_net, toy_tensors

import giw
from giw.bench import engines, runner
from giw.bench.store import Store
from giw.cli import app, bench
from giw.estimators import giw_classifier
from giw.methods import GIW
from giw.training import TrainingConfig, train
from giw.training.checkpoint import read_tensors

CONFIG = TrainingConfig(epochs=6, pretrain_epochs=6, batch_size=16, learning_rate=0.01)


def say_to(folder: Path) -> None:
    """What the process says goes to a file, for whoever wants to read it."""
    torch.set_num_threads(1)
    said = os.open(folder.with_name(f"{folder.name}.said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115


class Training:
    """``train`` with a checkpoint."""

    name = "train with a checkpoint"

    @staticmethod
    def run(folder: Path) -> None:
        say_to(folder)
        torch.set_num_threads(1)
        train(GIW(), toy_net(), toy_tensors(n=100), CONFIG, checkpoint=folder / "run")

    @staticmethod
    def check(folder: Path) -> None:
        """Whatever is there can be read."""
        if (folder / "run").exists():
            read_tensors(folder / "run")

    @staticmethod
    def result(folder: Path):
        record = train(GIW(), toy_net(), toy_tensors(n=100), CONFIG, checkpoint=folder / "run")
        state = {k: v.numpy().tobytes() for k, v in record.module.state_dict().items()}
        return state, {k: v.tobytes() for k, v in record.history.items()}, record.split.summary()

    @staticmethod
    def started(folder: Path) -> bool:
        return (folder / "run").exists()


class Grid:
    """``giw bench`` on small made-up images, saving after every epoch."""

    name = "giw bench"
    arguments = ("--dataset", "mnist", "--case", "iii", "--shift", "label_noise_0.2", "--yes")
    arguments += ("--trials", "2", "--epochs", "2", "--device", "cpu")
    methods = ("val_only", "giw")

    @classmethod
    def run(cls, folder: Path, *more: str) -> None:
        say_to(folder)
        tiny_grid.use_small_samples()
        engines.default_threads = lambda processes: 1
        runner.CHECKPOINT_SECONDS = 0.0
        sys.modules[bench.__module__]._check_data = lambda runs, data: None
        chosen = [word for method in cls.methods for word in ("--method", method)]
        app(["bench", "--out", str(folder), *cls.arguments, *chosen, *more])

    @staticmethod
    def check(folder: Path) -> None:
        damaged = Store(folder).read_all()[1]
        if damaged:
            raise AssertionError(damaged)
        for path in (folder / "unfinished").glob("*.safetensors"):
            read_tensors(path)

    @staticmethod
    def result(folder: Path):
        return {r.run.key: (tuple(r.curve), r.split, r.extra) for r in Store(folder).read_all()[0]}

    @staticmethod
    def started(folder: Path) -> bool:
        return any(folder.glob("*.json"))


class Fit:
    """``giw fit`` of a net to a small csv, over an older model in the same folder."""

    name = "giw fit"
    epochs = 20

    @classmethod
    def run(cls, folder: Path) -> None:
        say_to(folder)
        giw_classifier.CHECKPOINT_SECONDS = 0.0
        train_path, val_path = folder / "train.csv", folder / "val.csv"
        if not val_path.exists():
            (folder / "making").mkdir(exist_ok=True)
            for made in write_tables(folder / "making"):
                made.replace(folder / made.name)
        arguments = [str(train_path), "--val", str(val_path), "--label", "y", "--model", "net"]
        out = str(folder / "model")
        app(["fit", *arguments, "-o", out, "--epochs", str(cls.epochs), "--quiet"])

    @staticmethod
    def check(folder: Path) -> None:
        if (folder / "model").exists():
            giw.load(folder / "model")
        if (folder / "model.unfinished").exists():
            read_tensors(folder / "model.unfinished")

    @staticmethod
    def result(folder: Path):
        if (folder / "model.unfinished").exists():
            raise AssertionError("the unfinished run was left behind")
        return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}

    @staticmethod
    def started(folder: Path) -> bool:
        return (folder / "model.unfinished").exists()


WORKS = (Training, Grid, Fit)
