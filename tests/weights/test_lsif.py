import numpy as np
import torch
from numpy.testing import assert_allclose
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.lsif import nonnegative_coefficients


def test_coefficients_satisfy_the_optimality_conditions():
    """The gradient vanishes where a coefficient is positive and pushes down where it is zero."""
    rng = np.random.default_rng(0)
    phi = torch.as_tensor(np.c_[np.ones(40), rng.random((40, 6))])
    gram, target = phi.T @ phi / 40, torch.as_tensor(np.r_[1.0, rng.random(6)])
    penalty = torch.tensor([0.0] + [0.05] * 6).double()

    theta = nonnegative_coefficients(
        gram, target, ridge=torch.tensor(0.05).double(), n_steps=20_000
    )

    gradient = gram @ theta - target + penalty * (1 + theta)
    assert (theta >= 0).all()
    assert (theta == 0).any()
    assert_allclose(gradient[theta > 0], 0, atol=1e-5)
    assert (gradient[theta == 0] >= -1e-6).all()


def test_indicator_features_give_the_shrunken_ratio_of_frequencies():
    """Orthogonal cells with shares p and q: θ = (q − λ) / (p + λ) where that is positive."""
    gram = torch.diag(torch.tensor([1e-9, 0.25, 0.5, 0.25]).double())
    target = torch.tensor([0.0, 0.3, 0.68, 0.02]).double()

    theta = nonnegative_coefficients(gram, target, ridge=torch.tensor(0.05).double(), n_steps=500)

    assert_allclose(theta[1:], [0.25 / 0.3, 0.63 / 0.55, 0.0], atol=1e-6)


def test_the_ratio_is_never_negative_even_far_away():
    pair = gaussian_pair(0, n=100, m=40)
    est = giw.LSIF().fit(pair.train, pair.val)

    assert (est.weigh(np.linspace(-50, 50, 101)[:, None]) >= 0).all()
    assert (est.model_.theta >= 0).all()
