"""What is saved comes back, and what was tampered with does not."""

import copy
import hashlib
import json
import os
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import skops.io as skops
import torch
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import giw
from giw.estimators.saving import _hashed, _index_checksum, load_with_notes, save
from giw.estimators.sklearn_on_disk import from_skops, to_skops
from giw.nets.models import MLP, LeNet5, ResNet18

RNG = np.random.default_rng(0)
X, XV = RNG.normal(size=(120, 3)), RNG.normal([3, 0, 0], size=(20, 3))
Y, YV = np.where(X[:, 0] > 0, "yes", "no"), np.where(XV[:, 1] > 0, "yes", "no")


def fitted(module=None, **settings):
    clf = giw.GIWClassifier(module, max_epochs=2, pretrain_epochs=1, random_state=0, **settings)
    return clf.fit(X, Y, X_val=XV, y_val=YV)


@pytest.fixture(scope="module")
def clf():
    return fitted()


@pytest.fixture
def folder(clf, tmp_path):
    return clf.save(tmp_path / "model")


def rewrite(folder: Path, change, *, honest: bool = True) -> None:
    """Change the index; an honest change has the checksum that belongs to it."""
    index = json.loads((folder / "giw.json").read_text())
    change(index)
    if honest:
        index["sha256"] = _index_checksum(index)
    (folder / "giw.json").write_text(json.dumps(index))


def forge(folder: Path, change) -> None:
    """Exchange the estimator in a folder, with checksums that fit."""
    (old,) = folder.glob("model-*.skops")
    types = skops.get_untrusted_types(file=old)
    content = skops.dumps(change(skops.load(old, trusted=types)))
    old.unlink()
    new = _hashed("model.skops", content)
    (folder / new).write_bytes(content)
    known = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewrite(
        folder, lambda index: [index["files"].pop(old.name), index["files"].update({new: known})]
    )


def test_a_loaded_net_predicts_the_same_to_the_last_bit(clf, folder):
    again = giw.load(folder)

    assert type(again) is giw.GIWClassifier
    assert_array_equal(again.predict_proba(XV), clf.predict_proba(XV))
    assert_array_equal(again.predict(XV), clf.predict(XV))
    assert again.get_params() == clf.get_params()
    assert not again.module_.training


def test_everything_that_was_learned_comes_back(clf, folder):
    again = giw.load(folder)

    assert set(vars(again)) == set(vars(clf))
    assert again.alpha_ == clf.alpha_
    assert_array_equal(again.classes_, clf.classes_)
    assert again.classes_.dtype == clf.classes_.dtype
    assert_array_equal(again.split_.p_value, clf.split_.p_value)
    assert repr(again.split_) == repr(clf.split_)
    for name, values in clf.history_.items():
        assert_array_equal(again.history_[name], values)


def test_a_saved_model_is_json_and_arrays_and_no_pickle(folder):
    names = sorted(path.name.partition("-")[0] for path in folder.iterdir())

    assert names == ["giw.json", "model", "net"]
    assert {path.suffix for path in folder.iterdir()} == {".json", ".skops", ".safetensors"}
    assert json.loads((folder / "giw.json").read_text())["version"] == 2


@pytest.mark.parametrize(
    "labels",
    [Y == "yes", (Y == "yes").astype(int), np.where(Y == "yes", 2.0, -1.0), Y.astype(object)],
)
def test_labels_of_any_type_come_back_as_they_were(labels, tmp_path):
    clf = giw.GIWClassifier(max_epochs=1, method="train_only", random_state=0).fit(X, labels)
    again = giw.load(clf.save(tmp_path / "model"))

    assert again.classes_.dtype == clf.classes_.dtype
    assert_array_equal(again.predict(X), clf.predict(X))


def test_nets_of_ours_and_values_of_any_kind_come_back(clf, tmp_path):
    held = copy.copy(clf)
    held.nets_ = [MLP(6, 4, hidden=(7, 3, 2)).eval(), LeNet5(3, channels=3), ResNet18(20)]
    held.values_ = {"a": (float("inf"), np.float32(0.1)), "b": [None, True, "ü"], "c": np.arange(0)}

    again = giw.load(held.save(tmp_path / "model"))

    for net, new in zip(held.nets_, again.nets_, strict=True):
        assert type(new) is type(net)
        assert new.training == net.training
        assert list(new.state_dict()) == list(net.state_dict())
        assert all(torch.equal(new.state_dict()[k], v) for k, v in net.state_dict().items())
    assert again.values_["a"] == held.values_["a"]
    assert type(again.values_["a"][1]) is np.float32
    assert again.values_["b"] == held.values_["b"]
    assert_array_equal(again.values_["c"], held.values_["c"])


class OwnNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.layers(x)


