"""Two real processes that share the rows of every step end where one process ends."""

from functools import partial

import pytest
import torch
from tests.processes import in_processes
from tests.training import sharded_runs
from tests.training.toy import toy_net
from torch import nn

from giw.methods import METHODS
from giw.training import FunctionalNet
from giw.training.sharded_net import check_shardable


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


def test_one_process_writes_the_checkpoint_and_all_must_be_able_to_read_it(found):
    assert [rank["wrote"] for rank in found] == [True, False]
    for rank in found:
        assert "not the same for all 2 processes" in rank["refused"]


def test_batch_normalisation_is_refused_by_name():
    with pytest.raises(ValueError, match=r"layer '1' is a batch normalisation.*GroupNorm"):
        check_shardable(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
