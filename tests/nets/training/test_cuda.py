"""What only a GPU can show: run with ``pytest -m gpu``."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.nets.training.test_trials import SEEDS, assert_same, tiny_images, tiny_lenet
from tests.nets.training.toy import toy_net, toy_tensors
from torch.func import grad, vmap

from giw.nets.images import Augmentation
from giw.nets.kernels.devices import precision_for
from giw.nets.kernels.patches import best_of_four, cut_patches
from giw.nets.kernels.products import by_products
from giw.nets.methods import GIW, METHODS
from giw.nets.models import LeNet5, ResNet18, initialised
from giw.nets.training import Tensors, TrainingConfig, train, train_trials
from giw.objective import DynamicWeights, dynamic_kmm

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda")
CONFIG = TrainingConfig(
    epochs=3, pretrain_epochs=2, batch_size=16, learning_rate=0.01, precision="float32"
)
EVERY_METHOD = {name: make() for name, make in METHODS.items()}
EVERY_METHOD["giw, published width"] = GIW(weigh=DynamicWeights(bandwidth="paper"))
by_name = pytest.mark.parametrize("method", EVERY_METHOD.values(), ids=EVERY_METHOD)


def on_gpu(data):
    tensors = {k: v.to(GPU) for k, v in vars(data).items() if isinstance(v, torch.Tensor)}
    return Tensors(**tensors)


@pytest.mark.parametrize("bandwidth", ["cross", "median", "paper", 0.5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_weights_are_those_of_the_cpu(scale, bandwidth):
    generator = torch.Generator().manual_seed(0)
    losses = scale * torch.rand(256, generator=generator).pow(3)
    val, member = scale * torch.rand(20, generator=generator), torch.rand(20, generator=generator)
    expected = dynamic_kmm(losses, val, member, bandwidth=bandwidth)
    found = dynamic_kmm(losses.to(GPU), val.to(GPU), member.to(GPU), bandwidth=bandwidth)
    torch.testing.assert_close(found.cpu(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("bandwidth", ["cross", "paper"])
@pytest.mark.parametrize("n", [2, 50, 255, 256])
def test_weights_of_stacked_trials_of_any_size(n, bandwidth):
    generator = torch.Generator().manual_seed(n)
    x, v = torch.rand(3, n, generator=generator).square(), torch.rand(3, 7, generator=generator)
    member = torch.tensor([[1.0] * 7, [0.0] * 7, [1, 0, 1, 0, 1, 0, 0.5]])
    x[2] = 1.5
    weigh = vmap(DynamicWeights(bandwidth))
    stacked, expected = weigh(x.to(GPU), v.to(GPU), member.to(GPU)), weigh(x, v, member)
    torch.testing.assert_close(stacked.cpu(), expected, rtol=2e-3, atol=2e-3)


def test_an_epoch_may_be_shorter_than_the_trial_runs_of_a_recording():
    data = toy_tensors(n=20)
    found, expected = (train(GIW(), toy_net().to(d.x_train.device), d, replace(CONFIG, epochs=2))
                       for d in (on_gpu(data), data))  # fmt: skip
    np.testing.assert_allclose(found.history["loss"], expected.history["loss"], rtol=1e-3)


@pytest.mark.parametrize("k", [3, 6])
def test_patches_and_their_gradients_are_those_of_torch(k):
    x = torch.randn(4, 5, 14, 12, 3)

    def curve(z):
        return cut_patches(z, k).pow(3).sum()

    for first in (curve, lambda z: grad(curve)(z).pow(2).sum()):
        found, expected = vmap(grad(first))(x.to(GPU)), vmap(grad(first))(x)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-3)


def test_best_of_four_and_its_gradients_are_those_of_torch():
    x = torch.randn(4, 50, 4, 6)

    def curve(z):
        return best_of_four(z).pow(3).sum()

    for first in (curve, lambda z: grad(curve)(z).pow(2).sum()):
        found, expected = vmap(grad(first))(x.to(GPU)), vmap(grad(first))(x)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)


@by_name
def test_a_replayed_graph_is_the_run_without_one(method):
    data = on_gpu(toy_tensors())
    captured = train(method, toy_net().to(GPU), data, CONFIG)
    eager = train(method, toy_net().to(GPU), data, replace(CONFIG, cuda_graph=False))
    assert_same(captured, eager)


@by_name
def test_trials_side_by_side_end_where_each_ends_alone(method):
    modules = [toy_net(seed).to(GPU) for seed in SEEDS]
    datas = [on_gpu(toy_tensors(seed=seed)) for seed in SEEDS]
    together = train_trials(method, modules, datas, CONFIG, SEEDS)
    for t, seed in enumerate(SEEDS):
        alone = train(method, modules[t], datas[t], CONFIG, random_state=seed)
        assert_same(together[t], alone, tolerance=1e-3)


@pytest.mark.parametrize("augmentation", [None, Augmentation(rotations=(10.0,), translate=0.1)])
def test_the_gpu_ends_where_the_cpu_ends(augmentation):
    """Stacked, captured and by Triton kernels, against plain convolutions on the CPU."""
    config = replace(CONFIG, augmentation=augmentation, learning_rate=5e-4)
    modules, datas = [tiny_lenet(seed) for seed in SEEDS], [tiny_images(seed) for seed in SEEDS]
    together = train_trials(
        GIW(), [m.to(GPU) for m in modules], [on_gpu(data) for data in datas], config, SEEDS
    )
    for t, seed in enumerate(SEEDS):
        alone = train(GIW(), tiny_lenet(seed), datas[t], config, random_state=seed)
        together[t].module.cpu()
        for name, p in alone.module.state_dict().items():
            torch.testing.assert_close(
                together[t].module.state_dict()[name], p, rtol=1e-3, atol=1e-3
            )
        np.testing.assert_allclose(together[t].history["loss"], alone.history["loss"], rtol=1e-2)


def lenet_gradients(precision):
    """Of a mean square output: by products on the GPU, and in float64."""
    module, x = initialised(lambda: LeNet5(10, channels=3), 0), torch.rand(36, 3, 32, 32)
    twin = by_products(module.to(GPU))
    with precision_for(precision, twin, GPU).products():
        loss = twin(x.to(GPU)).square().mean()
        found = torch.autograd.grad(loss, list(twin.parameters()))
    exact = module.cpu().double()
    expected = torch.autograd.grad(exact(x.double()).square().mean(), list(exact.parameters()))
    return [torch.cat([g.flatten() for g in part]).double().cpu() for part in (found, expected)]


@pytest.mark.parametrize(("precision", "error"), [("float32", 1e-4), ("auto", 3e-2)])
def test_products_keep_the_bits_of_their_format(precision, error):
    """Rounding to eleven bits also sends some gradients through another window of the four."""
    found, expected = lenet_gradients(precision)
    assert (found - expected).norm() <= error * expected.norm()


@pytest.mark.parametrize(("precision", "error"), [("float32", 1e-4), ("auto", 2e-2)])
def test_meta_gradients_go_through_the_product_form(precision, error):
    """Gradients of gradients, as Reweight and MW-Net take them."""
    module, x = tiny_lenet(0).double(), torch.rand(4, 1, 32, 32, dtype=torch.float64)
    twin = by_products(module).float().to(GPU)
    found = []
    for net, images in ((module, x), (twin, x.float().to(GPU))):
        params = list(net.parameters())
        with precision_for(precision, net, images.device).products():
            first = torch.autograd.grad(net(images).square().sum(), params, create_graph=True)
            second = torch.autograd.grad(sum(g.square().sum() for g in first), params)
        found.append(torch.cat([g.flatten() for g in second]).double().cpu())
    assert (found[1] - found[0]).norm() <= error * found[0].norm()


def test_resnet_trains_in_bfloat16_and_keeps_its_statistics():
    data = on_gpu(tiny_images(0))
    big = {f"x_{k}": getattr(data, f"x_{k}").repeat(1, 3, 2, 2) for k in ("train", "val", "test")}
    module = initialised(lambda: ResNet18(2), 0).to(GPU)
    config = replace(CONFIG, precision="auto", epochs=2)
    record = train(GIW(), module, replace(data, **big), config)
    assert np.isfinite(record.history["loss"]).all()
    assert int(record.module.norm.num_batches_tracked) == 2 * 5 + 2 * 7
    assert all(p.dtype == torch.float32 for p in record.module.parameters())


def test_a_stopped_run_is_taken_up_again(tmp_path):
    data, file = on_gpu(toy_tensors()), tmp_path / "run"
    whole = train(GIW(), toy_net().to(GPU), data, CONFIG)

    def stop(phase, epoch, values):
        if (phase, epoch) == ("train", 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(GIW(), toy_net().to(GPU), data, CONFIG, checkpoint=file, on_epoch=stop)
    assert_same(train(GIW(), toy_net().to(GPU), data, CONFIG, checkpoint=file), whole)
