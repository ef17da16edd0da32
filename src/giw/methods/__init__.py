"""One short file for each method."""

from giw.methods.ccsa import CCSA
from giw.methods.dann import DANN
from giw.methods.dfr import DFR
from giw.methods.diw import DIW
from giw.methods.giw import GIW
from giw.methods.giw_plus import GIWPlus
from giw.methods.giw_unsplit import GIWUnsplit
from giw.methods.mw_net import MWNet
from giw.methods.pooled import Pooled
from giw.methods.pooled_plus import PooledPlus
from giw.methods.pretrain_val import PretrainVal
from giw.methods.r_diw import RDIW
from giw.methods.reweight import Reweight
from giw.methods.surgical import Surgical
from giw.methods.train_only import TrainOnly
from giw.methods.val_only import ValOnly
from giw.training import Method

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
