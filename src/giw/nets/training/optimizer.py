"""One Adam for one trial or many: it works element by element, so stacked trials stay apart."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from giw.nets.training.config import TrainingConfig
from giw.nets.training.protocol import OwnParams, Params


def make_adam(params: Params, own: OwnParams, config: TrainingConfig) -> torch.optim.Adam:
    """Adam over the net's parameters and, in a group of its own, the method's.

    On CUDA the learning rate is a tensor and the step count lives on the device, so that a step
    can be captured in a graph and the rate still be changed between replays.
    """
    trained = [p for name, p in params.items() if p.requires_grad and name not in own.params]
    device = trained[0].device
    optimizer = torch.optim.Adam(
        trained,
        lr=_rate(config.learning_rate, device),
        weight_decay=config.weight_decay,
        fused=True,
        capturable=device.type == "cuda",
    )
    if own.params:
        optimizer.add_param_group(
            {
                "params": [params[name] for name in own.params],
                "lr": _rate(own.learning_rate, device),
                "weight_decay": own.weight_decay,
            }
        )
    for group in optimizer.param_groups:
        group["first_rate"] = float(group["lr"])
    return optimizer


def _rate(value: float, device: torch.device) -> float | Tensor:
    return torch.tensor(value, device=device) if device.type == "cuda" else value


def scale_rates(optimizer: torch.optim.Optimizer, factor: float) -> float:
    """Set every group's learning rate to ``factor`` times its first; return the net's."""
    for group in optimizer.param_groups:
        rate = factor * group["first_rate"]
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
    return factor * float(optimizer.param_groups[0]["first_rate"])


def adam_state(optimizer: torch.optim.Optimizer, params: Params) -> Params:
    """Adam's memory by name, copied: moments and step counts."""
    return {
        f"{name}.{key}": value.detach().clone()
        for name, p in params.items()
        for key, value in optimizer.state.get(p, {}).items()
    }


def load_adam_state(optimizer: torch.optim.Optimizer, params: Params, state: Params) -> None:
    """Put such a copy back; parameters without an entry start afresh.

    Memory that is there already is overwritten in place: a captured graph points to it.
    """
    for name, p in params.items():
        found = {
            key.removeprefix(f"{name}."): value
            for key, value in state.items()
            if key.rpartition(".")[0] == name
        }
        if p in optimizer.state:
            for key, value in optimizer.state[p].items():
                value.copy_(found[key]) if key in found else value.zero_()
        elif found:
            optimizer.state[p] = {k: v.detach().clone().to(p.device) for k, v in found.items()}


def stack_adam_states(states: Sequence[Params]) -> Params:
    """Moments of trials side by side; they took the same steps, so one count serves all."""
    return {
        key: value if key.endswith(".step") else torch.stack([state[key] for state in states])
        for key, value in states[0].items()
    }


def trial_adam_state(state: Params, trial: int) -> Params:
    """One trial's share of stacked moments."""
    return {k: v if k.endswith(".step") else v[trial].clone() for k, v in state.items()}
