import torch

from giw.nets.methods.averaging import first_averages, moved_averages
from giw.nets.training import AVERAGE, prediction_params


def test_an_average_starts_short_and_ends_at_its_decay():
    params = {"w": torch.tensor([1.0]), "method.other": torch.zeros(1)}
    params |= {AVERAGE + "w": torch.tensor([0.0])}
    first = moved_averages(params, torch.tensor(0.0), decay=0.9)
    assert first.keys() == {AVERAGE + "w"}
    torch.testing.assert_close(first[AVERAGE + "w"], torch.tensor([0.9]))  # keeps one tenth
    late = moved_averages(params, torch.tensor(1e6), decay=0.9)
    torch.testing.assert_close(late[AVERAGE + "w"], torch.tensor([0.1]))


def test_averages_start_at_the_parameters_and_predict_in_their_stead():
    params = {"w": torch.tensor([1.0]), "b": torch.tensor([2.0])}
    averages = first_averages({"w": params["w"]})
    assert averages[AVERAGE + "w"] is not params["w"]
    averages[AVERAGE + "w"] += 5
    found = prediction_params(params | averages)
    assert found["w"] is averages[AVERAGE + "w"]
    assert found["b"] is params["b"]
    assert found.keys() == params.keys()
