"""``giw bench`` on small made-up images: ``python -m tests.paper.bench.small_bench OPTIONS``.

Processes that it starts import the main program again, and so find the same images.
"""

import importlib
import sys

import torch
from tests.paper.bench import tiny_grid
from tests.soak.telling import told_by_a_program

from giw.cli import app
from giw.paper.bench import engines, runner

tiny_grid.use_small_samples()
engines.default_threads = lambda processes: 1  # every process rounds alike
runner.CHECKPOINT_SECONDS = 0.0  # save after every epoch
importlib.import_module("giw.cli.bench")._check_data = lambda runs, data: None
told_by_a_program()

SETTING = ("--dataset", "mnist", "--case", "iii", "--shift", "label_noise_0.2")
OPTIONS = (*SETTING, "--trials", "2", "--epochs", "4", "--device", "cpu", "--yes")
METHODS = ("val_only", "pooled", "giw", "diw")


def main() -> None:
    torch.set_num_threads(1)
    chosen = [word for method in METHODS for word in ("--method", method)]
    app(["bench", *OPTIONS, *chosen, *sys.argv[1:]])


if __name__ == "__main__":
    main()
