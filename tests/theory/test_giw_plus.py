"""GIW+ descends a share of the risk inside the training support and the rest of the test risk."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.theory.finite import FiniteShift, any_case, memberships, perfect_sample, within_support
from torch import nn

from giw.nets.methods import GIWPlus
from giw.nets.training import Batch, Evidence, FunctionalNet


def exact_ratio(train_z, val_z, inside):
    """Frequency of each loss among validation points, counted by ``inside``, over training."""
    total = inside.sum().clamp(min=1e-12)
    same_val = ((train_z[:, None] - val_z).abs() < 1e-6).to(inside.dtype)  # (n, m)
    same_train = ((train_z[:, None] - train_z).abs() < 1e-6).to(inside.dtype)  # (n, n)
    return (same_val @ inside / total) / same_train.mean(1)


def risk_of_giw_plus(shift, membership, **options):
    """What GIW+ descends on samples with exact frequencies; risks of the same net, inside and all.

    All labels are one class, and the net's losses tell atoms apart.
    """
    method = GIWPlus(weigh=exact_ratio, align=0.0, noise=0.0, **options)
    atoms = len(shift.p_train)
    torch.manual_seed(0)
    net = FunctionalNet(nn.Linear(atoms, 2, bias=False))
    points = torch.eye(atoms)
    train, val = (torch.tensor(perfect_sample(p)) for p in (shift.p_train, shift.p_test))
    y, y_val = torch.zeros_like(train), torch.zeros_like(val)
    evidence = Evidence(
        points[train], y, points[val], y_val, torch.ones(len(y), dtype=torch.bool),
        lambda x: x, 0, logits=lambda x: net(net.params(), x),
    )  # fmt: skip
    member = torch.tensor([float(s) for s in membership])[val]
    params, state = net.params(), method.state(evidence, SimpleNamespace(membership=member))
    batch = Batch(points[train], y, points[val], y_val, member, member.mean(), torch.zeros(()))
    loss = nn.functional.cross_entropy(
        net(params, points), torch.zeros(atoms, dtype=torch.long), reduction="none"
    )
    risk = method.loss(net, params, state, batch)[0]
    within = (member * loss[val]).sum() / member.sum()
    return risk.item(), within.item(), loss[val].mean().item()


@given(data=st.data())
@settings(max_examples=40)
def test_what_giw_plus_descends_is_a_share_of_the_risk_inside_and_the_rest_of_the_risk(data):
    shift = data.draw(any_case)
    membership = within_support(shift, data.draw(memberships(shift, soft=True)))
    assume(any(p * s > 0 for p, s in zip(shift.p_test, membership, strict=True)))
    share = data.draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))

    found, inside, everywhere = risk_of_giw_plus(shift, membership, train_share=share)

    assert found == pytest.approx(share * inside + (1 - share) * everywhere, rel=1e-4)


def test_a_sure_point_beside_an_unsure_one():
    """Two atoms, memberships 1 and 1/2: the first is two thirds of what is inside."""
    shift = FiniteShift.from_counts(train=[1, 1], test=[1, 1])

    found, inside, everywhere = risk_of_giw_plus(shift, [Fraction(1), Fraction(1, 2)])

    assert found == pytest.approx((inside + everywhere) / 2, rel=1e-5)
    assert inside != pytest.approx(everywhere, rel=1e-3)
