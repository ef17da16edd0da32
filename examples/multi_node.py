"""Generalized importance weighting with DistributedDataParallel, on one machine or on several.

Every process has a part of each training batch and of the validation batch. `GIWObjective` gathers
their losses, one number per point, and solves one weighting problem for the whole batch, so that
the result does not depend on how many processes there are. Training shows the digits 0 to 3,
test images all ten, and the task is odd against even.

Two processes on one machine, and four machines with eight GPUs each (the same line on every one,
with the name of any one of them as the meeting point):

    torchrun --nproc-per-node 2 examples/multi_node.py

    torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-id digits \
        --rdzv-endpoint first-machine:29500 examples/multi_node.py
"""

from __future__ import annotations

import argparse
import os

import torch
import torch._dynamo  # loaded later, it would keep gloo's threads alive until Python ends
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

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


def train(d: dict[str, Tensor], device: torch.device, *, epochs: int, seed: int) -> nn.Module:
    """The same net on every process; each computes its share of every batch."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    model = DistributedDataParallel(net)
    # small enough to be split by every process; of a large sample, one splits and broadcasts
    split = giw.SupportSplitter(random_state=seed).fit(d["x"], d["y"]).split(d["x_val"], d["y_val"])
    objective = giw.GIWObjective(split, group=dist.group.WORLD)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(seed)  # the same order everywhere
    val = torch.arange(len(d["y_val"])).tensor_split(ranks)[rank]
    for _ in range(epochs):
        for batch in torch.randperm(len(d["y"]), generator=generator).split(64):
            rows = batch.tensor_split(ranks)[rank]
            both = torch.cat([d["x"][rows], d["x_val"][val]])  # one forward pass for DDP
            labels = torch.cat([d["y"][rows], d["y_val"][val]])
            losses = cross_entropy(model(both.to(device)), labels.to(device), reduction="none")
            loss = objective(losses[: len(rows)], losses[len(rows) :], val)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net


def main() -> None:
    """Train on all processes, print on the first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    on_gpus = local < torch.cuda.device_count()
    device = torch.device(f"cuda:{local}" if on_gpus else "cpu")
    dist.init_process_group("nccl" if on_gpus else "gloo")
    try:
        d = data(options.seed)
        net = train(d, device, epochs=options.epochs, seed=options.seed)
        if dist.get_rank() == 0:
            with torch.no_grad():
                hits = net(d["x_test"].to(device)).argmax(1).cpu() == d["y_test"]
            print(f"{dist.get_world_size()} processes: accuracy {hits.float().mean():.4f}")
        dist.barrier()  # whoever leaves early may take the others with it
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
