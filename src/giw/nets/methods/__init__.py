"""One short file for each method."""

from giw.nets.methods.ccsa import CCSA
from giw.nets.methods.dann import DANN
from giw.nets.methods.dfr import DFR
from giw.nets.methods.diw import DIW
from giw.nets.methods.giw import GIW
from giw.nets.methods.giw_plus import GIWPlus
from giw.nets.methods.giw_unsplit import GIWUnsplit
from giw.nets.methods.mw_net import MWNet
from giw.nets.methods.pooled import Pooled
from giw.nets.methods.pooled_plus import PooledPlus
from giw.nets.methods.pretrain_val import PretrainVal
from giw.nets.methods.r_diw import RDIW
from giw.nets.methods.reweight import Reweight
from giw.nets.methods.surgical import Surgical
from giw.nets.methods.train_only import TrainOnly
from giw.nets.methods.val_only import ValOnly
from giw.nets.training import Method

METHODS: dict[str, type] = {
    method.name: method
    for method in (
        *(GIW, DIW, RDIW, Reweight, MWNet, CCSA, DANN),
        *(ValOnly, PretrainVal, Pooled, TrainOnly, GIWUnsplit, GIWPlus, PooledPlus),
        *(DFR, Surgical),
    )
}


def method_named(name: str, **settings: object) -> Method:
    """A method by its name, for example ``method_named("giw", representation="hidden")``."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    return METHODS[name](**settings)


__all__ = [
    "CCSA",
    "DANN",
    "DFR",
    "DIW",
    "GIW",
    "METHODS",
    "RDIW",
    "GIWPlus",
    "GIWUnsplit",
    "MWNet",
    "Pooled",
    "PooledPlus",
    "PretrainVal",
    "Reweight",
    "Surgical",
    "TrainOnly",
    "ValOnly",
    "method_named",
]
