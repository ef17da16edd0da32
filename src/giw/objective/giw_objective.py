"""GIW for other people's training loops."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from giw.checks import as_array
from giw.objective.terms import DynamicWeights, generalized_risk
from giw.support import SupportSplit


class GIWObjective:
    r"""Per-sample losses of a training and a validation batch in, the GIW risk out.

    .. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j

    The weights :math:`w` match the training batch to the validation points inside the training
    support; they are solved for in the call and carry no gradient.

    Parameters
    ----------
    split : SupportSplit, or array of shape (m,)
        The split of the whole validation set, or the membership of each of its points, between 0
        and 1. :math:`\alpha` is the mean membership.
    bandwidth, ridge, upper
        See :class:`giw.objective.DynamicWeights`.
    group : torch.distributed.ProcessGroup, optional
        Processes that share a batch, for DistributedDataParallel: ``dist.group.WORLD``. Each calls
        with its own part, all parts are gathered (without gradient), and *one* matching problem is
        solved for the whole batch, so that the weights do not depend on the number of processes.
        The value is scaled such that the mean of the gradients over the processes, which is what
        DistributedDataParallel takes, is the gradient of the risk of the whole batch; the mean of
        the values is that risk. Without a group the process is on its own.
    shared_val : bool, default=False
        With a group: whether every process calls with the *same* validation points rather than
        with its part of them.

    Attributes
    ----------
    weight_ : Tensor of shape (n,)
        Weights of the last call, mean one; with a group, those of this process's points.

    Examples
    --------
    >>> import torch, giw
    >>> objective = giw.GIWObjective([True, False])  # or the split
    >>> train_loss = torch.tensor([1.0, 3.0], requires_grad=True)
    >>> val_loss = torch.tensor([1.0, 4.0], requires_grad=True)
    >>> loss = objective(train_loss, val_loss)
    >>> loss.backward()
    >>> val_loss.grad  # only the outside point is trained on
    tensor([0.0000, 0.5000])
    """

    def __init__(
        self,
        split: SupportSplit | Any = None,
        *,
        bandwidth: str | float = "cross",
        ridge: float = 0.003,
        upper: float = 50.0,
        group: dist.ProcessGroup | None = None,
        shared_val: bool = False,
        alpha: None = None,
    ) -> None:
        if alpha is not None or split is None:
            raise TypeError(
                "GIWObjective takes the split, and alpha from it: giw.GIWObjective(split), and in "
                "each step objective(train_loss, val_loss, val_index)"
            )
        if shared_val and group is None:
            raise ValueError(
                "shared_val speaks of processes that share a batch; pass group= too, for example "
                "torch.distributed.group.WORLD, or leave both out"
            )
        self.membership = _as_membership(split)  # (m,)  of the whole validation set
        self.alpha = float(self.membership.mean())
        self.group, self.shared_val = group, shared_val
        self.weigh = DynamicWeights(bandwidth=bandwidth, ridge=ridge, upper=upper)

    def __call__(
        self,
        train_loss: Tensor,  # (n,)
        val_loss: Tensor,  # (k,)
        val_index: Any = None,  # (k,)
        *,
        train_z: Tensor | None = None,  # (n, d)
        val_z: Tensor | None = None,  # (k, d)
    ) -> Tensor:  # ()
        """Risk of one step.

        Parameters
        ----------
        train_loss, val_loss : Tensor of shape (n,) and (k,)
            Losses with ``reduction="none"``.
        val_index : int array or Tensor of shape (k,), optional
            Rows of the validation points of this batch in the data that were split. If left out,
            the batch is the whole validation set in its order.
        train_z, val_z : Tensor of shape (n, d) and (k, d), optional
            Estimate the weights on this representation instead of on the losses.
        """
        for loss, name in ((train_loss, "train_loss"), (val_loss, "val_loss")):
            _check_floats(loss, name)
            if loss.ndim != 1 or len(loss) == 0:
                raise ValueError(
                    f"{name} must hold one loss per point, shape (n,) with n > 0, got shape "
                    f'{tuple(loss.shape)}; compute it with reduction="none"'
                )
        membership = self._of_batch(val_loss, val_index)
        if train_z is None and val_z is None:
            train_z, val_z = train_loss, val_loss
        elif train_z is None or val_z is None:
            raise ValueError("train_z and val_z come together; got only one of them")
        else:
            _check_representation(train_z, val_z, len(train_loss), len(val_loss))
        if self.group is None:
            self.weight_ = self.weigh(train_z, val_z, membership)
        else:
            self.weight_, of_train, of_val = self._shared(self.group, train_z, val_z, membership)
            train_loss, val_loss = of_train * train_loss, of_val * val_loss
        return generalized_risk(train_loss, self.weight_, val_loss, membership, alpha=self.alpha)

    def _shared(self, group: dist.ProcessGroup, *rows: Tensor) -> tuple[Tensor, float, float]:
        r"""Weights of this process's points in the whole batch, and factors for its two means.

        A process has n of the batch's N points, so its mean makes up n / N of the batch's; of R
        processes the mean is taken, hence :math:`R n / N`: one where all parts have equal size.
        """
        # numbers for each point: next to nothing beside the gradients that are sent anyway
        ranks, rank = dist.get_world_size(group), dist.get_rank(group)
        parts: list[Any] = [None] * ranks
        dist.all_gather_object(parts, [z.detach().cpu() for z in rows], group=group)
        if len({tuple(z.shape[1:] for z in part) for part in parts}) > 1:
            shapes = [[list(z.shape[1:]) for z in part[:2]] for part in parts]
            raise ValueError(
                f"rows have different shapes on different processes: {shapes}; pass the same "
                "representation everywhere"
            )
        train, val, inside = (
            torch.cat(part).to(rows[0].device) for part in zip(*parts, strict=True)
        )
        of_val = ranks * len(rows[1]) / len(val)
        if self.shared_val:
            # the same points, but dropout or another make of machine may have changed their losses
            val, inside, of_val = *(z.to(rows[0].device) for z in parts[0][1:]), 1.0
        weight = self.weigh(train, val, inside)  # (N,), the same on every process
        start = sum(len(part[0]) for part in parts[:rank])
        n = len(rows[0])
        return weight[start : start + n], ranks * n / len(train), of_val

    def _of_batch(self, val_loss: Tensor, val_index: Any) -> Tensor:
        """Membership of the validation points of a batch, on their device, (k,)."""
        if self.membership.device != val_loss.device or self.membership.dtype != val_loss.dtype:
            self.membership = self.membership.to(val_loss)  # once; later batches find it there
        m, k = len(self.membership), len(val_loss)
        if val_index is None:
            if k != m:
                raise ValueError(
                    f"the split has {m} validation points and this batch {k}; pass val_index, the "
                    "rows of the batch in the data that were split"
                )
            return self.membership
        index = torch.as_tensor(val_index, device=val_loss.device)
        if index.dtype.is_floating_point or index.dtype == torch.bool or index.shape != (k,):
            raise ValueError(
                f"val_index must hold the row of each validation loss, whole numbers of shape "
                f"({k},), got {index.dtype} of shape {tuple(index.shape)}"
            )
        # looking at values would stall a GPU; indexing checks them there by itself
        if not index.is_cuda and k and not (0 <= int(index.min()) <= int(index.max()) < m):
            raise ValueError(
                f"val_index must lie between 0 and {m - 1}, the rows of the data that were split; "
                f"got {int(index.min())} to {int(index.max())}"
            )
        return self.membership[index]


def _check_floats(value: Any, name: str) -> None:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = f"one of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must be a tensor of floats, got {kind}")
    if not value.is_cuda:  # where looking at values does not stall anything
        as_array(value.detach(), name)


def _as_membership(split: SupportSplit | Any) -> Tensor:
    """Membership of every validation point, (m,), as float64."""
    try:
        member = torch.as_tensor(getattr(split, "membership", split)).to(torch.float64)
    except (RuntimeError, TypeError, ValueError):
        raise ValueError(
            f"GIWObjective takes a SupportSplit, or one number between 0 and 1 for each validation "
            f"point, got {split!r}"
        ) from None
    if member.ndim != 1 or not len(member) or not bool(((member >= 0) & (member <= 1)).all()):
        raise ValueError(
            f"a split has one membership between 0 and 1 for each validation point, got {split!r}"
        )
    return member


def _check_representation(train_z: Tensor, val_z: Tensor, n: int, m: int) -> None:
    """One row per loss, and the same features in both."""
    for z, name, rows in ((train_z, "train_z", n), (val_z, "val_z", m)):
        _check_floats(z, name)
        if z.ndim not in (1, 2) or len(z) != rows:
            flat = f"; flatten each point first: {name}.flatten(1)" * (z.ndim > 2)
            raise ValueError(
                f"{name} must hold one row per loss, shape ({rows}, d), got {tuple(z.shape)}{flat}"
            )
    if train_z.shape[1:] != val_z.shape[1:]:
        raise ValueError(
            f"train_z and val_z need the same features, got shapes {tuple(train_z.shape)} and "
            f"{tuple(val_z.shape)}"
        )
