"""Where a net computes."""

from __future__ import annotations

import torch


def as_device(name: str | torch.device) -> torch.device:
    """A device that is there; "auto" is the GPU if there is one."""
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)  # a GPU that is not there is missed only now
    except (RuntimeError, TypeError, AssertionError) as error:
        said = (str(error).splitlines() or ["no such device"])[0]
        raise ValueError(
            f"device {name!r} cannot be used: {said}; pass 'auto', 'cpu' or the name of a GPU that "
            "is there, such as 'cuda:0'"
        ) from error
    return device
