import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import nn

from giw.nets import label_check
from giw.nets.label_check import LabelCheck, check_labels
from giw.nets.models import model_for
from giw.nets.training import Tensors, TrainingConfig

CONFIG = TrainingConfig(epochs=20, pretrain_epochs=3, batch_size=32, learning_rate=0.01)


def problem(share, n=150, m=30):
    """Two classes apart, a share of the training labels flipped at known rows."""
    rng = np.random.default_rng(0)
    x, xv = (rng.normal(size=(size, 3)) for size in (n, m))
    y, yv = x[:, 0] > 0, xv[:, 0] > 0
    x[:, 0] += np.where(y, 1, -1)
    xv[:, 0] += np.where(yv, 1, -1)
    flipped = np.arange(n) < share * n
    given = [x.astype("f4"), (y ^ flipped).astype(int), xv.astype("f4"), yv.astype(int)]
    return Tensors(*map(torch.as_tensor, given))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_contradicted_labels_are_the_flipped_ones(share):
    data = problem(share)
    module = model_for(tuple(data.x_train.shape), 2, random_state=0)
    found = check_labels(module, data, CONFIG, folds=3, random_state=0)
    assert found.train_error == pytest.approx(share, abs=0.06)
    assert found.val_error < 0.1
    assert found.n_val == 30
    assert found.good == (share == 0)


def test_every_row_is_judged_by_a_net_that_has_not_seen_it(monkeypatch):
    """Nets that know their rows by heart and answer 0 elsewhere contradict all labels 1."""
    data = problem(0.0)

    class Knows(nn.Module):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y = x, y

        def forward(self, x):
            same = (x[:, None] == self.x).all(2)  # (k, n)
            ones = (same & (self.y == 1)).any(1).float()
            return torch.stack([0.5 * torch.ones_like(ones), ones], dim=1)

    class Record:
        def __init__(self, part):
            self.module = Knows(part.x_train, part.y_train)

    monkeypatch.setattr(label_check, "train_trials", lambda m, n, parts, *_: map(Record, parts))
    found = check_labels(nn.Identity(), data, CONFIG, folds=3, random_state=0)
    assert found.train_error == float((data.y_train == 1).double().mean())
    assert found.val_error == float((data.y_val == 1).double().mean())


@pytest.mark.parametrize("wrong", [0, 4, 5, 20])
def test_nothing_differs_while_validation_labels_are_no_surprise(wrong):
    p_value = binomtest(wrong, 20, 0.1, alternative="greater").pvalue
    assert LabelCheck(0.1, wrong / 20, 20).nothing_differs == (p_value > 0.05) == (wrong < 5)


def test_bad_training_labels_are_never_nothing():
    assert not LabelCheck(0.11, 0.0, 20).nothing_differs


def test_one_validation_label_may_be_wrong_where_no_training_label_is():
    assert LabelCheck(0.0, 1 / 20, 20).nothing_differs
    assert not LabelCheck(0.0, 4 / 20, 20).nothing_differs