def test_a_net_of_ones_own_needs_its_module(tmp_path):
    clf = fitted(OwnNet())
    folder = clf.save(tmp_path / "model")
    fresh = OwnNet()
    before = {name: value.clone() for name, value in fresh.state_dict().items()}

    with pytest.raises(ValueError, match=r"OwnNet, a net of your own.*module=net"):
        giw.load(folder)
    again = giw.load(folder, module=fresh)
    assert_array_equal(again.predict_proba(XV), clf.predict_proba(XV))
    assert all(torch.equal(value, before[name]) for name, value in fresh.state_dict().items())
    with pytest.raises(ValueError, match=r"do not fit OwnNet.*size mismatch"):
        giw.load(folder, module=OwnNet(width=5))


def test_saving_again_replaces_the_old_model_and_leaves_nothing_behind(folder):
    other = giw.GIWClassifier(max_epochs=1, method="val_only", random_state=1)
    other.fit(X, Y, X_val=XV, y_val=YV).save(folder)

    assert_array_equal(giw.load(folder).predict_proba(X), other.predict_proba(X))
    assert len(list(folder.iterdir())) == 3
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_crash_while_saving_leaves_the_old_model_whole(clf, folder, step, monkeypatch):
    other = fitted(method="pooled")

    def crash(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, crash)
    with pytest.raises(OSError, match="no space"):
        other.save(folder)
    with pytest.raises(OSError, match="no space"):
        other.save(folder.parent / "new") if step == "fsync" else crash()
    monkeypatch.undo()

    assert_array_equal(giw.load(folder).predict_proba(X), clf.predict_proba(X))
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_with_other_things_in_it_is_not_written_to(clf, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="holds other files"):
        clf.save(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        clf.save(tmp_path / "thesis.tex")


def test_notes_travel_with_the_model(clf, tmp_path):
    save(clf, tmp_path / "m", notes={"label": "<y>", "columns": [1, 2]})
    assert load_with_notes(tmp_path / "m")[1] == {"label": "<y>", "columns": [1, 2]}


def test_a_file_from_a_newer_version_is_refused_with_the_way_out(folder):
    rewrite(folder, lambda index: index.update(version=3, giw="9.0"))
    with pytest.raises(ValueError, match=r"written by giw '9.0' in format 3.*upgrade giw"):
        giw.load(folder)


@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_truncated_files_are_refused(folder, keep):
    for path in folder.iterdir():
        whole = path.read_bytes()
        count = keep if isinstance(keep, int) else int(keep * len(whole))
        path.write_bytes(whole[:count])
        with pytest.raises(ValueError, match=r"truncated|damaged"):
            giw.load(folder)
        path.write_bytes(whole)
    giw.load(folder)


def test_one_changed_bit_is_noticed(folder):
    path = next(folder.glob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="was altered: its sha256 sum is"):
        giw.load(folder)


def test_an_edited_index_is_noticed(folder):
    rewrite(folder, lambda i: None, honest=False)  # laid out in another way
    giw.load(folder)
    rewrite(folder, lambda i: i["notes"].update(label="other"), honest=False)
    with pytest.raises(ValueError, match="changed after it was saved"):
        giw.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i: i["files"].update({"../../secret": {"bytes": 1}}), "outside itself"),
        (lambda i: i["files"].update({"more": {"bytes": 1}}), "more is missing"),
        (lambda i: i.pop("files"), "save it again"),
        (lambda i: i.update(format="other"), "does not describe a giw model"),
        (lambda i: i.update(version="a\nb", giw="c\nd"), "fit the model again"),
    ],
)
def test_a_forged_index_is_refused_before_anything_is_built(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(ValueError, match=message) as told:
        giw.load(folder)
    assert "\n" not in str(told.value)


def with_sizes(model, **sizes):
    model.nets_["giw_plus"] = model.module_ = replace(model.module_, sizes=sizes)
    return model


def with_net(model, name):
    model.nets_["giw_plus"] = model.module_ = replace(model.module_, net=name, sizes={})
    return model


def holding(value):
    def change(model):
        model.held_ = value
        return model

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: LogisticRegression(), "holds a LogisticRegression, which giw does not save"),
        (lambda m: type(m)(), "save it again"),
        (lambda m: with_sizes(m, n=1), "save it again"),
        (lambda m: with_sizes(m, **m.module_.sizes | {"hidden": [10**9, 64]}), "do not fit MLP"),
        (holding(subprocess.Popen), r"refused: subprocess\.Popen"),
        (holding(partial(os.system, "true")), r"refused: .*system"),
        (holding(Path("x").unlink), "refused: .*unlink"),
        (holding(Path("x")), r"refused: pathlib\..*Path"),
        (lambda m: with_net(m, "a\nb"), "a b, a net of your own"),
    ],
)
def test_a_forged_model_is_refused(folder, change, message):
    forge(folder, change)
    with pytest.raises(ValueError, match=message) as told:
        giw.load(folder)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("part", ["sha256", "bytes"])
