"""Pictures show what they say."""

import numpy as np
import pytest
import torch

import giw
from giw.support import draw_outside, draw_p_values, draw_scores


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    val = np.concatenate([rng.uniform(size=(30, 2)), 5 + rng.uniform(size=(10, 2))])
    return giw.SupportSplitter(random_state=0).fit(rng.uniform(size=(300, 2))).split(val)


def test_every_point_is_in_one_of_the_two_groups(split):
    ax = draw_scores(split)
    bars = [sum(patch.get_height() for patch in group) for group in ax.containers[-2:]]

    assert sum(bars) == 40
    assert bars[0] == split.inside.sum()
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == "called outside"


def test_the_truth_may_name_the_groups(split):
    ax = draw_scores(split, truth=np.arange(40) < 30)
    bars = [sum(patch.get_height() for patch in group) for group in ax.containers[-2:]]

    assert bars == [30, 10]
    with pytest.raises(ValueError, match="one truth per point"):
        draw_scores(split, truth=[True])


def test_the_p_value_histogram_holds_every_point(split):
    ax = draw_p_values(split, bins=10)

    assert sum(patch.get_height() for patch in ax.patches) == 40


@pytest.mark.parametrize("shape", [(5, 5), (5, 5, 1), (1, 5, 5), (3, 5, 5), (5, 5, 3)])
def test_outside_points_are_drawn(split, shape):
    images = np.random.default_rng(0).normal(size=(40, *shape))

    figure = draw_outside(split, torch.from_numpy(images), most=6, columns=3)

    assert sum(bool(ax.images) for ax in figure.axes) == 6


def test_no_outside_point_is_said():
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(300, 2))
    split = giw.SupportSplitter(random_state=0).fit(z).split(np.full((1, 2), 0.5))

    figure = draw_outside(split, np.zeros((1, 4, 4)))

    assert figure.get_suptitle() == "no point was called outside"


def test_images_must_match_the_points(split):
    with pytest.raises(ValueError, match="one image per point"):
        draw_outside(split, np.zeros((3, 4, 4)))
