"""What a public function asks of its input.

Every check names what came, what is needed and the way out. Mathematics is done in numpy: tensors
come in through :func:`as_array` and go out through :func:`like_input`, without a copy on a CPU and
without torch where nobody has loaded it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

HUGE = 1e150  # the square of a larger number is infinite, that of its inverse zero


def _numbers(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Object arrays that hold numbers are welcome; text and dates are not."""
    try:
        if array.dtype != object or any(isinstance(v, str | bytes) for v in array.flat):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers, got dtype {array.dtype}; encode text and categories first, "
            "for example with sklearn.preprocessing.OrdinalEncoder"
        ) from None


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: Any, name: str) -> NDArray[Any]:
    """An array of whatever holds values: a tensor of any type, a matrix, a masked array, lists.

    What has no values, or none that can be compared, is refused in one line.
    """
    if sparse.issparse(value):  # some kinds of it are mappings
        raise ValueError(f"{name} is sparse; pass {name}.toarray(), or reduce it with TruncatedSVD")
    if value is None or isinstance(value, str | bytes | Mapping):
        raise ValueError(f"{name} must be an array or a table, got {type(value).__name__}")
    if is_tensor(value):
        array = _from_tensor(value, name)
    elif isinstance(value, np.ma.MaskedArray):  # numpy would forget what is masked
        masked: Any = value
        numbers = value.dtype.kind in "biuf"
        array = masked.astype(float if numbers else object).filled(np.nan if numbers else None)
    else:
        try:
            array = np.asarray(value)
        except ValueError:
            raise ValueError(f"the rows of {name} differ in length; all need the same") from None
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} holds complex numbers; pass real ones, for "
            f"example {name}.real"
        )
    if array.dtype.names is not None:
        raise ValueError(f"{name} is an array of records; pass pandas.DataFrame({name})")
    return array


def _from_tensor(value: Any, name: str) -> NDArray[Any]:
    if value.device.type == "meta" or value.layout != sys.modules["torch"].strided:
        raise ValueError(
            f"{name} is a tensor of layout {value.layout} on {value.device}; pass one that holds "
            "its values, for example with .to_dense()"
        )
    if value.is_quantized:
        raise ValueError(f"{name} is a quantized tensor; pass {name}.dequantize()")
    value = value.detach()
    if value.is_floating_point() and value.element_size() < 4:  # numpy has no bfloat16
        value = value.float()
    array: NDArray[Any] = value.cpu().resolve_conj().resolve_neg().numpy()
    return array


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Real, finite numbers of an array, tensor, data frame or nested list as float32 or float64.

    Integers and booleans become float64; ``name`` is what the caller calls them.
    """
    array = to_numpy(value, name)
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind not in "biuf":
            array = _numbers(array, name)
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # one pass and no mask; a sum that overflows is looked into
    bad: Any = [] if math.isfinite(total) else np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(
            f"{name} holds {len(bad)} NaN or infinite values of {array.size} "
            f"(the first at index {tuple(bad[0].tolist())}); drop or impute those rows first"
        )
    return array


def as_rows(value: Any, name: str, *, batched: bool = False) -> NDArray[Any]:
    """Points as a matrix of shape (n, d); one dimension is read as n points of one feature.

    With ``batched`` there may be leading dimensions, one problem each.
    """
    points = as_array(value, name)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim < 2 or (points.ndim > 2 and not batched):
        hint = f"; flatten each point first: {name}.reshape(len({name}), -1)" * (points.ndim > 2)
        raise ValueError(f"{name} must have shape (n, d), got {points.shape}{hint}")
    if 0 in points.shape:
        raise ValueError(
            f"{name} is empty: got shape {points.shape}, need at least one point and one feature"
        )
    return points


def as_row_pair(
    train: Any, val: Any, names: tuple[str, str] = ("x_train", "x_val"), *, batched: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training and validation points with the same features and dtype."""
    x_train = as_rows(train, names[0], batched=batched)
    x_val = as_rows(val, names[1], batched=batched)
    if x_train.shape[-1] != x_val.shape[-1]:
        raise ValueError(
            f"{names[0]} has {x_train.shape[-1]} features and {names[1]} has {x_val.shape[-1]}; "
            "both need the same columns in the same order"
        )
    if x_train.shape[:-2] != x_val.shape[:-2]:
        raise ValueError(
            f"leading dimensions differ: {names[0]} has shape {x_train.shape} and "
            f"{names[1]} {x_val.shape}; stack one validation set per problem"
        )
    if is_tensor(train) and is_tensor(val) and train.device != val.device:
        raise ValueError(
            f"{names[0]} is on {train.device} and {names[1]} on {val.device}; "
            "move one with .to(device)"
        )
    order = columns_in_order(column_names(train), column_names(val), names)
    x_val = x_val if order is None else x_val[..., order]
    for points, name in ((x_train, names[0]), (x_val, names[1])):
        largest = max(float(points.max()), -float(points.min()))
        if largest > HUGE or 0 < largest < 1 / HUGE:
            raise ValueError(
                f"{name} holds numbers up to {largest:.2g}, whose squares are no numbers any more; "
                "divide its columns by a typical size first"
            )
    dtype = np.result_type(x_train, x_val)
    return x_train.astype(dtype, copy=False), x_val.astype(dtype, copy=False)


