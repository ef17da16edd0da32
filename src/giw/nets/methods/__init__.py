"""Ways to train a net on two samples, by name."""

from giw.nets.methods.alignment import CCSA, DANN
from giw.nets.methods.giw import DIW, GIW, RDIW, GIWUnsplit
from giw.nets.methods.giw_plus import GIWPlus, PooledPlus
from giw.nets.methods.meta_gradient import MWNet, Reweight
from giw.nets.methods.plain import Pooled, PretrainVal, TrainOnly, ValOnly
from giw.nets.training import Method

METHODS: dict[str, type] = {
    method.name: method
    for method in (
        *(GIW, DIW, RDIW, Reweight, MWNet, CCSA, DANN),
        *(ValOnly, PretrainVal, Pooled, TrainOnly, GIWUnsplit, GIWPlus, PooledPlus),
    )
}


def method_named(name: str, **settings: object) -> Method:
    """A method by its name, for example ``method_named("giw", representation="hidden")``."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    return METHODS[name](**settings)


__all__ = [
    "CCSA", "DANN", "DIW", "GIW", "METHODS", "RDIW", "GIWPlus", "GIWUnsplit", "MWNet",
    "Pooled", "PooledPlus", "PretrainVal", "Reweight", "TrainOnly", "ValOnly",
    "method_named",
]  # fmt: skip
