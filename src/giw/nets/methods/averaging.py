r"""Averages of the parameters over the last steps, which predict in their stead.

.. math:: \bar\theta \leftarrow d_t\, \bar\theta + (1 - d_t)\, \theta , \qquad
          d_t = \min\Big(d,\ \frac{1 + t}{10 + t}\Big)

An average over steps is steadier than the last step. Early on it is short, so that the start
is soon forgotten (Polyak and Juditsky, SIAM J. Control Optim. 30:838-855, 1992).
"""

from __future__ import annotations

from torch import Tensor

from giw.nets.training import AVERAGE, Params, net_params


def first_averages(params: Params) -> Params:
    """Where averages start: at the parameters themselves."""
    return {AVERAGE + name: p.detach().clone() for name, p in net_params(params).items()}


def moved_averages(params: Params, step: Tensor, *, decay: float) -> Params:
    """The averages one step on, for ``step`` steps done before."""
    keep = ((1 + step) / (10 + step)).clamp(max=decay)
    averages = {name: params[AVERAGE + name].detach() for name in net_params(params)}
    return {
        AVERAGE + name: average + (1 - keep) * (params[name].detach() - average)
        for name, average in averages.items()
    }
