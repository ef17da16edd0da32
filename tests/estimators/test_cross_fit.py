import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from giw.estimators.cross_fit import cross_fit, refined
from giw.estimators.weighted_fit import quicker_copy


class Memory(ClassifierMixin, BaseEstimator):
    """Knows by heart what it was fitted to, and says so with certainty."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        self.known_ = {float(value) for value in X[:, 0]}
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        known = np.array([float(value) in self.known_ for value in X[:, 0]])
        return np.where(known[:, None], [[1.0, 0.0]], [[0.5, 0.5]])


BLANK = np.zeros((40, 1)), np.zeros((12, 1))  # nothing for the linear model to learn


def points(n=40, m=12):
    X = np.arange(n + m, dtype=float)[:, None]
    y = np.arange(n + m) % 2
    return X[:n], y[:n], X[n:], y[n:]


def test_no_point_is_judged_by_a_model_that_has_seen_it():
    """A seen point would have loss 0 or 4.6; an unseen one has log 2."""
    found = cross_fit(Memory(), *points(), BLANK, np.random.default_rng(0))
    np.testing.assert_allclose(found.train, np.log(2))
    np.testing.assert_allclose(found.val, np.log(2))


def test_nor_in_the_second_look():
    data = points()
    found = cross_fit(Memory(), *data, BLANK, np.random.default_rng(0))
    weight = {k: np.ones(40) for k in range(5)}
    again = refined(
        Memory(), *data, found, by_fold=weight, trust=1.0, inside=np.ones(12), share=0.5
    )
    np.testing.assert_allclose(again.train, np.log(2))
    np.testing.assert_allclose(again.val, np.log(2))


def noisy(seed=0, n=300, m=40):
    rng = np.random.default_rng(seed)
    X, Xv = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    flipped = rng.random(n) < 0.35
    return X, ((X[:, 0] > 0) ^ flipped).astype(int), Xv, (Xv[:, 0] > 0).astype(int), flipped


def test_the_second_look_tells_flipped_labels_better():
    """With weights that know the flips, the reweighted model finds flipped labels less likely."""
    *data, flipped = noisy()
    found = cross_fit(LogisticRegression(), *data, (data[0], data[2]), np.random.default_rng(0))
    weight = {k: np.where(flipped, 0.01, 1.0) for k in range(5)}
    again = refined(
        LogisticRegression(), *data, found, by_fold=weight, trust=1.0, inside=np.ones(40), share=0.2
    )

    def gap(losses):
        return losses[flipped, 0].mean() - losses[~flipped, 0].mean()

    assert gap(again.train) > 1.5 * gap(found.train)
    np.testing.assert_array_equal(again.train[:, 1], found.train[:, 1])


def test_trees_that_learn_nothing_from_few_rows_leave_judging_to_a_linear_model():
    """With twenty rows to a leaf, a tree makes one leaf of 32 rows: all labels look alike."""
    X, y, Xv, yv, flipped = noisy()
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    found = cross_fit(trees, X, y, Xv, yv, (X, Xv), np.random.default_rng(0))
    assert found.val[:, 1].mean() < 0.5
    assert found.train[flipped, 1].mean() > 2 * found.train[~flipped, 1].mean()


def test_an_estimator_that_judges_better_than_a_line_judges_itself():
    rng = np.random.default_rng(0)
    X, Xv = rng.uniform(-1, 1, (200, 1)), np.linspace(-1, 1, 40)[:, None]
    y, yv = (np.abs(side[:, 0]) < 0.5 for side in (X, Xv))
    trees = DecisionTreeClassifier(max_depth=2, random_state=0)
    found = cross_fit(trees, X, y, Xv, yv, (X, Xv), np.random.default_rng(0))
    assert found.val[:, 1].mean() < 0.4  # a line cannot tell the middle from both ends: 0.69


def test_one_validation_point_cannot_be_cross_fitted():
    X, y, Xv, yv = points()
    data = X, y, Xv[:1], yv[:1], BLANK
    assert cross_fit(LogisticRegression(), *data, np.random.default_rng(0)) is None


def test_losses_of_a_regression_do_not_depend_on_the_unit_of_the_target():
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    y, yv = X[:, 0] + rng.normal(size=60), Xv[:, 0] + rng.normal(size=20)
    one, kilo = (
        cross_fit(Ridge(), X, unit * y, Xv, unit * yv, (X, Xv), np.random.default_rng(0))
        for unit in (1.0, 1000.0)
    )
    np.testing.assert_allclose(one.train, kilo.train)
    np.testing.assert_allclose(one.val, kilo.val)


def test_a_quicker_copy_has_fewer_bins_wherever_the_trees_stand_and_is_a_copy():
    trees = HistGradientBoostingClassifier()
    for estimator in (trees, make_pipeline(StandardScaler(), trees)):
        found = [
            value
            for name, value in quicker_copy(estimator).get_params().items()
            if name.endswith("max_bins")
        ]
        assert found == [32]
    assert trees.max_bins == 255
    assert quicker_copy(HistGradientBoostingClassifier(max_bins=16)).max_bins == 16
    assert quicker_copy(LogisticRegression(C=3.0)).C == 3.0
