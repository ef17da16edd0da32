"""Density ratios where the data are: on a GPU those of the CPU. Run with ``pytest -m gpu``."""

import pytest
import torch

import giw

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ESTIMATORS = [giw.KMM, giw.KLIEP, giw.LSIF, giw.ULSIF, giw.RULSIF, giw.ClassifierRatio]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_weights_stay_on_the_device_and_are_those_of_the_cpu(estimator, dtype):
    generator = torch.Generator().manual_seed(0)
    train = torch.randn(400, 3, generator=generator, dtype=torch.float64).to(dtype)
    val = (0.5 + torch.randn(80, 3, generator=generator, dtype=torch.float64)).to(dtype)

    on_gpu, on_cpu = (estimator().fit(*pair) for pair in ((train.cuda(), val.cuda()), (train, val)))

    for found, expected in (
        (on_gpu.weight_, on_cpu.weight_),
        (on_gpu.weigh(val.cuda()), on_cpu.weigh(val)),
    ):
        assert found.is_cuda
        assert found.dtype == dtype
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-3)
