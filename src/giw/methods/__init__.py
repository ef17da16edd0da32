"""One short file for each method."""

from giw.methods.diw import DIW
from giw.methods.giw import GIW
from giw.methods.pooled import Pooled
from giw.methods.pretrain_val import PretrainVal
from giw.methods.train_only import TrainOnly
from giw.methods.val_only import ValOnly
from giw.training import Method

METHODS: dict[str, type] = {
    method.name: method for method in (GIW, DIW, ValOnly, PretrainVal, Pooled, TrainOnly)
}


def method_named(name: str, **settings: object) -> Method:
    """A method by its name, for example ``method_named("giw", representation="hidden")``."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    return METHODS[name](**settings)


__all__ = ["DIW", "GIW", "METHODS", "Pooled", "PretrainVal", "TrainOnly", "ValOnly", "method_named"]
