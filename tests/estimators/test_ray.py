"""Candidates and folds over the workers of a local Ray; skipped where Ray is not installed."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import giw

ray = pytest.importorskip("ray")


@pytest.fixture
def workers():
    from ray.util.joblib import register_ray

    ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR")
    register_ray()
    yield
    ray.shutdown()


def test_a_stack_that_ray_has_fitted_is_the_same(workers):
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(200, 3)), rng.normal(size=(40, 3)) + np.array([1, 0, 0])
    y, yv = X[:, 0] > 0, Xv[:, 1] > 0
    clf = giw.ReweightedClassifier(LogisticRegression(), n_jobs=2, random_state=0)
    alone = clf.fit(X, y, X_val=Xv, y_val=yv).predict_proba(Xv)
    with joblib.parallel_config(backend="ray"):
        spread = clf.fit(X, y, X_val=Xv, y_val=yv).predict_proba(Xv)
    np.testing.assert_array_equal(spread, alone)
