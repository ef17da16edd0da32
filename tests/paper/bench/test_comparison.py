import numpy as np
import pytest

from giw.nets.methods import GIW, Pooled, ValOnly
from giw.nets.models import model_for
from giw.nets.training import TrainingConfig
from giw.paper.bench import compare
from giw.paper.readers import digits
from giw.paper.shift import support_shift

CONFIG = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=128)
DIGITS = digits()


def run(methods, seen=None, **settings):
    def make_problem(seeds):
        problem, truth = support_shift(
            DIGITS, train_groups=range(4), test_groups=range(10), n_val=20, random_state=seeds.draw
        )
        if seen is not None:
            seen.append(problem.val.x)
        return problem, truth

    def make_net(problem, seed):
        return model_for(problem.train.x.shape, problem.n_classes, random_state=seed)

    return compare(make_problem, make_net, methods, CONFIG, **settings)


def test_every_method_is_scored_in_every_trial():
    scores = run([Pooled(), ValOnly()], trials=2)
    assert [(s.method, s.trial) for s in scores] == [
        ("pooled", 0), ("val_only", 0), ("pooled", 1), ("val_only", 1),
    ]  # fmt: skip
    assert all(s.curve.shape == (2,) for s in scores)
    assert all(s.accuracy == pytest.approx(s.curve.mean()) for s in scores)


def test_validation_is_drawn_anew_in_every_trial():
    seen = []
    run([ValOnly()], seen, trials=2)
    assert not np.array_equal(seen[0], seen[1])


def test_a_method_does_not_feel_its_neighbours():
    """Trials are paired because draw, start and batches depend on the trial alone."""
    alone = run([Pooled()], trials=1)
    beside = run([ValOnly(), GIW(split_on="input"), Pooled()], trials=1)
    np.testing.assert_array_equal(alone[0].curve, beside[2].curve)


def test_splits_are_judged_by_the_truth():
    (score,) = run([GIW(split_on="input")], trials=1)
    assert score.true_alpha == pytest.approx(0.4)
    wrong = np.mean(np.asarray(score.split.inside) != score.inside)
    assert score.split_error == pytest.approx(wrong)
    assert score.split_error <= 0.25


def test_another_seed_draws_other_trials():
    first = run([Pooled()], trials=1, random_state=0)
    second = run([Pooled()], trials=1, random_state=1)
    assert not np.array_equal(first[0].curve, second[0].curve)
