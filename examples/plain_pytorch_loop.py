"""Generalized importance weighting in a training loop of your own.

Three things are giw's: the split of the validation data, made once; the objective, which weights
the training batch anew in every step; and nothing else. Net, optimiser, batches and schedule are
yours. Training knows the digits 0 to 3, the world has all ten, and the task is odd against even.

    python examples/plain_pytorch_loop.py
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import giw


def data(seed: int) -> dict[str, Tensor]:
    """Training rows with digits 0 to 3; forty validation rows and the rest with all ten."""
    pixels, digit = load_digits(return_X_y=True)
    order = torch.randperm(len(digit), generator=torch.Generator().manual_seed(seed))
    x, digit = torch.tensor(pixels / 16, dtype=torch.float32)[order], torch.tensor(digit)[order]
    y, known = digit % 2, digit[:1200] < 4
    return {
        "x": x[:1200][known], "y": y[:1200][known],
        "x_val": x[1200:1240], "y_val": y[1200:1240], "x_test": x[1240:], "y_test": y[1240:],
    }  # fmt: skip


def new_net(seed: int) -> nn.Module:
    """The same start for both."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def train(net: nn.Module, d: dict[str, Tensor], *, epochs: int, seed: int, weighted: bool) -> float:
    """Accuracy in the world after training by GIW, or by training data alone."""
    # once, before training: which validation points are inside the training support?
    split = giw.SupportSplitter(random_state=seed).fit(d["x"], d["y"]).split(d["x_val"], d["y_val"])
    objective = giw.GIWObjective(split)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(d["y"]), generator=generator).split(64):
            # per-sample losses of a training batch, and of all validation points
            loss = cross_entropy(net(d["x"][rows]), d["y"][rows], reduction="none")
            if weighted:
                val_loss = cross_entropy(net(d["x_val"]), d["y_val"], reduction="none")
                loss = objective(loss, val_loss)  # weights are solved here
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
    with torch.no_grad():
        return float((net(d["x_test"]).argmax(1) == d["y_test"]).float().mean())


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train twice from the same start and print both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    d, found = data(options.seed), {}
    for name, weighted in (("training data alone", False), ("GIW", True)):
        net = new_net(options.seed)
        found[name] = train(net, d, epochs=options.epochs, seed=options.seed, weighted=weighted)
        print(f"{name:<20} {found[name]:.3f}")
    return found


if __name__ == "__main__":
    main()
