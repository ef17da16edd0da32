"""Two real processes that share the rows of every step end where one process ends."""

from functools import partial

import pytest
import torch
from tests.nets.training import sharded_runs
from tests.processes import in_processes
from torch import nn

from giw.nets.kernels.devices import check_shardable
from giw.nets.methods import Pooled


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return in_processes(partial(sharded_runs.shared, folder=str(folder)), folder)


@pytest.mark.parametrize("name", sharded_runs.SHARED)
def test_every_method_ends_where_one_process_ends(found, name):
    alone = sharded_runs.trained(name)
    first, second = (rank[name] for rank in found)
    for key, value in alone.items():
        torch.testing.assert_close(first[key], value, rtol=1e-7, atol=1e-7)
        assert torch.equal(first[key], second[key])


def test_methods_that_differentiate_in_a_step_are_refused(found):
    for rank in found:
        assert "method 'reweight' takes gradients inside of a step" in rank["looks ahead"]


def test_processes_stop_after_a_common_epoch_and_go_on_from_the_file_of_the_first(found):
    for rank in found:
        assert "stopped after epoch 1 of 2 (train)" in rank["interrupted"]["said"]
        for key, value in found[0]["giw"].items():
            assert torch.equal(rank["interrupted"]["params"][key], value)
    assert [rank["interrupted"]["wrote"] for rank in found] == [True, False]


def test_all_processes_hear_of_a_damaged_checkpoint(found):
    for rank in found:
        assert "damaged, of rank 0 cannot be read" in rank["refused"]


def test_batch_normalisation_is_refused_by_name():
    with pytest.raises(ValueError, match=r"layer '1' is a batch normalisation.*GroupNorm"):
        check_shardable(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), Pooled())
