r"""How validation points spread over the ranks of training losses: a density, and how sure it is.

Where both come from one distribution, the rank of a validation loss among training losses is
uniform. The density of ranks *is* the ratio :math:`p_{\rm val}(\ell) / p_{\rm tr}(\ell)`, whatever
the scale of losses. With a handful of points it must be a modest one. The models are

.. math:: p(q \mid \rho, \varepsilon) = (1 - \varepsilon)\, u_\rho(q) + \varepsilon

with :math:`u_\rho` spread over the lowest share :math:`\rho` of ranks (training data hold
something that the test distribution lacks, such as flipped labels) or over the highest (test
data are harder), with an edge that is a ramp; and the uniform one, which has half the prior.
The estimate is the posterior predictive density: models count by how well they explain the
points, few points leave it close to uniform, and it never exceeds :math:`1 / 0.3`.
"""

from __future__ import annotations

import torch
from torch import Tensor

STEPS = 40  # of the grid of ranks
SHARES = tuple(0.3 + 0.05 * k for k in range(14))  # ρ, up to 0.95
STRAYS = (0.05, 0.2, 0.5)  # ε
RAMP = 0.1  # width of the edge
PRIOR_UNIFORM = 0.5
PRIOR_LOW = 0.375  # the rest is for the highest ranks


def rank_density(rank: Tensor, weight: Tensor | None = None) -> Tensor:
    """Density of ranks on a grid, (STEPS + 1,), mean one.

    Parameters
    ----------
    rank : Tensor of shape (m,)
        Ranks of validation losses among training losses, 0 to 1.
    weight : Tensor of shape (m,), optional
        How much each point counts, 0 to 1: its membership in the training support.
    """
    counts = torch.ones_like(rank) if weight is None else weight.to(rank)
    log_model = _model_densities(rank).log()  # (models, m)
    log_posterior = _log_prior(rank) + log_model @ counts
    grid = torch.linspace(0, 1, STEPS + 1, dtype=rank.dtype, device=rank.device)
    density = log_posterior.softmax(0) @ _model_densities(grid)  # (STEPS + 1,)
    return density / torch.trapezoid(density, grid)


def density_at(density: Tensor, rank: Tensor) -> Tensor:
    """A density on the grid, read off at any ranks, in their shape."""
    place = STEPS * rank[..., None]
    nodes = torch.arange(STEPS + 1, device=rank.device)
    return (1 - (place - nodes).abs()).clamp(min=0) @ density


def _model_densities(rank: Tensor) -> Tensor:
    """All models at ranks, (models, m): the uniform one, then low ranks, then high ranks."""
    share = torch.tensor(SHARES, dtype=rank.dtype, device=rank.device)[:, None]
    stray = torch.tensor(STRAYS, dtype=rank.dtype, device=rank.device)[:, None, None]
    found = [torch.ones_like(rank)[None]]
    for q in (rank, 1 - rank):
        ramp = ((share + RAMP / 2 - q) / RAMP).clamp(0, 1) / share  # (shares, m), mean one
        found.append(((1 - stray) * ramp + stray).flatten(0, 1))
    return torch.cat(found)


def _log_prior(like: Tensor) -> Tensor:
    each = len(SHARES) * len(STRAYS)
    low, high = PRIOR_LOW / each, (1 - PRIOR_UNIFORM - PRIOR_LOW) / each
    prior = [PRIOR_UNIFORM, *[low] * each, *[high] * each]
    return torch.tensor(prior, dtype=like.dtype, device=like.device).log()
