"""A small problem that every method can be trained on in a blink."""

import torch
from torch import nn

from giw.nets.training import Tensors


def toy_tensors(n=120, m=8, seed=0, n_test=40):
    """Two blobs in training, a third one (of class 0) in validation and test as well."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [0.0, 6.0]])
    labels = torch.tensor([0, 1, 0])

    def draw(size, blobs):
        which = torch.arange(size) % blobs
        noise = 0.3 * torch.randn(size, 2, generator=generator)
        return centers[which] + noise, labels[which]

    return Tensors(*draw(n, 2), *draw(m, 3), *draw(n_test, 3))


def toy_net(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
