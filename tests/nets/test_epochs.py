import numpy as np
import pytest
import torch

import giw
from giw.nets.methods import ValOnly
from giw.nets.models import model_for
from giw.nets.stack import Trainings
from giw.nets.training import Tensors, TrainingConfig


def data(seed=0, n=60, m=24):
    """Validation labels are coin tosses: whatever is learnt from them is learnt by heart."""
    g = torch.Generator().manual_seed(seed)
    x, x_val = torch.randn(n, 3, generator=g), torch.randn(m, 3, generator=g)
    y_val = torch.randint(0, 2, (m,), generator=g)
    return Tensors(x, (x[:, 0] > 0).long(), x_val, y_val)


def test_left_out_losses_grow_where_validation_labels_are_learnt_by_heart():
    config = TrainingConfig(epochs=40, batch_size=32, learning_rate=0.02, decay_every=100)
    module = model_for((60, 3), 2, random_state=0)
    loss = Trainings(module, data(), config, 0).loss_by_epoch(ValOnly(), 3)
    assert loss.shape == (40,)
    assert loss[-1] > loss[:5].min() + 0.2
    assert loss.argmin() < 20


@pytest.mark.parametrize("folds", [1, 25])
def test_impossible_numbers_of_folds_are_refused(folds):
    module = model_for((60, 3), 2, random_state=0)
    with pytest.raises(ValueError, match="n_folds"):
        Trainings(module, data(), TrainingConfig(epochs=1), 0).loss_by_epoch(ValOnly(), folds)


def test_the_classifier_stops_where_left_out_points_do_best_and_fits_anew_to_all():
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(60, 2)), rng.normal(size=(24, 2))
    y, yv = (X[:, 0] > 0).astype(int), rng.integers(0, 2, 24)
    clf = giw.GIWClassifier(
        method="val_only", max_epochs=30, learning_rate=0.02, early_stopping=True, random_state=0
    ).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.n_epochs_ == clf.cross_fitted_loss_.argmin() + 1 < 30
    assert len(clf.history_["loss"]) == clf.n_epochs_
    full = giw.GIWClassifier(
        method="val_only", max_epochs=30, learning_rate=0.02, random_state=0
    ).fit(X, y, X_val=Xv, y_val=yv)
    assert full.n_epochs_ == 30
    assert full.cross_fitted_loss_ is None
    # the refit is the full training cut short: same batches, same schedule
    np.testing.assert_allclose(
        clf.history_["loss"], full.history_["loss"][: clf.n_epochs_], rtol=1e-6
    )
