import numpy as np

from giw.paper.bench.plan import Run
from giw.paper.bench.store import Result
from giw.paper.report.cells import gather
from giw.paper.report.scores import score_pictures

EXTRA = {
    "p_value": [0.01, 0.5, 0.02, 0.8],
    "score": [-0.5, -3.0, 0.0, -0.00005],
    "inside": [0.0, 1.0, 1.0, 0.0],
}


def pictures_of(variant="", extra=EXTRA):
    results = [
        Result(
            Run("mnist", "iii", "support", "giw", t, variant=variant),
            np.full(100, 0.5),
            1.0,
            extra=extra,
        )
        for t in (0, 1)
    ]
    (experiment,), _ = gather(results)
    return score_pictures(experiment)


def heights(picture):
    return [sum(bar.get_height() for bar in g) for g in picture.figure.get_axes()[0].containers]


def test_p_values_are_pooled_over_trials_and_told_in_words():
    (picture,) = pictures_of()
    assert "MNIST (iii), honest: 50% of inside and 50% of outside points" in picture.alt
    assert "Missing, no scores stored: MNIST (iv), Color-MNIST (iii)" in picture.caption
    assert heights(picture) == [4, 4]


def test_the_published_score_is_larger_inside_and_both_thresholds_are_drawn():
    (picture,) = pictures_of("osvm_code")
    assert picture.name.startswith("published-scores")
    assert "50% of inside and 50% of outside points above 0.0001" in picture.alt
    assert heights(picture) == [4, 4]
    (axes,) = picture.figure.get_axes()
    assert [line.get_xdata()[0] for line in axes.lines] == [1e-4, 0.4]


def test_no_scores_no_picture():
    assert pictures_of(extra={}) == []
    assert pictures_of(extra={"p_value": [0.5], "inside": [1.0, 0.0]}) == []
