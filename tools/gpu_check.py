"""What ``pytest -m gpu`` asks of a GPU, for machines without pytest: ``python tools/gpu_check.py``.

Weights, patches and a few steps of every method on the GPU beside the same on the CPU, and how
long weights take.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from giw.nets.kernels.graph import captured
from giw.nets.kernels.products import by_products
from giw.nets.methods import GIW, METHODS
from giw.nets.models import LeNet5, initialised
from giw.nets.training import Tensors, TrainingConfig, sample_losses, train, train_trials
from giw.objective import DynamicWeights

GPU = torch.device("cuda")
CONFIG = TrainingConfig(
    epochs=3, pretrain_epochs=2, batch_size=16, learning_rate=1e-3, precision="float32"
)


def told(name: str, found: Tensor, expected: Tensor, most: float) -> bool:
    """Print the largest difference; whether it is small enough."""
    apart = float((found.cpu() - expected.cpu()).abs().max())
    print(f"{'ok ' if apart <= most else 'NOT'} {name}: {apart:.1e} apart, {most:.0e} allowed")
    return apart <= most


def weights() -> bool:
    """In-step weights of five problems at once."""
    generator = torch.Generator().manual_seed(0)
    x, v = torch.rand(5, 256, generator=generator) ** 3, torch.rand(5, 20, generator=generator)
    parts, fine = (x, v, torch.rand(5, 20, generator=generator)), True
    there = [part.to(GPU) for part in parts]
    for bandwidth in ("cross", "paper"):
        weigh = vmap(DynamicWeights(bandwidth))
        fine &= told(f"weights, {bandwidth}", weigh(*there), weigh(*parts), 2e-3)
        replay = captured(lambda weigh=weigh: weigh(*there), GPU, lambda: None)
        for title, work in (("recorded", replay), ("on the host", lambda w=weigh: w(*parts))):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(20):
                work()
            torch.cuda.synchronize()
            print(f"    {title}: {50 * (time.perf_counter() - start):.2f} ms for five problems")
    return fine


def gradients() -> bool:
    """Of a LeNet-5 by patches on the GPU and by convolutions on the CPU."""
    net = initialised(lambda: LeNet5(3), 0)
    x, y = torch.rand(8, 1, 32, 32), torch.arange(8) % 3
    expected = torch.autograd.grad(sample_losses(net(x), y).sum(), list(net.parameters()))
    form = by_products(net).to(GPU)

    def loss(params: dict[str, Tensor]) -> Tensor:
        return sample_losses(
            torch.func.functional_call(form, params, (x.to(GPU),)), y.to(GPU)
        ).sum()

    found = grad(loss)({name: p.detach() for name, p in form.named_parameters()})
    return all(told(f"gradient of {name}", g, e, 1e-3 * float(e.abs().max()) + 1e-5)
               for (name, g), e in zip(found.items(), expected, strict=True))  # fmt: skip


def methods() -> bool:
    """Losses after a few epochs, alone and side by side, on both devices."""
    rng = np.random.default_rng(0)
    parts = [
        torch.from_numpy(part)
        for n in (64, 9, 32)
        for part in (rng.random((n, 1, 32, 32), np.float32), rng.integers(0, 2, n))
    ]
    data, gpu = Tensors(*parts), Tensors(*(part.to(GPU) for part in parts))
    net = initialised(lambda: LeNet5(2), 0)
    fine = True
    published = {"giw, published width": lambda: GIW(weigh=DynamicWeights("paper"))}
    for name, make in (METHODS | published).items():
        on_cpu = train(make(), net, data, CONFIG).history["loss"]
        alone = train(make(), net.to(GPU), gpu, CONFIG).history["loss"]
        beside = train_trials(make(), [net.to(GPU)] * 2, [gpu] * 2, CONFIG, [0, 0])
        for title, found in (("alone", alone), ("side by side", beside[0].history["loss"])):
            fine &= told(f"{name} {title}", torch.tensor(found), torch.tensor(on_cpu), 2e-2)
        net = net.cpu()
    return fine


if __name__ == "__main__":
    raise SystemExit(0 if all([weights(), gradients(), methods()]) else 1)