def test_a_forged_checksum_is_told_in_one_line(folder, part):
    rewrite(folder, lambda i: [known.update({part: "a\nb"}) for known in i["files"].values()])
    with pytest.raises(ValueError, match="altered") as told:
        giw.load(folder)
    assert "\n" not in str(told.value)


def test_what_is_not_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        giw.load(tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no giw.json"):
        giw.load(tmp_path)


def test_only_fitted_estimators_of_ours_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        giw.GIWClassifier().save(tmp_path / "m")
    with pytest.raises(ValueError, match="its own estimators, got LogisticRegression"):
        save(LogisticRegression().fit(X, Y), tmp_path / "m")
    assert not (tmp_path / "m").exists()


# scikit-learn's estimators ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=3),
        RandomForestClassifier(3),
    ],
)
def test_scikit_learns_estimators_come_back(model):
    again = from_skops(to_skops(model.fit(X, Y), "m"), "m")
    assert_array_equal(again.predict(X), model.predict(X))


def test_equal_estimators_are_equal_bytes():
    one, other = (to_skops(RandomForestClassifier(3, random_state=0).fit(X, Y), "m") for _ in "ab")
    assert one == other


class Stranger(BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = True
        return self


def test_types_that_are_not_scikit_learns_are_refused_both_ways():
    with pytest.raises(ValueError, match=r"refused: .*Stranger"):
        to_skops(Stranger().fit(X, Y), "m")
    with pytest.raises(ValueError, match=r"refused: .*Stranger"):
        from_skops(skops.dumps(Stranger().fit(X, Y)), "m")


def test_a_tree_that_points_outside_itself_is_refused():
    """Compiled code would follow it into foreign memory."""
    model = HistGradientBoostingClassifier(max_iter=1).fit(X, Y)
    model._predictors[0][0].nodes["left"][0] = 10**6
    with pytest.raises(ValueError, match="nodes point outside"):
        from_skops(skops.dumps(model), "m")
    forest = RandomForestClassifier(1).fit(X, Y)
    assert forest.estimators_[0].tree_.node_count > 1
    forest.estimators_[0].tree_.children_left[0] = 10**6
    with pytest.raises(ValueError, match="nodes point outside"):
        from_skops(skops.dumps(forest), "m")


def test_a_forest_does_not_vouch_for_a_tree_of_more_columns():
    """The forest checks how wide rows are, and its trees believe it."""
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    wide = RandomForestClassifier(1, random_state=0).fit(np.repeat(X, 9, axis=1), Y)
    forest.estimators_[1] = wide.estimators_[0]
    with pytest.raises(ValueError, match="nodes point outside"):
        from_skops(skops.dumps(forest), "m")
    forest.estimators_ = HistGradientBoostingClassifier(max_iter=1).fit(X, Y)._predictors
    with pytest.raises(ValueError, match="belongs to no estimator"):
        from_skops(skops.dumps(forest), "m")


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(PolynomialFeatures(), HistGradientBoostingClassifier(max_iter=3)),
        StackingClassifier(
            [(str(k), make_pipeline(StandardScaler(), LogisticRegression(C=k))) for k in (1, 2)],
            RandomForestClassifier(3, max_features=None, random_state=0),
            passthrough=True,
        ),
        BaggingClassifier(DecisionTreeClassifier(), 3, max_features=0.6, random_state=0),
        BaggingClassifier(make_pipeline(PolynomialFeatures(), DecisionTreeClassifier()), 2),
        GradientBoostingClassifier(n_estimators=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_may_see_other_columns_than_those_of_the_table(model):
    model.fit(X, X[:, 1] * X[:, 2] > 0)  # so that the product, a later column, is used
    assert_array_equal(from_skops(to_skops(model, "m"), "m").predict(X), model.predict(X))


def test_damaged_bytes_are_refused():
    content = skops.dumps(LogisticRegression().fit(X, Y))
    with pytest.raises(ValueError, match="cannot be read"):
        from_skops(content[:100], "m.skops")


@pytest.mark.parametrize(
    "model", [HistGradientBoostingClassifier(max_iter=5), LogisticRegression()]
)
def test_reweighted_estimators_come_back(model, tmp_path):
    clf = giw.ReweightedClassifier(model, random_state=0).fit(X, Y, X_val=XV, y_val=YV)
    folder = clf.save(tmp_path / "model")
    assert {path.suffix for path in folder.iterdir()} == {".json", ".skops"}
    again = giw.load(folder)

    assert_array_equal(again.predict_proba(XV), clf.predict_proba(XV))
    assert_array_equal(again.weight_, clf.weight_)
    assert again.notes_ == clf.notes_
    assert type(again.estimator) is type(model)
    assert again.stack_weight_ == clf.stack_weight_
    assert_array_equal(again.val_rows_, clf.val_rows_)
    assert giw.select(again).order == giw.select(clf).order
    assert again.fit(X, Y, X_val=XV, y_val=YV).alpha_ == clf.alpha_
