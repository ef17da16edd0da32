import pytest
import torch
from tests.nets.methods.steps import a_batch, descend, losses, start
from tests.nets.training.toy import toy_net

from giw.nets.methods import DFR
from giw.nets.methods.baselines import balanced_mean
from giw.nets.training import FunctionalNet


def test_it_descends_validation_losses_and_the_size_of_the_last_layer():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    last = [name for name in params if name.endswith("weight")][-1]
    _, val_loss = losses(net, params, batch)
    expected = val_loss.mean() + 0.3 * params[last].abs().sum()
    torch.testing.assert_close(DFR(penalty=0.3).loss(net, params, batch)[0], expected)


def test_pooled_data_count_by_halves_with_balanced_classes():
    net, batch = FunctionalNet(toy_net()), a_batch()
    sides = zip(losses(net, net.params(), batch), (batch.y, batch.y_val), strict=True)
    halves = [torch.stack([x[y == c].mean() for c in y.unique()]).mean() for x, y in sides]
    found = DFR(data="pooled", penalty=0.0).loss(net, net.params(), batch)[0]
    torch.testing.assert_close(found, (halves[0] + halves[1]) / 2)


def test_a_class_that_is_not_there_counts_for_nothing():
    loss, y = torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0, 0, 2])
    assert balanced_mean(loss, y, 3) == (2.0 + 8.0) / 2


@pytest.mark.parametrize("data", ["val", "pooled"])
def test_features_stay_as_they_were(data):
    module = toy_net()
    before, after = start(DFR(), module), descend(DFR(data=data), module, a_batch(), 5)
    names = list(before)
    moved = [not torch.equal(before[name], after[name]) for name in names]
    assert moved == [name.split(".")[0] == names[-1].split(".")[0] for name in names]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"data": "train"}, "data must be one of val, pooled"), ({"penalty": -1}, "not be negative")],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DFR(**settings)
