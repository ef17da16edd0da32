"""Generalized importance weighting in a Lightning module.

``setup`` splits the validation data once; ``training_step`` takes a training batch and a batch of
validation points side by side (Lightning's ``CombinedLoader``) and hands both losses to giw's
objective. Needs ``pip install lightning``.

    python examples/lightning_module.py
"""

from __future__ import annotations

import argparse
import logging
import warnings

import lightning
import torch
from lightning.pytorch.utilities import CombinedLoader
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import giw


class DigitsUnderShift(lightning.LightningDataModule):
    """Training knows the digits 0 to 3; the world has all ten. Odd against even."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        pixels, digit = load_digits(return_X_y=True)
        order = torch.randperm(len(digit), generator=torch.Generator().manual_seed(seed))
        x, digit = torch.tensor(pixels / 16, dtype=torch.float32)[order], torch.tensor(digit)[order]
        known = digit[:1200] < 4
        self.train_points = x[:1200][known], digit[:1200][known] % 2
        self.val_points = x[1200:1240], digit[1200:1240] % 2
        self.test_points = x[1240:], digit[1240:] % 2

    def train_dataloader(self) -> CombinedLoader:
        """Training batches in random order; beside each, all validation points with their rows."""
        rows = torch.arange(len(self.val_points[0]))
        loaders = {
            "train": DataLoader(TensorDataset(*self.train_points), batch_size=64, shuffle=True),
            "val": DataLoader(TensorDataset(*self.val_points, rows), batch_size=64),
        }
        return CombinedLoader(loaders, "max_size_cycle")

    def test_dataloader(self) -> DataLoader:
        """The world."""
        return DataLoader(TensorDataset(*self.test_points), batch_size=512)


class GIWModule(lightning.LightningModule):
    """Any net, trained by GIW."""

    def __init__(self, net: nn.Module, seed: int = 0) -> None:
        super().__init__()
        self.net, self.seed = net, seed

    def setup(self, stage: str) -> None:
        """Once, before training: which validation points are inside the training support?"""
        if stage != "fit":
            return
        world = self.trainer.datamodule
        splitter = giw.SupportSplitter(random_state=self.seed).fit(*world.train_points)
        self.split = splitter.split(*world.val_points)
        self.objective = giw.GIWObjective(self.split)

    def training_step(self, batch: dict, batch_idx: int) -> Tensor:
        """Both losses, point by point; the objective weights the training points anew."""
        (x, y), (x_val, y_val, rows) = batch["train"], batch["val"]
        train_loss = cross_entropy(self.net(x), y, reduction="none")
        val_loss = cross_entropy(self.net(x_val), y_val, reduction="none")
        return self.objective(train_loss, val_loss, rows)

    def test_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Accuracy in the world."""
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as for any other module."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main(argv: list[str] | None = None) -> float:
    """Train, test, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")  # advice on workers and logging
    lightning.seed_everything(options.seed, verbose=False)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    module, world = GIWModule(net, options.seed), DigitsUnderShift(options.seed)
    trainer = lightning.Trainer(
        max_epochs=options.epochs, accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, datamodule=world)
    (found,) = trainer.test(module, datamodule=world, verbose=False)
    print(f"GIW in Lightning {found['accuracy']:.3f}")
    return float(found["accuracy"])


if __name__ == "__main__":
    main()
