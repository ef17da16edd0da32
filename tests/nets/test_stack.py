"""A stack of nets: weights by points left out, and a mean of probabilities."""

import numpy as np
import pytest
import torch
from tests.nets.training.toy import toy_net, toy_tensors

import giw
from giw.nets.methods import GIWPlus, method_named
from giw.nets.stack import RIVALS, Trainings, fit_stack
from giw.nets.training import TrainingConfig, pretrain

CONFIG = TrainingConfig(epochs=3, pretrain_epochs=2, batch_size=16, learning_rate=0.02)


def problem(flipped=0.0, n=300, m=40, seed=0):
    """Two blobs that training has and one that it has not; some training labels are wrong."""
    rng = np.random.default_rng(seed)
    X, Xv = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    X[:, 0] += np.where(rng.random(n) < 0.5, 3, -3)
    Xv[:, 0] += rng.choice([3, -3], m)
    y, yv = (X[:, 0] > 0).astype(int), (Xv[:, 0] > 0).astype(int)
    wrong = rng.random(n) < flipped
    return X, np.where(wrong, 1 - y, y), Xv, yv


def fitted(**settings):
    X, y, Xv, yv = problem()
    settings = {"max_epochs": 3, "pretrain_epochs": 2, "random_state": 0, "stack": True} | settings
    return giw.GIWClassifier(**settings).fit(X, y, X_val=Xv, y_val=yv), Xv


def test_probabilities_are_the_weighted_mean_of_the_nets():
    model, Xv = fitted()
    assert sum(model.stack_weight_.values()) == pytest.approx(1)
    assert set(model.left_out_loss_) == {"giw_plus", *RIVALS}
    expected = 0.0
    X, *_ = problem()
    x = torch.tensor((Xv - X.mean(0)) / X.std(0), dtype=torch.float32)
    for method, weight in model.stack_weight_.items():
        found = [model.nets_[method](x).softmax(1).detach().numpy()]
        folds = [net for name, net in model.nets_.items() if name.startswith(f"{method} without")]
        if method == "train_only":
            assert not folds  # it sees no validation point, whichever is left out
        else:
            assert len(folds) == 3
            found.append(np.mean([net(x).softmax(1).detach().numpy() for net in folds], axis=0))
        expected += weight * np.mean(found, axis=0)
    np.testing.assert_allclose(model.predict_proba(Xv), expected, atol=1e-5)


def test_a_candidate_that_contradicts_left_out_points_gets_no_weight():
    """Training labels are all wrong: whoever knows nothing else contradicts validation."""
    X, y, Xv, yv = problem(flipped=1.0)
    model = giw.GIWClassifier(
        stack=True, max_epochs=30, pretrain_epochs=20, learning_rate=0.02, random_state=0
    ).fit(X, y, X_val=Xv, y_val=yv)
    assert "train_only" not in model.stack_weight_
    assert model.left_out_loss_["train_only"] == max(model.left_out_loss_.values())
    assert (model.predict(Xv) == yv).mean() > 0.9


def test_a_left_out_loss_does_not_see_its_own_point(monkeypatch):
    data, changed = toy_tensors(n=60, m=12), toy_tensors(n=60, m=12)
    cuts = Trainings(toy_net(), data, CONFIG, 0).cuts(3)
    monkeypatch.setattr(Trainings, "cuts", lambda *_: cuts)  # other labels would make other folds
    first, _ = cuts[0]
    changed.y_val[first] = 1 - changed.y_val[first]
    start = pretrain(toy_net(), data, CONFIG)
    losses, other = (
        Trainings(toy_net(), d, CONFIG, 0).left_out(method_named("pooled"), start, 3, 1.0)[0]
        for d in (data, changed)
    )
    # labels of the first fold change its own losses by the label alone: p and 1 - p
    own = first.numpy()
    np.testing.assert_allclose(np.exp(-losses[own]) + np.exp(-other[own]), 1, atol=1e-5)
    assert (np.abs(losses - other)[~own] > 1e-6).all()


def test_with_too_few_points_to_leave_out_the_prior_weighs():
    trainings = Trainings(toy_net(), toy_tensors(m=5), CONFIG, 0)
    found = fit_stack(trainings, [GIWPlus(), *map(method_named, RIVALS)], folds=3)
    assert list(found.weight.values()) == pytest.approx([0.4, 0.4, 0.1, 0.1])
    assert found.left_out_loss == {}
    assert len(found.records) == 4


def test_a_stack_is_the_same_for_a_seed_and_after_saving(tmp_path):
    model, Xv = fitted()
    again, _ = fitted()
    np.testing.assert_array_equal(model.predict_proba(Xv), again.predict_proba(Xv))
    model.save(tmp_path / "model")
    loaded = giw.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(Xv), model.predict_proba(Xv), atol=1e-7)
    assert loaded.stack_weight_ == model.stack_weight_


def test_other_methods_stand_alone():
    model, _ = fitted(method="pooled")
    assert model.stack_weight_ == {"pooled": 1.0}
    assert model.left_out_loss_ == {}


def test_a_stack_trains_as_many_epochs_as_left_out_points_chose():
    model, _ = fitted(early_stopping=True, max_epochs=6)
    assert len(model.cross_fitted_loss_) == 6
    assert len(model.history_["loss"]) == model.n_epochs_ == model.cross_fitted_loss_.argmin() + 1


def test_a_stack_that_was_killed_goes_on_and_ends_as_an_undisturbed_one(tmp_path, monkeypatch):
    X, y, Xv, yv = problem()
    settings = {"max_epochs": 3, "pretrain_epochs": 2, "random_state": 0, "stack": True}
    whole = giw.GIWClassifier(**settings).fit(X, y, Xv, yv).predict_proba(Xv)
    calls, alone = [], Trainings.alone

    def dies(self, method, start=None):
        calls.append(method.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return alone(self, method, start)

    monkeypatch.setattr(Trainings, "alone", dies)
    clf = giw.GIWClassifier(**settings)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y, Xv, yv, checkpoint=tmp_path / "run")
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert "run.pooled_plus.left_out" in kept
    assert "run.train_only" in kept
    again = clf.fit(X, y, Xv, yv, checkpoint=tmp_path / "run").predict_proba(Xv)
    np.testing.assert_array_equal(again, whole)
    now = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {name: now[name] for name in kept} == kept  # what was trained is not trained again


def test_every_point_is_left_out_once_and_rests_are_equally_long():
    cuts = Trainings(toy_net(), toy_tensors(m=11), CONFIG, 0).cuts(3)
    assert torch.stack([out for out, _ in cuts]).sum(0).tolist() == [1] * 11
    for out, rest in cuts:
        assert len(rest) == 7  # eleven less the largest fold
        assert not out[rest].any()


def test_nets_of_images_are_stacked_if_nobody_says_otherwise_and_tables_are_not():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 255, (60, 1, 16, 16), dtype=np.uint8), np.arange(60) % 2
    settings = {"max_epochs": 1, "pretrain_epochs": 1, "random_state": 0}
    fit = giw.GIWClassifier(**settings).fit
    assert len(fit(X, y, X[:8], y[:8]).left_out_loss_) == 4
    large = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 8000), torch.nn.ReLU(),
                                torch.nn.Linear(8000, 2))  # fmt: skip
    assert len(giw.GIWClassifier(large, **settings).fit(X, y, X[:8], y[:8]).nets_) == 1
    table = X.reshape(60, -1)[:, :3]
    assert len(fit(table, y, table[:8], y[:8]).nets_) == 1