def as_members(value: Any | None, shape: tuple[int, ...], name: str = "val_weight") -> NDArray[Any]:
    """Membership of each validation point, 0 to 1, not zero for all; ``None`` is one everywhere."""
    if value is None:
        return np.ones(shape)
    weight = as_array(value, name)
    if weight.shape != shape:
        raise ValueError(f"need one {name} per validation point: shape {shape}, got {weight.shape}")
    if ((weight < 0) | (weight > 1)).any():
        raise ValueError(
            f"{name} must lie between 0 and 1, got {weight.min():.3g} to {weight.max():.3g}; "
            "divide by the largest"
        )
    if not (weight.sum(-1) > 0).all():
        raise ValueError(
            f"{name} is zero for every validation point: no point is left to match; "
            "use weights of one, or look at why the split calls everything outside"
        )
    return weight.astype(np.float64)


def like_input(array: NDArray[Any], original: Any) -> Any:
    """Give back what came in: a tensor on its device for a tensor, an array for anything else."""
    if not is_tensor(original):
        return array
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(array)).to(original.device)


def as_labels(value: Any, n: int, name: str) -> NDArray[Any]:
    """One label per point, of any type that numpy can sort; missing labels are refused."""
    labels = to_numpy(value, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise ValueError(
            f"need one label per point: {name} of shape ({n},), got {labels.shape}"
            + ("; one-hot labels go through argmax(axis=1) first" if labels.ndim == 2 else "")
        )
    import pandas as pd

    missing = int(np.sum(pd.isna(labels)))  # None, NaN, and what pandas has for dates and text
    if missing:
        raise ValueError(f"{name} holds {missing} missing labels; drop those rows")
    if labels.dtype.kind in "OS" and any(isinstance(v, bytes) for v in labels):
        raise ValueError(
            f"{name} holds bytes such as {labels[0]!r}; make text of them, for example "
            f"numpy.char.decode(numpy.asarray({name}, dtype='S'))"
        )
    if labels.dtype == object and len({isinstance(v, str) for v in labels}) > 1:
        raise ValueError(
            f"{name} holds text and other labels, which cannot be put in "
            f"order; make them one kind, for example {name}.astype(str)"
        )
    if labels.dtype.kind in "OU" and len(labels) and isinstance(labels[0], str):
        labels = np.array([valid_text(v) for v in labels.tolist()], dtype=labels.dtype.kind)
    return labels


def valid_text(value: Any) -> str:
    r"""Text that can be written to a file: lone surrogates are spelled, as in ``\udc80``."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def refuse_many_classes(labels: NDArray[Any], classes: int) -> None:
    """Labels of which nearly every row has its own are no classes.

    Numbers with fewer than five rows each are refused beyond twenty, text with fewer than two.
    """
    fewest = 5 if labels.dtype.kind in "iuf" else 2
    if classes > max(20, len(labels) / fewest):
        raise ValueError(
            f"the label has {classes} different values in {len(labels)} rows: that is a number or "
            "a name and not a class; group it first, for example with pandas.cut, or fit a "
            "regressor"
        )


def column_names(value: Any) -> list[Any] | None:
    """The names of a table's columns, of pandas, polars or pyarrow; None where it has none."""
    if not hasattr(value, "columns"):
        return None
    return list(getattr(value, "column_names", value.columns))


def columns_in_order(
    names: Sequence[Any] | None,
    other: Sequence[Any] | None,
    called: tuple[str, str] = ("X", "X_val"),
) -> list[int] | None:
    """Where each column of the first table is in the second; None where nothing has to move.

    Tables without names are taken as they are; what one of them lacks is told.
    """
    if names is None or other is None or list(names) == list(other):
        return None
    names, other, (first, second) = list(names), list(other), called
    for table, its in ((first, names), (second, other)):
        twice = next((name for i, name in enumerate(its) if name in its[:i]), None)
        if twice is not None:
            raise ValueError(f"{table} has two columns called {twice!r}; rename one")
    lacks = [name for name in names if name not in other]
    more = [name for name in other if name not in names]
    if lacks or more:
        parts = [f"lacks {lacks[:5]!r}"] * bool(lacks) + [f"also has {more[:5]!r}"] * bool(more)
        raise ValueError(
            f"{second} {' and '.join(parts)}; {first} and {second} need the same columns"
        )
    return [other.index(name) for name in names]


def callers_level() -> int:
    """``stacklevel`` at which a warning names the line that called this package.

    For ``warnings.warn`` in the function that calls this one, however deep in the package it is.
    """
    home, frame, level = str(Path(__file__).parent), sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        frame, level = frame.f_back, level + 1
    return level


def warn_deprecated(settings: Mapping[str, Any], why: str) -> None:
    """One line for each setting that is given and has no effect any more."""
    for name, value in settings.items():
        if not isinstance(value, str) or value != "deprecated":
            text = f"{name} has no effect since 0.2: {why}"
            warnings.warn(text, FutureWarning, stacklevel=callers_level())


def check_positive(value: float, name: str) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def check_share(value: float, name: str) -> None:
    """A number from 0 to 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def check_count(value: Any, name: str, *, least: int) -> int:
    """A whole number of at least ``least``, as an int; numpy's come from grids of settings."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def as_generator(
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """A private random generator; the global seed is never touched."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or (
        isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    ):
        if random_state is not None and random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}")
        return np.random.default_rng(random_state)
    raise ValueError(
        f"random_state must be None, an integer or a numpy generator, got {random_state!r}"
    )


def check_auto(value: str | float, name: str, words: tuple[str, ...]) -> None:
    """A positive number, or one of a few words."""
    if not isinstance(value, str):
        check_positive(value, name)
    elif value not in words:
        raise ValueError(f"{name} must be one of {words} or a positive number, got {value!r}")
