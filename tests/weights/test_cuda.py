"""Density ratios where the data are: on a GPU those of the CPU. Run with ``pytest -m gpu``."""

import pytest
import torch

import giw

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FUNCTIONS = [giw.kmm, giw.kliep, giw.lsif, giw.ulsif, giw.rulsif, giw.classifier_ratio]
ESTIMATORS = [giw.KMM, giw.KLIEP, giw.LSIF, giw.ULSIF, giw.RULSIF, giw.ClassifierRatio]


def two_samples(dtype, d):
    generator = torch.Generator().manual_seed(0)
    train = torch.randn(400, d, generator=generator, dtype=torch.float64)
    val = 0.5 + torch.randn(80, d, generator=generator, dtype=torch.float64)
    return train.to(dtype), val.to(dtype)


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_weights_stay_on_the_device_and_are_those_of_the_cpu(function, d):
    train, val = two_samples(torch.float64, d)

    on_gpu, on_cpu = function(train.cuda(), val.cuda()), function(train, val)

    assert on_gpu.is_cuda
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_single_precision_is_enough(function):
    train, val = two_samples(torch.float32, 3)

    weight = function(train.cuda(), val.cuda())

    assert weight.dtype == torch.float32
    assert weight.min() >= 0
    assert float(weight.mean()) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_new_points_are_weighed_on_the_device(estimator):
    train, val = two_samples(torch.float64, 3)

    weight = estimator().fit(train.cuda(), val.cuda()).weigh(val[:10].cuda())

    assert weight.is_cuda
    assert weight.shape == (10,)
    expected = estimator().fit(train, val).weigh(val[:10])
    torch.testing.assert_close(weight.cpu(), expected, rtol=1e-3, atol=1e-3)
