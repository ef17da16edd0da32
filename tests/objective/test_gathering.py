"""A batch shared among two real processes gives what one process gives."""

import pytest
import torch
from tests.objective import ddp_steps
from tests.processes import in_processes

import giw

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return in_processes(ddp_steps.shared, tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize("on_inputs", [False, True])
@pytest.mark.parametrize("case", ddp_steps.CASES)
def test_weights_risk_and_parameters_are_those_of_one_process(found, case, on_inputs):
    weights, risks, params = ddp_steps.alone(on_inputs=on_inputs)
    first, second = (rank[f"{case}, {on_inputs}"] for rank in found)

    for alone, a, b in zip(weights, first[0], second[0], strict=True):
        torch.testing.assert_close(torch.cat([a, b]), alone, **CLOSE)
    for alone, a, b in zip(risks, first[1], second[1], strict=True):
        torch.testing.assert_close((a + b) / 2, alone, **CLOSE)
    for alone, a, b in zip(params, first[2], second[2], strict=True):
        torch.testing.assert_close(a, alone, **CLOSE)
        assert torch.equal(a, b)


def test_rows_of_different_shapes_are_refused_on_every_process(found):
    for rank in found:
        assert (
            "different shapes on different processes: [[[1], [1]], [[2], [2]]]" in rank["refused"]
        )


def test_shared_validation_needs_a_group():
    with pytest.raises(ValueError, match="pass group="):
        giw.GIWObjective([1, 0], shared_val=True)
