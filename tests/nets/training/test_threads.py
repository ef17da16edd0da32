import pytest
import torch
from torch import nn

from giw.nets.training.threads import threads_for


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("module", "batch_size", "threads"),
    [
        (nn.Linear(10, 10), 64, 1),
        (nn.Linear(1000, 1000), 64, 2),
        (nn.Conv2d(1, 2, 3), 64, 2),
    ],
)
def test_small_perceptrons_get_one_thread_and_the_old_number_comes_back(
    module, batch_size, threads, two_threads
):
    with threads_for(module, batch_size, torch.device("cpu")):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2
