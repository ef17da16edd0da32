import numpy as np
import pytest
import torch

import giw
from giw.nets import reliance
from giw.nets.label_check import LabelCheck
from giw.nets.reliance import (
    CANDIDATES,
    EASY,
    WARY,
    Reliance,
    best_reliance,
    brier_scores,
)
from giw.nets.training import Tensors


def flipped_labels(share, n=120, m=40):
    """Two blobs; a share of the training labels is flipped, validation labels are clean."""
    rng = np.random.default_rng(0)
    X, Xv = (rng.normal(size=(size, 5)) for size in (n, m))
    y, yv = (x[:, 0] > 0 for x in (X, Xv))
    return X, y ^ (rng.random(n) < share), Xv, yv


def fitted(share, **settings):
    X, y, Xv, yv = flipped_labels(share)
    settings = {"max_epochs": 20, "pretrain_epochs": 3, "learning_rate": 0.005} | settings
    clf = giw.GIWClassifier(method="giw_plus", random_state=0, **settings)
    return clf.fit(X, y, X_val=Xv, y_val=yv)


def test_flipped_labels_ask_for_weights_and_clean_ones_do_not():
    flipped, clean = fitted(0.4), fitted(0.0)
    assert flipped.trust_ == 1
    assert (clean.handover_, clean.trust_) == (0.5, 0)
    assert clean.label_error_ <= 0.1 < 0.4 <= flipped.label_error_


def test_the_losses_of_all_candidates_are_there_to_look_at():
    clf = fitted(0.5, max_epochs=2)
    assert tuple(clf.reliance_loss_) == tuple(map(str, CANDIDATES))
    assert Reliance(clf.handover_, clf.trust_) in CANDIDATES
    assert all(0 <= loss <= 2 for loss in clf.reliance_loss_.values())


def test_side_by_side_and_one_after_the_other_are_the_same(monkeypatch):
    together = fitted(0.3, max_epochs=3).reliance_loss_
    monkeypatch.setattr(reliance, "can_stack", lambda *_: False)
    apart = fitted(0.3, max_epochs=3).reliance_loss_
    assert together == pytest.approx(apart, rel=1e-3)
    assert len(set(together.values())) == len(CANDIDATES)  # each was trained with its own


def test_many_training_rows_send_a_sample(monkeypatch):
    """The net itself is fitted to all; the choice sees some, and the same ones every time."""
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(reliance, "MOST_ROWS", 50)
        trained = reliance.train_trials

        def spy(method, modules, datas, *rest, **options):
            seen.append(datas[0])
            return trained(method, modules, datas, *rest, **options)

        patch.setattr(reliance, "train_trials", spy)
        clf, again = (fitted(0.3, max_epochs=2) for _ in range(2))
    assert [len(data.y_train) for data in seen] == [50, 50]
    assert torch.equal(seen[0].x_train, seen[1].x_train)
    assert len(torch.unique(seen[0].x_train, dim=0)) == 50
    assert clf.reliance_loss_ == again.reliance_loss_


def test_a_fitted_model_can_be_saved_and_loaded(tmp_path):
    clf = fitted(0.0, max_epochs=1)
    clf.save(tmp_path / "model")
    loaded = giw.load(tmp_path / "model")
    assert loaded.reliance_loss_ == clf.reliance_loss_
    assert (loaded.handover_, loaded.trust_) == (clf.handover_, clf.trust_)
    X = flipped_labels(0.0)[0]
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def test_a_given_handover_is_taken_as_it_is():
    clf = fitted(0.0, handover=0.35, max_epochs=1)
    assert (clf.handover_, clf.trust_) == (0.35, 1)
    assert clf.reliance_loss_ is None
    with pytest.raises(ValueError, match="handover must lie between 0 and 1"):
        fitted(0.0, handover=2.0, max_epochs=1)
    with pytest.raises(ValueError, match="'auto' or a number"):
        fitted(0.0, handover="much", max_epochs=1)


def test_too_few_validation_points_choose_nothing():
    clf = fitted(0.0, n_folds=21, max_epochs=1)
    assert (clf.handover_, clf.trust_) == WARY
    assert clf.reliance_loss_ is None
    assert clf.label_error_ is None


def test_too_few_training_rows_choose_nothing():
    X, y, Xv, yv = flipped_labels(0.0, n=5)
    clf = giw.GIWClassifier(max_epochs=1, random_state=0)
    with pytest.warns(UserWarning, match="training rows"):
        clf.fit(X, y, X_val=Xv, y_val=yv)
    assert (clf.handover_, clf.trust_) == WARY


def test_images_are_fitted_with_what_was_measured_on_images():
    rng = np.random.default_rng(0)
    X, Xv = (rng.random((size, 1, 8, 8), dtype=np.float32) for size in (40, 20))
    clf = giw.GIWClassifier(method="giw_plus", max_epochs=1, pretrain_epochs=1, random_state=0)
    clf.fit(X, np.arange(40) % 2, X_val=Xv, y_val=np.arange(20) % 2)
    assert (clf.handover_, clf.trust_) == (0.8, 1)


def test_other_methods_know_no_handover():
    X, y, Xv, yv = flipped_labels(0.0)
    clf = giw.GIWClassifier(method="pooled", max_epochs=1, random_state=0)
    assert clf.fit(X, y, X_val=Xv, y_val=yv).handover_ is None


@pytest.mark.parametrize(("expected", "change_at"), [(WARY, 0.05), (EASY, -0.15)])
def test_the_less_expected_one_must_be_surely_better(expected, change_at):
    """By half a standard error where labels may be flipped, else by one and a half."""
    for gain, chosen in ((change_at - 0.01, WARY), (change_at + 0.01, EASY)):
        gains = np.tile([1.0, -1.0], 50) + gain  # 100 points: standard error 0.1005
        assert best_reliance({WARY: gains, EASY: np.zeros(100)}, expected=expected) == chosen


def asked(monkeypatch, labels, gain=0.0):
    """What is chosen after such a check of labels, and such a gain of the easy one."""
    calls = []

    def losses(*_, **__):
        calls.append(1)
        return {WARY: np.tile([1.0, -1.0], 50) + gain, EASY: np.zeros(100)}

    monkeypatch.setattr(reliance, "check_labels", lambda *_, **__: labels)
    monkeypatch.setattr(reliance, "reliance_losses", losses)
    data = Tensors(*(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64)) * 2)
    answer = reliance.choose_reliance(None, None, data, None, folds=2, random_state=0)
    return answer.chosen, len(calls)


def test_where_nothing_differs_nobody_else_is_asked(monkeypatch):
    assert asked(monkeypatch, LabelCheck(0.05, 0.06, 100), gain=-1.0) == (EASY, 0)


def test_good_labels_that_foretell_badly_are_relied_on_unless_validation_points_object(
    monkeypatch,
):
    assert asked(monkeypatch, LabelCheck(0.05, 0.3, 100), gain=-0.1) == (EASY, 1)
    assert asked(monkeypatch, LabelCheck(0.05, 0.3, 100), gain=-0.2) == (WARY, 1)


def test_contradicted_labels_need_validation_points_on_their_side(monkeypatch):
    assert asked(monkeypatch, LabelCheck(0.3, 0.3, 100), gain=0.0) == (WARY, 1)
    assert asked(monkeypatch, LabelCheck(0.3, 0.3, 100), gain=0.1) == (EASY, 1)


def test_brier_scores_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]))
    found = brier_scores(logits, torch.tensor([1, 1]))
    expected = [0.5**2 + 0.7**2 + 0.2**2, 0.1**2 + 0.2**2 + 0.1**2]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
