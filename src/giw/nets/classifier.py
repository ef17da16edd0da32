"""Nets with scikit-learn's face."""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from giw.checks import as_array, callers_level, check_count
from giw.estimators.inputs import (
    check_rows_and_columns,
    check_splitter,
    class_labels,
    has_validation,
    in_order_of_fit,
    is_frame,
    joint_classes,
    refuse_dates,
    row_weights,
    same_columns,
    table_of,
)
from giw.estimators.saving import SavesToFolder
from giw.nets.epochs import training_bar
from giw.nets.kernels.devices import LARGE, as_device, default_group, shared_seed, threads_for
from giw.nets.methods import METHODS, method_named
from giw.nets.models import holds_embedding, net_for
from giw.nets.saving import put_back, set_apart
from giw.nets.stack import RIVALS, Trainings, fit_stack, logits_of
from giw.nets.training import Method, Tensors, TrainingConfig
from giw.support import SupportSplit, SupportSplitter


class GIWClassifier(SavesToFolder, ClassifierMixin, BaseEstimator):
    r"""A net trained by generalized importance weighting.

    .. math:: \kappa \frac1n \sum_i w_i \ell_i + (1 - \kappa) \frac1m \sum_j \ell_j

    Training data are weighted to look like validation data inside the training support, and
    validation data join training. The default method, GIW+, adds copies of the validation data and
    a term that aligns them with training data of their class, see
    :class:`giw.nets.methods.GIWPlus`; ``method="giw"`` is the published objective, in which only
    validation data outside the training support join.

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
    train_share : float, default=0.5
        With ``method="giw_plus"``: the share :math:`\kappa` of what is descended that weighted
        training data carry; validation points carry the rest.
    stack : bool, optional
        Average the net with those of Pooled+, fine-tuning on validation points and training data
        alone, by weights from validation points that each was trained without; see
        :mod:`giw.nets.stack`. Takes about five times as long as GIW, and is steadier where the
        split or the training labels are wrong. If not given, nets of images are stacked that have
        fewer than two million parameters. Other methods than GIW+, and trainings that several
        processes share, stand alone.
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
        Folds of the validation data that choose epochs and weigh the stack; more of them judge nets
        that saw more of the data.
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
        With ``stack``: the nets whose probabilities are averaged, by method, and those that it
        trained without a fold of the validation points; ``module_`` is that of the method of
        largest weight.
    net_share_ : dict of str to float
        Their weights.
    stack_weight_ : dict of str to float
        The weights of the methods.
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

    _set_apart, _put_back = set_apart, put_back

    def __init__(
        self,
        module: nn.Module | None = None,
        *,
        method: str = "giw_plus",
        split_on: str = "auto",
        splitter: SupportSplitter | None = None,
        train_share: float = 0.5,
        stack: bool | None = None,
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
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> GIWClassifier:
        """Train on (X, y), steered and completed by (X_val, y_val) from the test distribution.

        Without validation data this is plain training, and a warning says so. Without ``y_val``
        only methods can be used that do not look at validation labels, such as ``"dann"``. Bytes
        (uint8) are taken for pixels and divided by 255; pass numbers of other meaning as floats.

        ``sample_weight``, (n,), says how often training rows come in batches; rows of weight zero
        take no part, and the split of the validation points asks the others alike.

        With ``checkpoint``, a file, and a ``random_state``, a fit that was killed or stopped by
        Ctrl-C goes on from there, as in :func:`giw.nets.training.train`; trainings that choose
        epochs are repeated. A stack keeps a file for each training, and adds to the name.
        """
        ranks = default_group() if self.distributed else None
        config = self._config()
        validates = has_validation(X_val, y_val)
        data = self._tensors(X, y, X_val, y_val, sample_weight)
        seed = shared_seed(self.random_state, ranks)
        module = net_for(self.module, data.x_train, len(self.classes_), seed)
        candidates = self._candidates(
            module, data, labelled=y_val is not None, alone=ranks is not None
        )
        self.cross_fitted_loss_ = None
        bar: AbstractContextManager[Any] = training_bar() if self.verbose else nullcontext()
        with threads_for(module, data.x_train.device), bar as watch:
            trainings = Trainings(module, data, config, seed, ranks, checkpoint, watch)
            if self.early_stopping and validates:
                self.cross_fitted_loss_ = trainings.loss_by_epoch(candidates[0], self.n_folds)
                config = replace(config, epochs=int(self.cross_fitted_loss_.argmin()) + 1)
                trainings = replace(trainings, config=config)
            found = fit_stack(trainings, candidates, folds=self.n_folds)
        self.n_epochs_, self.left_out_loss_ = config.epochs, found.left_out_loss
        self.stack_weight_ = {name: w for name, w in found.weight.items() if w > 0}
        nets = found.shares()
        self.nets_ = {name: net for name, (net, _) in nets.items()}
        self.net_share_ = {name: share for name, (_, share) in nets.items()}
        heaviest = found.records[max(found.records, key=lambda name: found.weight[name])]
        self.module_, self.history_ = heaviest.module, heaviest.history
        split = found.records.get(candidates[0].name, heaviest).split
        self.split_ = None if split is None else _as_numpy(split)
        self.alpha_ = None if split is None else float(split.alpha)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        check_is_fitted(self, "module_")
        x = as_net_input(self, X, "X", like=self._point_shape)
        points = standardised(x, self._center, self._spread, "X")
        share, device = self.net_share_, next(self.module_.parameters()).device
        with threads_for(self.module_, device):
            points = points.to(device)
            parts = [share[k] * logits_of(net, points).softmax(1) for k, net in self.nets_.items()]
        return torch.stack(parts).sum(0).cpu().numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each point."""
        check_is_fitted(self, "module_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _config(self) -> TrainingConfig:
        check_count(self.n_folds, "n_folds", least=2)
        epochs = check_count(self.max_epochs, "max_epochs", least=1)
        return TrainingConfig(
            epochs=epochs,
            # numpy's whole numbers cannot be written into a checkpoint
            pretrain_epochs=check_count(self.pretrain_epochs, "pretrain_epochs", least=0),
            batch_size=check_count(self.batch_size, "batch_size", least=1),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            # small tables make few steps an epoch; a schedule as steep as the paper's starves them
            decay_every=max(1, epochs // 2),
        )

    def _candidates(
        self, module: nn.Module, data: Tensors, *, labelled: bool, alone: bool
    ) -> list[Method]:
        """The method, and with GIW+ what it is averaged with."""
        if not len(data.x_val) and self.method != "train_only":
            warnings.warn(
                f"no validation data: {self.method} has nothing to adapt to and the net is trained "
                "plainly; pass X_val and y_val from the test distribution",
                UserWarning,
                stacklevel=callers_level(),
            )
            return [method_named("train_only")]
        check_splitter(self.splitter)
        settings: dict[str, Any] = {}
        if self.method in ("giw", "giw_plus"):
            settings |= {"split_on": self.split_on, "splitter": self.splitter}
        plus: dict[str, Any] = {"train_share": self.train_share}
        if holds_embedding(self.module):
            plus["noise"] = 0.0  # rows of an embedding have nothing between them
        pluses = ("giw_plus", "pooled_plus")
        method = method_named(self.method, **settings, **plus if self.method in pluses else {})
        if len(data.x_val) and not labelled:
            if getattr(method, "needs_val_labels", True):
                others = [name for name, make in METHODS.items() if not make().needs_val_labels]
                raise ValueError(
                    f"method {method.name!r} needs labels of the validation points; pass y_val, or "
                    f"take a method that needs none ({', '.join(others)}), or "
                    "giw.ReweightedClassifier, which then weighs by points alone"
                )
            if self.early_stopping:
                raise ValueError("early stopping asks validation labels; pass y_val or turn it off")
        small = sum(p.numel() for p in module.parameters()) < LARGE
        stack = (data.x_train.ndim > 2 and small) if self.stack is None else self.stack
        rivals = RIVALS if stack and not alone and self.method == "giw_plus" else ()
        return [method, *(method_named(r, **plus if r in pluses else {}) for r in rivals)]

    def _tensors(self, X: Any, y: Any, X_val: Any, y_val: Any, sample_weight: Any) -> Tensors:
        """Points as the net will see them and codes of their labels, on the device."""
        device = as_device(self.device)
        X, X_val = (
            table_of(side, name) if hasattr(side, "columns") else side
            for side, name in ((X, "X"), (X_val, "X_val"))
        )
        x = as_net_input(self, X, "X")
        self._point_shape = tuple(x.shape[1:])
        labels = class_labels(y, len(x), "y", self)
        x_val, val_labels = x[:0], labels[:0]
        if X_val is not None:
            X_val = same_columns(X, X_val)
            x_val = as_net_input(self, X_val, "X_val", like=self._point_shape)
            check_same_scale(x, x_val, ("X", "X_val"))
        if y_val is not None:
            val_labels = class_labels(y_val, len(x_val), "y_val", self)
        weight = torch.from_numpy(row_weights(sample_weight, x))
        kept = weight > 0
        if not kept.all():  # without a copy of all images
            x, labels, weight = x[kept], labels[kept.numpy()], weight[kept]
        self.classes_, codes, val_codes = joint_classes(labels, val_labels)
        if y_val is None:
            val_codes = np.zeros(len(x_val), dtype=np.int64)  # nobody looks at them
        # columns of a table come in any unit; a net of the user's own sees them untouched
        own = self.module is not None or x.ndim > 2
        unscaled = torch.zeros(()), torch.ones(())
        self._center, self._spread = unscaled if own else center_and_spread(x)
        return Tensors(
            standardised(x, self._center, self._spread, "X").to(device),
            torch.as_tensor(codes).to(device),
            standardised(x_val, self._center, self._spread, "X_val").to(device),
            torch.as_tensor(val_codes).to(device),
            weight=None if bool((weight == weight[0]).all()) else weight.to(device),
        )


def _as_numpy(split: SupportSplit) -> SupportSplit:
    """The split in the arrays that scikit-learn's users hold."""

    def host(value: Any) -> Any:
        return value.cpu().numpy() if isinstance(value, Tensor) else value

    held = {field.name: host(getattr(split, field.name)) for field in fields(split)}
    held["p_values"] = {name: host(p) for name, p in split.p_values.items()}
    return replace(split, **held)


def as_net_input(
    estimator: BaseEstimator, X: Any, name: str, *, like: tuple[int, ...] | None = None
) -> Tensor:
    """Inputs of a net as floats, or bytes for images; at least one point, of shape ``like``.

    Tables go through scikit-learn's checks, which remember the columns' number and names, or
    compare them where ``like`` says that there were points before.
    """
    X = table_of(X, name)
    shape, image = tuple(X.shape), X.ndim > 2
    if like is not None and shape[:1] == (0,):
        way = "at least one point" if name == "X" else f"{name}=None"
        raise ValueError(f"{name} has no rows; pass {way}")
    # of a table that comes to predict, scikit-learn has words of its own that others look for
    if like is not None and shape[1:] and shape[1:] != like and (image or name != "X"):
        raise ValueError(
            f"points of {name} have shape {shape[1:]}, the training points have {like}; both need "
            "the same columns in the same order"
        )
    if image:
        if 0 in shape:
            raise ValueError(f"{name} must hold at least one point, got shape {shape}")
        values = X if X.dtype == np.uint8 and X.ndim == 4 else as_array(X, name)
        if like is None:
            estimator.n_features_in_ = prod(shape[1:])
    else:
        check_rows_and_columns(X, name)
        refuse_dates(X, name, estimator)
        X = in_order_of_fit(estimator, X) if like is not None else X
        try:
            table = validate_data(estimator, X, reset=like is None, ensure_all_finite=False)
            values = as_array(table, name)
        except (TypeError, ValueError):
            kinds = dict(X.dtypes) if is_frame(X) else {}
            text = [c for c, kind in kinds.items() if getattr(kind, "kind", "O") not in "biuf"]
            if not text:
                raise
            raise ValueError(
                f"{name}: columns {text[:5]!r} do not hold numbers; encode text and categories "
                "first, for example with sklearn.preprocessing.OneHotEncoder"
            ) from None
    # negative strides and arrays that are read-only are legal in numpy and not in torch
    return torch.from_numpy(np.require(values, requirements=["C", "W"]))


def center_and_spread(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of columns in any unit, in double precision, (d,) each.

    A column that rounding alone moves has a spread of one: it is constant.
    """
    unit = x.abs().amax(dim=0).double().clamp(min=torch.finfo(torch.float64).tiny)
    spread, center = torch.std_mean(x / unit, dim=0, correction=0)
    constant = spread <= 16 * torch.finfo(torch.float64).eps * center.abs()
    return center * unit, torch.where(constant, 1.0, spread * unit)


def standardised(x: Tensor, center: Tensor, spread: Tensor, name: str) -> Tensor:
    """What a net computes in: standardised float32; bytes stay bytes.

    Rows to predict may lie far beyond the training rows; those that do not fit are told here, and
    not as a loss of NaN.
    """
    if x.dtype == torch.uint8:
        return x
    single = ((x - center) / spread).to(torch.float32)
    if not bool(torch.isfinite(single).all()):
        raise ValueError(
            f"{name} holds numbers up to {float(x.abs().max()):.2g}, too large for float32; "
            "divide its columns by a typical size first"
        )
    return single


def check_same_scale(x: Tensor, other: Tensor, names: tuple[str, str]) -> None:
    """Images as bytes become numbers from 0 to 1; floats beside them have to be such numbers."""
    for bytes_, floats, (name, its) in ((x, other, names), (other, x, names[::-1])):
        if bytes_.dtype == torch.uint8 != floats.dtype and float(floats.max()) > 1:
            raise ValueError(
                f"{name} holds bytes, which are divided by 255, and {its} floats up to "
                f"{float(floats.max()):g}; divide those by 255, or pass bytes in both"
            )
