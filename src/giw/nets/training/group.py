"""Trials that take every step together: joined for the steps, and taken apart again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from giw.nets.devices import threads_for
from giw.nets.kernels.fused_norm import fuse_norms
from giw.nets.kernels.precision import precision_for
from giw.nets.kernels.products import by_products
from giw.nets.training.batches import BatchStream, seeded_generator, seeded_stream
from giw.nets.training.config import TrainingConfig
from giw.nets.training.descent import Descent, FlatData, Loss
from giw.nets.training.evaluation import Evaluation
from giw.nets.training.net import FunctionalNet, as_input, net_params
from giw.nets.training.optimizer import stack_adam_states
from giw.nets.training.pretrained import Pretrained, evidence_at, untrained
from giw.nets.training.protocol import Evidence, Method, OwnParams, Params
from giw.nets.training.ranks import any_rank_asked
from giw.nets.training.record import History, TrainingRecord
from giw.nets.training.sharded_net import ShardedNet
from giw.nets.training.stopping import asked_to_stop
from giw.nets.training.tensors import Tensors
from giw.objective.gathering import first_rank_says
from giw.support import SupportSplit


@dataclass
class Group:
    """Trials that take every step together; a single trial is a group of one.

    With ``stacked`` all parameters get a leading dimension of trials and the method's loss is
    vectorised over it. Without, the group has one trial and nothing is added. With ``ranks`` the
    rows of every step are shared among processes.
    """

    modules: Sequence[nn.Module]
    datas: Sequence[Tensors]
    config: TrainingConfig
    random_states: Sequence[int]
    stacked: bool
    ranks: dist.ProcessGroup | None = None

    def __post_init__(self) -> None:
        self.device = self.datas[0].x_train.device
        module = self.modules[0]
        precision = precision_for(self.config.precision, module, self.device, stacked=self.stacked)
        products = self.stacked or self.device.type == "cuda"
        form = by_products(module) if products else copy.deepcopy(module)
        fuse_norms(form, self.config.fused_norm)
        self.net = FunctionalNet(form.train(), precision)
        if self.ranks is not None:
            if self.stacked:
                raise ValueError("trials side by side are for one process; leave ranks out")
            self.net = ShardedNet(form.train(), precision, group=self.ranks)
        self.flat = FlatData.of(self.datas)

    @property
    def writes(self) -> bool:
        """Whether this process is the one that saves."""
        return self.ranks is None or dist.get_rank(self.ranks) == 0

    def asked_to_stop(self) -> bool:
        """Whether this process was asked to stop, or any that shares its batches."""
        if self.ranks is None:
            return asked_to_stop()
        return any_rank_asked(self.ranks, self.device)

    @property
    def trials(self) -> range:
        """Their numbers."""
        return range(len(self.modules))

    def join(self, parts: Sequence[Params]) -> Params:
        """Leaves to train, stacked where trials are."""
        return {
            name: (torch.stack([part[name].detach() for part in parts]) if self.stacked
                   else p.detach().clone()).requires_grad_(p.requires_grad)
            for name, p in parts[0].items()
        }  # fmt: skip

    def apart(self, params: Params, trial: int) -> Params:
        """One trial's share of what was joined, copied."""
        return {
            name: (p[trial] if self.stacked else p).detach().clone().requires_grad_(p.requires_grad)
            for name, p in params.items()
        }

    def join_adam(self, starts: Sequence[Pretrained]) -> Params:
        """Adam's memory for what was joined."""
        states = [start.optimizer for start in starts]
        return stack_adam_states(states) if self.stacked else states[0]

    def params(
        self,
        method: Method,
        starts: Sequence[Pretrained],
        splits: Sequence[SupportSplit | None],
    ) -> tuple[Params, OwnParams]:
        """The net's parameters, the method's and its memory, and how its parameters are moved."""
        owns, states = [], []
        for t in self.trials:
            net = FunctionalNet(copy.deepcopy(self.modules[t]).train())
            x = as_input(self.datas[t].x_train[:2])
            owns.append(method.own_params(net, starts[t].params, x, self.random_states[t]))
            states.append(method.state(self.evidence(t, starts[t]), splits[t], starts[t].params))
        params = self.join([start.params for start in starts])
        own = self.join([own.params for own in owns])
        params |= {name: p.requires_grad_() for name, p in own.items()}
        memory = self.join(states)
        params |= {name: p.requires_grad_(False) for name, p in memory.items()}
        return params, owns[0]

    def untrained(self, trial: int) -> Pretrained:
        """Where a trial starts that is not pretrained."""
        return untrained(
            self.modules[trial],
            self.datas[trial],
            self.config,
            random_state=self.random_states[trial],
            precision=self.net.precision,
        )

    def evidence(self, trial: int, start: Pretrained) -> Evidence:
        """What a method may look at before it trains a trial."""
        augmented = self.config.augmentation is not None
        module, data = self.modules[trial], self.datas[trial]
        return evidence_at(start, module, data, augmented=augmented, trial=trial)

    def stream(self, trial: int, purpose: str, seen: Tensor | None = None) -> BatchStream:
        """Batches of one trial: of all its rows, or of those that pretraining may see."""
        data, training = self.datas[trial], purpose == "train"
        rows = torch.arange(len(data.y_train)) if seen is None else seen.nonzero()[:, 0]
        augmentation = self.config.augmentation if training else None
        if augmentation is not None:
            _check_images(data.x_train)
        return BatchStream(
            rows, len(data.y_val) if training else 0, self.config.batch_size,
            random_state=self.random_states[trial], purpose=purpose,
            augmentation=augmentation, side=data.x_train.shape[-1],
            weight=None if data.weight is None else data.weight.cpu()[rows],
            over_val=training and self.config.epoch_of == "val",
        )  # fmt: skip

    def descent(
        self,
        loss: Loss,
        params: Params,
        optimizer: torch.optim.Optimizer,
        splits: Sequence[SupportSplit | None],
    ) -> Descent:
        """Steps down a loss, all trials at once."""
        inside, alpha = self._memberships(splits)
        return Descent(
            loss, self.net, params, optimizer, self.flat, inside, alpha,
            stacked=self.stacked,
            # messages between processes are not recorded with a step
            captured=self.config.cuda_graph and self.ranks is None,
        )  # fmt: skip

    def evaluation(self, descent: Descent) -> Evaluation | None:
        """Test accuracy as training goes on, or None where there are no test data."""
        if any(data.x_test is None or data.y_test is None for data in self.datas):
            return None
        return Evaluation(
            self.net, net_params(descent.params), self.datas, stacked=self.stacked,
            captured=self.config.cuda_graph and self.ranks is None,
        )  # fmt: skip

    def _memberships(self, splits: Sequence[SupportSplit | None]) -> tuple[Tensor, Tensor]:
        """Membership of all validation points and its mean per trial; zero without a split."""
        inside, alpha = [], []
        for split, data in zip(splits, self.datas, strict=True):
            member = torch.zeros(len(data.y_val)) if split is None else split.membership
            inside.append(torch.as_tensor(member, dtype=torch.float32, device=self.device))
            alpha.append(0.0 if split is None else float(split.alpha))
        member, share = torch.cat(inside), torch.tensor(alpha, device=self.device)
        if self.ranks is not None:  # each process has split, and rounding must not part them
            member, share = first_rank_says(member, share, group=self.ranks)
        return member, share

    def records(
        self,
        method: Method,
        params: Params,
        splits: Sequence[SupportSplit | None],
        history: History,
        seconds: float,
    ) -> list[TrainingRecord]:
        """What is left of each trial; the seconds are those of all of them."""
        share = seconds / len(self.modules)
        records = []
        for t, split in enumerate(splits):
            net = FunctionalNet(copy.deepcopy(self.modules[t]))
            net.set_buffers(self.net.buffers())
            # what only the last epochs have, such as test accuracy, is not a number before
            names = history[-1][t]
            columns = {name: np.array([e[t].get(name, np.nan) for e in history]) for name in names}
            settings = {**self.config.as_dict(), "random_state": self.random_states[t]}
            module = net.with_params(self.apart(net_params(params), t))
            records.append(TrainingRecord(method.name, module, columns, split, share, settings))
        return records

    @contextmanager
    def threads(self) -> Iterator[None]:
        """As many threads as nets of this size can use."""
        with threads_for(self.modules[0], self.device):
            yield

    @contextmanager
    def randomness(self, phase: str) -> Iterator[None]:
        """Dropout draws from torch's global stream: seed a fork of it and put the old one back."""
        # processes that share a batch hold different rows of it, and drop out on their own
        rank = 0 if self.ranks is None else dist.get_rank(self.ranks)
        purpose = f"{phase} dropout" + f" of rank {rank}" * (rank > 0)
        seed = seeded_generator(self.random_states[0], purpose).initial_seed()
        with seeded_stream(seed, self.device):
            yield


def _check_images(x: Tensor) -> None:
    if x.ndim != 4 or x.shape[2] != x.shape[3]:
        raise ValueError(
            f"augmentation moves square images, (n, channels, side, side); "
            f"got inputs of shape {tuple(x.shape)}"
        )
