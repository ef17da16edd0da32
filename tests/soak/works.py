"""Work that is killed: each runs in a process of its own and is called again until it is done."""

import os
import random
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
import torch.distributed as dist
from tests.cli.tables import write_tables
from tests.nets.training.toy import toy_net, toy_tensors
from tests.paper import tiny_grid
from tests.paper.process_tree import children_of, is_alive, kill_if_alive, workers_of
from tests.soak.killing import ROOT, kill_one
from tests.soak.telling import mark, tell_first_step, tell_programs

import giw
from giw.cli import app
from giw.nets import classifier as giw_classifier
from giw.nets.methods import GIW
from giw.nets.training import TrainingConfig, train
from giw.nets.training.checkpoint import read_tensors
from giw.paper import parallel
from giw.paper.plan import group, plan
from giw.paper.rows import Store
from giw.writing import write_whole


def say_to(folder: Path) -> None:
    """What the process says goes to a file, for whoever wants to read it."""
    torch.set_num_threads(1)
    said = os.open(mark(folder, "said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115


@contextmanager
def told(folder: Path):
    """Around the work: what it says, when it begins its first epoch, and that it is done."""
    say_to(folder)
    tell_first_step(folder)
    try:
        yield
    except SystemExit as end:  # so ends a command
        if end.code:
            raise
    mark(folder, "done").touch()


class Training:
    """``train`` with a checkpoint."""

    name = "train with a checkpoint"
    share = 0.25  # of the kills
    kill = staticmethod(kill_one)
    config = TrainingConfig(epochs=40, pretrain_epochs=20, batch_size=16, learning_rate=0.01)

    @classmethod
    def trained(cls, folder: Path):
        data = toy_tensors(n=200)
        return train(GIW(), toy_net(), data, cls.config, checkpoint=folder / "run")

    @classmethod
    def run(cls, folder: Path) -> None:
        with told(folder):
            cls.trained(folder)

    @staticmethod
    def check(folder: Path) -> None:
        """Whatever is there can be read."""
        if (folder / "run").exists():
            read_tensors(folder / "run")

    @classmethod
    def result(cls, folder: Path):
        record = cls.trained(folder)
        state = {k: v.numpy().tobytes() for k, v in record.module.state_dict().items()}
        return state, {k: v.tobytes() for k, v in record.history.items()}, repr(record.split)


class ShortTraining(Training):
    config = TrainingConfig(epochs=10, pretrain_epochs=5, batch_size=16, learning_rate=0.01)


class Grid:
    """``giw paper run`` on small made-up images, saving after every epoch."""

    name = "giw paper run"
    share = 0.25
    kill = staticmethod(kill_one)
    methods = ("val_only", "giw")

    @classmethod
    def run(cls, folder: Path) -> None:
        few = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["label_noise_0.2"]}
        runs = plan(**few, methods=cls.methods, trials=2, epochs=4)
        store = Store(folder)
        with told(folder):
            store.forget_finished(runs)
            store.set_damaged_aside()
            jobs = group(run for run in runs if not store.has(run))
            list(parallel.run_jobs(jobs, tiny_grid.small_place(folder)))

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
        return any(folder.glob("*.jsonl"))


class SharedGrid(Grid):
    """The same by a command and two processes that it starts; any of the three may be killed."""

    name = "giw paper run --processes 2"
    share = 0.1  # all three import everything anew

    @staticmethod
    def run(folder: Path) -> None:
        say_to(folder)
        words = ["-m", "tests.paper.small_bench", "--out", str(folder), "--processes", "2"]
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, *words], tell_programs(folder))

    @staticmethod
    def kill(process, moments: random.Random) -> None:
        everyone = [process.pid, *sorted(workers_of(process.pid))]
        kill_if_alive(moments.choice(everyone))
        while any(map(is_alive, everyone)):  # the others end by themselves
            time.sleep(0.01)


class Fit:
    """``giw fit`` of a net to a small csv, over an older model in the same folder."""

    name = "giw fit"
    share = 0.25
    kill = staticmethod(kill_one)
    epochs = 100

    @classmethod
    def run(cls, folder: Path) -> None:
        giw_classifier.CHECKPOINT_SECONDS = 0.0
        train_path, val_path = folder / "train.csv", folder / "val.csv"
        if not val_path.exists():
            (folder / "making").mkdir(exist_ok=True)
            for made in write_tables(folder / "making"):
                made.replace(folder / made.name)
        arguments = [str(train_path), str(val_path), "--label", "y", "--model", "net"]
        out = str(folder / "model")
        with told(folder):
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


class Ranks:
    """One training by processes over gloo; any may be killed, and the others must end."""

    name = "two ranks"
    share = 0.15
    count = 2
    most_seconds = 60.0  # until the one that is left has stopped
    still_there: ClassVar[list[int]] = []

    @classmethod
    def run(cls, folder: Path) -> None:
        meeting = mark(folder, f"meeting-{os.getpid()}").as_uri()
        rank = next((r for r in range(1, cls.count) if not os.fork()), 0)
        try:
            with told(folder) if rank == 0 else nullcontext():
                dist.init_process_group(
                    "gloo", init_method=meeting, rank=rank, world_size=cls.count
                )
                cls.trained(folder, distributed=True)
                dist.barrier()
                dist.destroy_process_group()
        finally:
            if rank:
                os._exit(1)

    @staticmethod
    def trained(folder: Path, *, distributed: bool = False):
        giw_classifier.CHECKPOINT_SECONDS = 0.0
        rng = np.random.default_rng(0)
        X, X_val = rng.normal(size=(150, 3)), rng.normal(size=(30, 3)) + 1
        clf = giw.GIWClassifier(
            max_epochs=40, batch_size=32, random_state=0, distributed=distributed
        )
        how = {"X_val": X_val, "y_val": X_val[:, 0] > 1, "checkpoint": folder / "run"}
        clf.fit(X, X[:, 0] > 0, **how)
        if not distributed or dist.get_rank() == 0:
            write_whole(folder / "found", clf.predict_proba(X).tobytes())

    @classmethod
    def kill(cls, process, moments: random.Random) -> None:
        everyone = [process.pid, *children_of(process.pid)]
        kill_if_alive(moments.choice(everyone))
        ends = time.monotonic() + cls.most_seconds
        while time.monotonic() < ends and any(map(is_alive, everyone)):
            time.sleep(0.01)
        cls.still_there[:] = filter(is_alive, everyone)
        for pid in cls.still_there:
            kill_if_alive(pid)

    @classmethod
    def check(cls, folder: Path) -> None:
        if cls.still_there:
            raise AssertionError(f"a process went on for {cls.most_seconds:.0f} s without another")
        if (folder / "run").exists():
            read_tensors(folder / "run")

    @staticmethod
    def result(folder: Path):
        return (folder / "found").read_bytes()


class FourRanks(Ranks):
    name = "four ranks"
    count = 4


class ShortFit(Fit):
    epochs = 20


WORKS = (Training, Grid, SharedGrid, Fit, Ranks)
