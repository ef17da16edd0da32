"""The validation points of the authors' loader, rebuilt from Python's generator."""

import numpy as np
import pytest
from tests.paper.tiny_grid import SAMPLES

from giw.paper.mnist import mnist
from giw.paper.plan import plan
from giw.paper.settings import paper_problem
from giw.paper.shifts import Sample, authors_colors, authors_draw, equal_counts

# of MNIST's training set, two of each digit from 0 to 9
ROWS = [11888, 38440, 32562, 56046, 14653, 58192, 31548, 58667, 29485, 36419]
ROWS += [46091, 10412, 43973, 9802, 6054, 57858, 38778, 22604, 3977, 54181]
TENFOLD = tuple(Sample(s.x, s.group, s.group, tuple("0123456789")) for s in SAMPLES)


@pytest.mark.slow
def test_the_rows_of_mnist_are_the_authors():
    try:
        digit = mnist("train").group
    except FileNotFoundError:
        pytest.skip("MNIST is not in GIW_DATA")
    rows, _ = authors_draw(digit, dict.fromkeys(range(10), 2))
    assert rows.tolist() == ROWS


def test_seven_points_are_red_seven_green_and_six_blue():
    """By place in the shuffled list: 0 to 6 red, 8 to 14 green, 7 and the last five blue."""
    _, rng = authors_draw(np.repeat(np.arange(10), 9), equal_counts(np.arange(10), 20))
    again = authors_draw(np.repeat(np.arange(10), 9), equal_counts(np.arange(10), 20))[1]
    places = list(range(20))
    again.shuffle(places)

    color = authors_colors(rng, 20)

    assert color[places].tolist() == [0] * 7 + [2] + [1] * 7 + [2] * 5


@pytest.mark.parametrize(("dataset", "samples", "inside"), [
    ("mnist", SAMPLES, 8), ("color_mnist", TENFOLD, 7),
])  # fmt: skip
def test_all_trials_have_one_draw_which_stays_in_the_training_pool(dataset, samples, inside):
    first, second = (
        paper_problem(dataset, "iii", "support", trial=t, protocol="authors", samples=samples)
        for t in (0, 1)
    )
    np.testing.assert_array_equal(first[0].val.x, second[0].val.x)
    train = {x.tobytes() for x in first[0].train.x}
    assert [x.tobytes() in train for x in first[0].val.x] == first[1].inside.tolist()
    assert first[1].inside.sum() == inside


def test_the_draw_is_not_known_for_cifar():
    with pytest.raises(ValueError, match="known for MNIST and Color-MNIST only"):
        plan(datasets=["cifar20"], protocols=["authors"])
    assert {run.dataset for run in plan(protocols=["authors"])} == {"mnist", "color_mnist"}
