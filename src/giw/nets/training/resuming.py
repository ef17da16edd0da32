"""A run between two steps: what is saved of it, and how it goes on from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from giw.nets.training.batches import BatchStream
from giw.nets.training.checkpoint import Saved, split_from_parts, split_parts
from giw.nets.training.descent import Descent
from giw.nets.training.group import Group
from giw.nets.training.optimizer import adam_state, load_adam_state
from giw.nets.training.protocol import Params
from giw.nets.training.record import History
from giw.support import SupportSplit


def run_state(
    group: Group,
    descent: Descent,
    streams: Sequence[Params],
    phase: str,
    history: History,
    splits: Sequence[SupportSplit | None] | None,
    *,
    seconds: float,
) -> Saved:
    """All that a run needs to go on as if it had never stopped.

    ``streams`` are the states of the batch streams as they were after the epochs in ``history``.
    """
    tensors = {
        "params": dict(descent.params),
        "adam": adam_state(descent.optimizer, descent.params),
        "buffers": group.net.buffers(),
        "random": _random_state(group.device),
    }
    tensors |= {f"stream {t}": state for t, state in enumerate(streams)}
    values: dict[str, Any] = {"history": history, "splits": []}
    values["seconds"] = seconds
    for t, split in enumerate(splits or []):
        parts = None if split is None else split_parts(split)
        values["splits"].append(parts and parts[1])
        if parts:
            tensors[f"split {t}"] = parts[0]
    return Saved(phase, len(history), tensors, values)


def resume(saved: Saved, group: Group, descent: Descent, streams: Sequence[BatchStream]) -> History:
    """Put everything back where it was; the epochs that are done come back."""
    with torch.no_grad():
        for name, p in descent.params.items():
            p.copy_(saved.tensors["params"][name])
    load_adam_state(descent.optimizer, descent.params, saved.tensors.get("adam", {}))
    group.net.set_buffers(saved.tensors.get("buffers", {}))
    for t, stream in enumerate(streams):
        stream.load_state(saved.tensors[f"stream {t}"])
    if group.writes:  # what was saved is the first process's; the others go on with their own
        _set_random_state(saved.tensors["random"], group.device)
    return list(saved.values["history"])


def steps_taken(saved: Saved | None) -> tuple[int, Params]:
    """Steps of the first epoch that a saved run has done, and what they logged."""
    if saved is None or not saved.step:
        return 0, {}
    logged = saved.tensors["sums"]
    return saved.step, {name: logged[name] for name in saved.values["logged"]}


def saved_splits(saved: Saved, device: torch.device) -> list[SupportSplit | None]:
    """The split of each trial, None where there was none."""
    return [
        None
        if values is None
        else split_from_parts(saved.tensors.get(f"split {t}", {}), values, device)
        for t, values in enumerate(saved.values["splits"])
    ]


def _random_state(device: torch.device) -> Params:
    state = {"cpu": torch.random.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(state: Params, device: torch.device) -> None:
    torch.random.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
