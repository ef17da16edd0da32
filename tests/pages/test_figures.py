import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from giw.pages.figures import (
    learning_curves,
    save,
    split_histogram,
    svg_bytes,
    trial_dots,
)
from giw.pages.style import STYLES

CURVES = {"giw": [[0.2, 0.6], [0.4, 0.8]], "diw": [[0.1, 0.3], [0.1, 0.5]]}


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def line_of(figure: Figure, method: str):
    return next(line for line in figure.axes[0].lines if line.get_color() == STYLES[method].color)


def test_a_learning_curve_is_the_mean_in_percent_and_its_band_one_standard_deviation():
    figure = learning_curves(CURVES)

    assert line_of(figure, "giw").get_xdata().tolist() == [1, 2]
    assert line_of(figure, "giw").get_ydata() == pytest.approx([30, 70])
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    std = 100 * np.sqrt(0.02)  # of 0.2 and 0.4, n - 1 in the denominator
    assert band.min() == pytest.approx(30 - std)
    assert band.max() == pytest.approx(70 + std)


def named(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_lines_are_named_in_the_order_in_which_they_end():
    assert named(learning_curves(CURVES)) == ["GIW", "DIW"]
    assert named(learning_curves(dict(reversed(CURVES.items())))) == ["GIW", "DIW"]


def test_one_trial_has_no_band_and_one_epoch_is_a_dot():
    figure = learning_curves({"giw": [[0.5]]})

    assert len(figure.axes[0].collections) == 0
    assert line_of(figure, "giw").get_marker() == "o"


def test_methods_may_differ_in_their_number_of_epochs():
    figure = learning_curves({"giw": [[0.1, 0.2, 0.3]], "diw": [[0.1]]})

    assert len(line_of(figure, "giw").get_xdata()) == 3
    assert len(line_of(figure, "diw").get_xdata()) == 1


def test_dots_are_trials_sorted_by_mean_with_the_best_on_top():
    figure = trial_dots({"giw": [0.8, 0.9], "diw": [0.5, 0.7], "pooled": [0.6, 0.9]})
    axes = figure.axes[0]

    assert [label.get_text() for label in axes.get_yticklabels()] == ["DIW", "Pooled", "GIW"]
    assert axes.collections[2].get_offsets().tolist() == [[80, 2], [90, 2]]
    assert words(figure) == ["60.0", "75.0", "85.0"]


def test_trials_are_joined_across_methods():
    axes = trial_dots({"diw": [0.5, 0.7], "giw": [0.8, 0.9]}).axes[0]

    assert [line.get_xdata().tolist() for line in axes.lines[:2]] == [[50, 80], [70, 90]]


def test_the_histogram_counts_both_groups_and_says_so():
    figure = split_histogram([0.01, 0.02, 0.4, 0.9, 0.95], [0, 1, 1, 1, 0], bins=2)
    inside, outside = figure.axes[0].containers
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]

    assert [bar.get_height() for bar in inside] == [2, 1]
    assert [bar.get_height() for bar in outside] == [1, 1]
    assert legend == ["inside the training support (3)", "outside it (2)"]


@pytest.mark.parametrize(
    ("threshold", "says"), [(0.05, "cut at 0.05, inside →"), (0.9, "← outside, cut at 0.9")]
)
def test_the_words_at_the_threshold_stand_where_there_is_room(threshold, says):
    assert words(split_histogram([0.0, 1.0], [False, True], threshold=threshold)) == [says]


@pytest.mark.parametrize("score", [[0.5], [-3.0, -3.0], [-200.0, 1e6]])
def test_any_scores_can_be_drawn(score):
    figure = split_histogram(score, np.ones(len(score), dtype=bool))

    assert sum(bar.get_height() for bar in figure.axes[0].containers[0]) == len(score)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learning_curves({}), "at least one method"),
        (lambda: learning_curves({"giw": [0.1, 0.2]}), r"shape \(trials, epochs\)"),
        (lambda: learning_curves({"giw": [[0.1, np.nan]]}), "NaN"),
        (lambda: learning_curves({"giw": [[50.0]]}), "divide percentages by 100"),
        (lambda: trial_dots({}), "at least one method"),
        (lambda: trial_dots({"giw": [0.1], "diw": [0.1, 0.2]}), "paired"),
        (lambda: split_histogram([], []), "one score and one inside flag"),
        (lambda: split_histogram([0.1, 0.2], [True]), "one score and one inside flag"),
        (lambda: split_histogram([0.1, 0.2], [0.3, 0.7]), "true or false"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_long_name_leaves_room_for_its_line():
    figure = learning_curves({"a method of my own": [[0.5]], "a method of one's own": [[0.1]]})

    assert named(figure) == ["a method of my own", "a method of one's…"]


def test_a_negative_threshold_has_a_minus_sign():
    assert words(split_histogram([-3.0, 0.0], [0, 1], threshold=-2)) == ["cut at −2, inside →"]


@pytest.mark.parametrize(
    "figure",
    [learning_curves(CURVES), trial_dots({"giw": [0.1, 0.2]}), split_histogram([0.2], [True])],
    ids=["curves", "dots", "histogram"],
)
def test_figures_are_saved_as_svg_and_png_the_same_bytes_each_time(figure, tmp_path):
    svg, png = save(figure, tmp_path / "folder" / "name.v1")
    first = svg.read_bytes(), png.read_bytes()
    save(figure, tmp_path / "folder" / "name.v1")

    assert (svg.name, png.name) == ("name.v1.svg", "name.v1.png")
    assert first[1].startswith(b"\x89PNG")
    assert (svg.read_bytes(), png.read_bytes()) == first


def test_no_global_state_is_touched():
    before = dict(matplotlib.rcParams)
    svg_bytes(learning_curves(CURVES))

    assert dict(matplotlib.rcParams) == before


def test_labels_with_dollar_signs_and_markup_are_text():
    method = r"$\frac$ <script>"
    for figure in (
        learning_curves({method: [[0.1, 0.2]]}),
        trial_dots({method: [0.1]}),
        split_histogram([0.1], [True], groups=(method, "b")),
    ):
        assert rb"$\frac$ &lt;script&gt;" in svg_bytes(figure)
