"""What a net takes: tables, images and tensors as one tensor of inputs, and nets of one's own."""

from __future__ import annotations

import copy
from math import prod
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from giw.checks import as_array
from giw.estimators.inputs import in_order_of_fit, is_frame, refuse_dates, table_of
from giw.nets.models import model_for
from giw.nets.training import as_input
from giw.nets.training.batches import seeded_stream


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


def net_for(module: nn.Module | None, x: Tensor, classes: int, seed: int) -> nn.Module:
    """A copy of a module that gives one number per class, or a net that suits the points.

    A module that does not fit the data is told before any training, by what it does to two points.
    Lazy layers get their parameters here, from ``seed`` rather than from torch's global one.
    """
    if module is None:
        return model_for(tuple(x.shape), classes, random_state=seed).to(x.device)
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"module must be an instance of torch.nn.Module, got {module!r}; "
            "call the class to make one"
        )
    if any(p.device.type == "meta" for p in module.parameters()):
        raise ValueError("module is on device meta and has no values; build it on 'cpu'")
    # moving a module to a device and the first pass of a lazy layer would change the user's own
    net = copy.deepcopy(module).to(x.device)
    _check_output(net, x[:2], classes, seed)
    return net


def _check_output(module: nn.Module, x: Tensor, classes: int, seed: int) -> None:
    """What a net gives, asked of two points; a layer that cannot take them says so itself."""
    was_training = module.training
    module.eval()  # two points are no batch to take statistics of
    try:
        with torch.no_grad(), seeded_stream(seed, x.device):
            logits = module(as_input(x))
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"module cannot take points of shape {tuple(x.shape[1:])}, which come as float32: "
            f"{str(error).splitlines()[0]}"
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


def holds_embedding(module: nn.Module | None) -> bool:
    """Whether a net looks rows up by number: between two of them there is nothing."""
    return isinstance(module, nn.Module) and any(
        isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules()
    )
