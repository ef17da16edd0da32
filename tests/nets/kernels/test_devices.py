"""Where a net computes, and what is put back afterwards."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import nn

import giw
from giw.nets.kernels.devices import as_device, threads_for


def threads():
    """Of torch and of each library that is loaded; a fit may load more of them."""
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools | {"torch": torch.get_num_threads()}


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("module", "count"),
    [(nn.Linear(10, 10), 1), (nn.Conv2d(1, 6, 5), 1), (nn.Linear(2000, 1000), 2)],
)
def test_small_nets_get_one_thread_and_the_callers_settings_come_back(module, count, two_threads):
    before = threads()
    with threads_for(module, torch.device("cpu")):
        assert torch.get_num_threads() == count
        if count == 1:
            assert set(threads().values()) == {1}
    assert before.items() <= threads().items()


def test_a_fit_computes_on_one_thread_and_puts_the_settings_back_even_when_it_fails(two_threads):
    seen = []

    class Net(nn.Linear):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            if len(seen) > 2:
                raise RuntimeError("enough")
            return super().forward(x)

    X, before = np.random.default_rng(0).normal(size=(60, 3)), threads()
    with pytest.raises(RuntimeError, match="enough"):
        giw.GIWClassifier(Net(3, 2), random_state=0).fit(X, X[:, 0] > 0, X[:9], X[:9, 0] > 0)
    assert seen[-1] == 1
    assert before.items() <= threads().items()


@pytest.mark.parametrize("device", ["meta", "cuda:99", "gpu"])
def test_a_device_that_cannot_compute_is_refused_at_the_door(device):
    with pytest.raises(ValueError, match="cannot be used"):
        as_device(device)
