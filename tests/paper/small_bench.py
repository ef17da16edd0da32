"""``giw paper run`` on small made-up images: ``python -m tests.paper.small_bench OPTIONS``."""

import sys
from pathlib import Path

import torch
from tests.paper import tiny_grid
from tests.soak.telling import told_by_a_program

from giw.cli import app
from giw.paper import parallel

parallel.Place = lambda folder, *_: tiny_grid.small_place(Path(folder))
told_by_a_program()

SETTING = ("--dataset", "mnist", "--case", "iii", "--shift", "label_noise_0.2")
OPTIONS = (*SETTING, "--trials", "2", "--epochs", "4", "--device", "cpu", "--yes")
SCALE = ("--scale", "paper")
METHODS = ("val_only", "pooled", "giw", "diw")


def main() -> None:
    torch.set_num_threads(1)
    chosen = [word for method in METHODS for word in ("--method", method)]
    app(["paper", "run", *OPTIONS, *SCALE, *chosen, *sys.argv[1:]])


if __name__ == "__main__":
    main()
