"""Two real processes that share the rows of every step end where one process ends."""

from functools import partial

import pytest
import torch
from tests.nets.training import sharded_runs
from tests.nets.training.toy import toy_net
from tests.processes import in_processes
from torch import nn

from giw.nets.methods import METHODS
from giw.nets.training import FunctionalNet
from giw.nets.training.ranks import check_shardable


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return in_processes(partial(sharded_runs.shared, folder=str(folder)), folder)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_where_one_process_ends(found, name):
    alone = sharded_runs.trained(name)
    first, second = (rank[name] for rank in found)
    for key, value in alone.items():
        torch.testing.assert_close(first[key], value, rtol=1e-7, atol=1e-7)
        assert torch.equal(first[key], second[key])


@pytest.mark.parametrize("road", ["forward", "backward twice"])
def test_derivatives_of_derivatives_are_those_of_one_process(found, road):
    alone = sharded_runs.slopes(FunctionalNet(toy_net().double()))[road]
    for rank in found:
        torch.testing.assert_close(rank["slopes"][road], alone)


def test_processes_stop_at_a_common_step_and_go_on_from_the_file_of_the_first(found):
    """One step of the second epoch is done: processes ask each other before every second step."""
    for rank in found:
        assert "stopped in epoch 2 of 2 (train)" in rank["interrupted"]["said"]
        for key, value in found[0]["giw"].items():
            assert torch.equal(rank["interrupted"]["params"][key], value)
    assert [rank["interrupted"]["wrote"] for rank in found] == [True, False]


def test_all_processes_hear_of_a_damaged_checkpoint(found):
    for rank in found:
        assert "damaged, of rank 0 cannot be read" in rank["refused"]


def test_batch_normalisation_is_refused_by_name():
    with pytest.raises(ValueError, match=r"layer '1' is a batch normalisation.*GroupNorm"):
        check_shardable(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
