"""Nets with scikit-learn's face."""

from __future__ import annotations

import copy
import os
import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from giw.checks import as_generator, callers_level, check_count
from giw.estimators.inputs import (
    check_same_columns,
    check_splitter,
    class_labels,
    has_validation,
    joint_classes,
)
from giw.estimators.saving import SavesToFolder
from giw.nets.devices import as_device
from giw.nets.epochs import cross_fitted_losses
from giw.nets.inputs import as_net_input, check_labels_not_needed, check_same_scale
from giw.nets.methods import GIWPlus, method_named
from giw.nets.models import model_for
from giw.nets.stack import fit_stack
from giw.nets.training import (
    FunctionalNet,
    Method,
    Params,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    as_input,
    predict_in_blocks,
    train,
)
from giw.nets.training.batches import seeded_stream
from giw.nets.training.progress import epoch_bar
from giw.support import SupportSplit, SupportSplitter

TABLE_SHARE = 0.5  # of the risk inside that training data carry, on tables
CHECKPOINT_SECONDS = 1.0  # epochs of a small table take less than a saving


class GIWClassifier(SavesToFolder, ClassifierMixin, BaseEstimator):
    r"""A net trained by generalized importance weighting.

    .. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - h_j) \ell_j , \qquad
              h_j = \kappa s_j , \quad \alpha = \frac1m \sum_j h_j

    Training data that look like validation data inside the training support (:math:`s_j` near one)
    are weighted; validation data outside it join training, and those inside carry a share
    :math:`1 - \kappa` of their risk. The default method, GIW+, adds copies of the validation data
    and a term that aligns those outside with training data of their class, see
    :class:`giw.nets.methods.GIWPlus`; ``method="giw"`` is the published objective,
    :math:`\kappa = 1`.

    Parameters
    ----------
    module : torch.nn.Module, optional
        Maps inputs (n, ...) to logits (n, number of classes). It is copied, never changed.
        If not given: a multilayer perceptron on standardised columns for tables and small
        images, LeNet-5 for larger ones.
    method : str, default="giw_plus"
        Any of ``giw.nets.methods.METHODS``.
    split_on : {"auto", "input", "hidden"}, default="auto"
        What the split of ``giw`` and ``giw_plus`` sees: the inputs and every layer of the
        pretrained net, the inputs alone, or the hidden layer alone.
    splitter : SupportSplitter, optional
        How these two split the validation data; its ``embed`` adds features of one's own.
    train_share : float, optional
        With ``method="giw_plus"``: the share :math:`\kappa` of the risk inside the training support
        that weighted training data carry, see :class:`giw.nets.methods.GIWPlus`; 0.8 for images and
        0.5 for tables if not given.
    stack : bool, default=False
        Average the net with those of Pooled, fine-tuning on validation points and training data
        alone, by weights from validation points that each was trained without; see
        :mod:`giw.nets.stack`. Takes about seven trainings, and is steadier where the split or the
        training labels are wrong. With ``early_stopping``, ``distributed`` or another method than
        GIW+ it is refused.
    max_epochs : int, default=50
        Passes over the training data.
    pretrain_epochs : int, default=10
        Plain ones before that, for methods that start from a trained net.
    batch_size : int, default=64
        Training rows in a step; more of them make fewer steps an epoch and steadier weights.
    learning_rate : float, default=1e-3
        Of Adam, here and before; see :class:`giw.nets.training.TrainingConfig`.
    weight_decay : float, default=1e-4
        L2 penalty; more of it keeps the net's parameters smaller.
    early_stopping : bool, default=False
        Choose the number of epochs, at most ``max_epochs``, by the loss on validation points
        that took no part in training, weights or split: the validation data are cross-fitted in
        ``n_folds`` folds, and then the net is fitted anew to all of them. Takes ``n_folds`` + 1
        trainings.
    n_folds : int, default=3
        Folds of the validation data; more of them judge nets that saw more of the data.
    random_state : int or None, default=None
        None draws a new seed for each fit.
    device : str, default="auto"
        ``"auto"`` takes a GPU where there is one.
    distributed : bool, default=False
        Share the rows of every batch among the processes of torch.distributed's default group, as
        started by torchrun. All of them call ``fit`` with the same data and settings, and all get
        the same net: that of a single process, up to rounding.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (c,)
        Labels of training and validation data, sorted.
    module_ : torch.nn.Module
        The trained net.
    history_ : dict of str to array of shape (epochs,)
        What happened, epoch by epoch.
    split_ : SupportSplit or None
        Which validation points are inside the training support.
    alpha_ : float or None
        Their share.
    n_epochs_ : int
        Epochs that the net was trained for.
    nets_ : dict of str to torch.nn.Module
        With ``stack``: the nets whose probabilities are averaged, by method; ``module_`` is the one
        of largest weight.
    stack_weight_ : dict of str to float
        Their weights.
    left_out_loss_ : dict of str to float
        With ``stack``: mean log-loss of validation points that each candidate was trained without.
    cross_fitted_loss_ : array of shape (max_epochs,) or None
        With ``early_stopping``: loss on left-out validation points after each epoch.

    Examples
    --------
    >>> import numpy as np, giw
    >>> rng = np.random.default_rng(0)
    >>> X, Xv = rng.normal(size=(200, 2)), rng.normal(size=(20, 2)) + [[4, 0]]
    >>> clf = giw.GIWClassifier(max_epochs=5, random_state=0)
    >>> clf = clf.fit(X, X[:, 0] > 0, X_val=Xv, y_val=Xv[:, 1] > 0)
    >>> clf.predict(Xv).shape
    (20,)
    """

    def __init__(
        self,
        module: nn.Module | None = None,
        *,
        method: str = "giw_plus",
        split_on: str = "auto",
        splitter: SupportSplitter | None = None,
        train_share: float | None = None,
        stack: bool = False,
        max_epochs: int = 50,
        pretrain_epochs: int = 10,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        early_stopping: bool = False,
        n_folds: int = 3,
        random_state: int | None = None,
        device: str = "auto",
        distributed: bool = False,
        verbose: bool = False,
    ) -> None:
        self.module = module
        self.method = method
        self.split_on = split_on
        self.splitter = splitter
        self.train_share = train_share
        self.stack = stack
        self.max_epochs = max_epochs
        self.pretrain_epochs = pretrain_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.n_folds = n_folds
        self.random_state = random_state
        self.device = device
        self.distributed = distributed
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> GIWClassifier:
        """Train on (X, y), steered and completed by (X_val, y_val) from the test distribution.

        Without validation data this is plain training, and a warning says so. Without ``y_val``
        only methods can be used that do not look at validation labels, such as ``"dann"``. Bytes
        (uint8) are taken for pixels and divided by 255; pass numbers of other meaning as floats.

        With ``checkpoint``, a file, and a ``random_state``, a fit that was killed or stopped by
        Ctrl-C goes on from there, as in :func:`giw.nets.training.train`; trainings that choose
        epochs are repeated.
        """
        ranks = default_group() if self.distributed else None
        self._check_stack(checkpoint)
        check_count(self.n_folds, "n_folds", least=2)
        validates = has_validation(X_val, y_val)
        method = self._method(has_validation=validates)
        if validates and y_val is None:
            check_labels_not_needed(method)
            if self.early_stopping:
                raise ValueError("early stopping asks validation labels; pass y_val or turn it off")
        x_train = as_net_input(self, X, "X", reset=True)
        labels = class_labels(y, len(x_train), "y", self)
        x_val, val_labels = x_train[:0], labels[:0]
        if validates:
            check_same_columns(X, X_val)
            x_val = self._validation_input(X_val, x_train)
            check_same_scale(x_train, x_val, ("X", "X_val"))
        if y_val is not None:
            val_labels = class_labels(y_val, len(x_val), "y_val", self)
        self.classes_, codes, val_codes = joint_classes(labels, val_labels)
        if y_val is None:
            val_codes = np.zeros(len(x_val), dtype=np.int64)  # nobody looks at them
        seed = _seed(self.random_state, ranks)
        self._point_shape = tuple(x_train.shape[1:])
        self._fit_scaling(x_train)
        device = as_device(self.device)
        data = Tensors(
            self._scaled(x_train).to(device), torch.as_tensor(codes).to(device),
            self._scaled(x_val).to(device), torch.as_tensor(val_codes).to(device),
        )  # fmt: skip
        epochs = check_count(self.max_epochs, "max_epochs", least=1)
        config = TrainingConfig(
            epochs=epochs,
            # numpy's whole numbers cannot be written into a checkpoint
            pretrain_epochs=check_count(self.pretrain_epochs, "pretrain_epochs", least=0),
            batch_size=check_count(self.batch_size, "batch_size", least=1),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            # small tables make few steps an epoch; a schedule as steep as the paper's starves them
            decay_every=max(1, epochs // 2),
        )
        module = self._net(tuple(x_train.shape), seed).to(device)
        if self.module is not None:
            _check_output(module, data.x_train[:2], len(self.classes_), seed)
        if isinstance(method, GIWPlus) and method.name == "giw_plus":
            usual = TABLE_SHARE if data.x_train.ndim == 2 else method.train_share
            share = usual if self.train_share is None else float(self.train_share)
            method = replace(method, train_share=share)
        self.cross_fitted_loss_ = None
        if self.early_stopping and validates:
            self.cross_fitted_loss_ = cross_fitted_losses(
                method,
                module,
                data,
                config,
                folds=self.n_folds,
                random_state=seed,
                ranks=ranks,
            )
            config = replace(config, epochs=int(self.cross_fitted_loss_.argmin()) + 1)
        self.n_epochs_ = config.epochs
        if self.stack and validates and y_val is not None:
            return self._fit_stack(method, module, data, config, seed)
        with epoch_bar(method.name, config, shown=self.verbose) as on_epoch:
            record = train(
                method, module, data, config, random_state=seed, on_epoch=on_epoch, ranks=ranks,
                checkpoint=checkpoint, checkpoint_seconds=CHECKPOINT_SECONDS,
            )  # fmt: skip
        self.nets_, self.stack_weight_ = {method.name: record.module}, {method.name: 1.0}
        self.left_out_loss_: dict[str, float] = {}
        return self._keep(record)

    def _fit_stack(
        self, method: Method, module: nn.Module, data: Tensors, config: TrainingConfig, seed: int
    ) -> GIWClassifier:
        with epoch_bar("stack", config, shown=self.verbose) as on_epoch:
            found = fit_stack(
                method, module, data, config,
                folds=self.n_folds, random_state=seed, on_epoch=on_epoch,
            )  # fmt: skip
        self.stack_weight_ = {name: w for name, w in found.weight.items() if w > 0}
        self.nets_ = {name: record.module for name, record in found.records.items()}
        self.left_out_loss_ = found.left_out_loss
        heaviest = max(self.stack_weight_, key=lambda name: self.stack_weight_[name])
        self._keep(found.records[heaviest])
        if method.name in found.records:
            self._keep_split(found.records[method.name].split)
        return self

    def _keep(self, record: TrainingRecord) -> GIWClassifier:
        self.module_, self.history_ = record.module, record.history
        self._keep_split(record.split)
        return self

    def _keep_split(self, split: SupportSplit | None) -> None:
        self.split_ = None if split is None else _as_numpy(split)
        self.alpha_ = None if split is None else float(split.alpha)

    def _check_stack(self, checkpoint: object) -> None:
        """Refuse what a stack of several trainings does not do."""
        if not self.stack:
            return
        if self.method != "giw_plus":
            raise ValueError(f"stack=True stacks GIW+ with its rivals, got method={self.method!r}")
        for name, asked in (
            ("early_stopping", self.early_stopping),
            ("distributed", self.distributed),
            ("checkpoint", checkpoint is not None),
        ):
            if asked:
                raise ValueError(f"stack=True makes several trainings; turn {name} off, or stack")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        check_is_fitted(self, "module_")
        x = as_net_input(self, X, "X", reset=False)
        if tuple(x.shape[1:]) != self._point_shape:
            raise ValueError(
                f"points of X have shape {tuple(x.shape[1:])}, the training points had "
                f"{self._point_shape}"
            )
        points = self._scaled(x)
        # a model of version 0.1 has one net and no weights
        nets = getattr(self, "nets_", {"": self.module_})
        weights = getattr(self, "stack_weight_", {"": 1.0})
        parts = [weights[name] * _probabilities(net, points) for name, net in nets.items()]
        return np.sum(parts, axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each point."""
        check_is_fitted(self, "module_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _validation_input(self, X_val: Any, x_train: Tensor) -> Tensor:
        columns = np.shape(X_val)[1:]
        if np.shape(X_val)[:1] == (0,):
            raise ValueError("X_val has no rows; pass X_val=None for plain training")
        if columns != tuple(x_train.shape[1:]) and len(columns) > 0:
            raise ValueError(
                f"points of X have shape {tuple(x_train.shape[1:])} and points of X_val "
                f"{columns}; both need the same columns in the same order"
            )
        return as_net_input(self, X_val, "X_val", reset=False)

    def _method(self, *, has_validation: bool) -> Method:
        if not has_validation and self.method != "train_only":
            warnings.warn(
                f"no validation data: {self.method} has nothing to adapt to and the net is trained "
                "plainly; pass X_val and y_val from the test distribution",
                UserWarning,
                stacklevel=callers_level(),
            )
            return method_named("train_only")
        check_splitter(self.splitter)
        splits = self.method in ("giw", "giw_plus")
        settings = {"split_on": self.split_on, "splitter": self.splitter} if splits else {}
        method = method_named(self.method, **settings)
        # rows of an embedding have numbers, and there is none between two of them
        takes_codes = isinstance(self.module, nn.Module) and holds_embedding(self.module)
        return replace(method, noise=0.0) if takes_codes and isinstance(method, GIWPlus) else method

    def _net(self, x_shape: tuple[int, ...], seed: int) -> nn.Module:
        if self.module is None:
            return model_for(x_shape, len(self.classes_), random_state=seed)
        if not isinstance(self.module, nn.Module):
            raise ValueError(
                f"module must be an instance of torch.nn.Module, got {self.module!r}; "
                "call the class to make one"
            )
        # moving a module to a device and the first pass of a lazy layer would change the user's own
        return copy.deepcopy(self.module)

    def _fit_scaling(self, x: Tensor) -> None:
        """Columns of a table come in any unit; a net of the user's own sees them untouched."""
        if self.module is None and x.ndim == 2:
            spread, center = torch.std_mean(x, dim=0, correction=0)
            self._center = center
            self._spread = torch.where(spread > 0, spread, torch.ones_like(spread))
        else:
            self._center, self._spread = torch.zeros(()), torch.ones(())

    def _scaled(self, x: Tensor) -> Tensor:
        if x.dtype == torch.uint8:
            return x
        return (x - self._center) / self._spread


def _probabilities(module: nn.Module, x: Tensor) -> NDArray[np.float64]:
    net = FunctionalNet(module)
    params: Params = dict(module.named_parameters())
    device = next(iter(params.values())).device
    return predict_in_blocks(net, params, x.to(device)).double().softmax(dim=1).cpu().numpy()


def _check_output(module: nn.Module, x: Tensor, classes: int, seed: int) -> None:
    """A net that does not fit the data is told before any training, by what it does to two points.

    A layer that cannot take them says so in its own words. Lazy layers get their parameters here,
    from ``seed`` rather than from the global one.
    """
    was_training = module.training
    module.eval()  # two points are no batch to take statistics of
    try:
        with torch.no_grad(), seeded_stream(seed, x.device):
            logits = module(as_input(x))
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise ValueError(
            f"module cannot take points of shape {tuple(x.shape[1:])}, which come as float32: "
            f"{said}"
        ) from error
    finally:
        module.train(was_training)
    if not isinstance(logits, Tensor):
        raise ValueError(
            f"module must give the logits alone, a tensor of shape (n, {classes}), got a "
            f"{type(logits).__name__}; wrap it in a module whose forward picks them"
        )
    if tuple(logits.shape) != (len(x), classes):
        raise ValueError(
            f"module must give {classes} numbers per point, one per class, got shape "
            f"{tuple(logits.shape[1:])}; let its last layer have {classes} outputs"
        )
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError(
            "module has no parameter to train; let some of them require a gradient, for example "
            "module.requires_grad_(True)"
        )


def _as_numpy(split: SupportSplit) -> SupportSplit:
    """The split in the arrays that scikit-learn's users hold."""
    values = {field.name: getattr(split, field.name) for field in fields(split)}
    tensors: dict[str, Any] = {
        name: v.cpu().numpy() for name, v in values.items() if isinstance(v, Tensor)
    }
    p_values = {name: torch.as_tensor(p).cpu().numpy() for name, p in split.p_values.items()}
    return replace(split, **tensors, p_values=p_values)


def default_group() -> dist.ProcessGroup | None:
    """The processes that torch.distributed knows of; None where there is only this one."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "distributed=True but torch.distributed has no process group; start the program with "
            "torchrun and call torch.distributed.init_process_group() first"
        )
    return dist.group.WORLD if dist.get_world_size() > 1 else None


def _seed(random_state: Any, ranks: dist.ProcessGroup | None) -> int:
    drawn = [int(as_generator(random_state).integers(2**31))]
    if ranks is not None:  # without a seed every process has drawn its own
        dist.broadcast_object_list(drawn, group=ranks, group_src=0)
    return drawn[0]


def holds_embedding(module: nn.Module) -> bool:
    """Whether a net looks rows up by number."""
    return any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())
