import numpy as np
import pytest

from giw.pages.figures import png_bytes, svg_bytes
from giw.pages.style import BLUE, Style
from giw.paper.report.panels import curve_grid, line_grid, montage, picture_grid, score_grid

CURVES = {("a", "x"): {"giw": np.full((2, 30), 0.5), "diw": np.full((1, 30), 0.25)}}


def visible(axes):
    return [text.get_text() for text in axes.texts]


def test_panels_lie_in_rows_and_columns_and_empty_ones_say_so():
    figure = curve_grid(CURVES, rows=["a", "b"], columns=["x", "y"])
    panels = figure.get_axes()
    assert len(panels) == 4
    assert visible(panels[0]) == []
    assert [visible(axes) for axes in panels[1:]] == [["no run"]] * 3
    assert [axes.get_title() for axes in panels] == ["x", "y", "", ""]
    assert [axes.get_ylabel() for axes in panels] == ["a", "", "b", ""]


def test_curves_are_drawn_in_percent_with_a_band_for_two_trials_and_none_for_one():
    axes = curve_grid(CURVES, rows=["a"], columns=["x"]).get_axes()[0]
    assert [line.get_ydata()[-1] for line in axes.lines] == [50.0, 25.0]
    assert len(axes.collections) == 1


def test_long_curves_are_thinned_and_keep_their_last_epoch():
    values = np.linspace(0, 1, 403)[None, :]
    axes = curve_grid({("a", "x"): {"giw": values}}, rows=["a"], columns=["x"]).get_axes()[0]
    x, y = axes.lines[0].get_data()
    assert len(x) < 100
    assert (x[-1], y[-1]) == (403, 100.0)
    np.testing.assert_allclose(y, 100 * values[0, np.asarray(x) - 1])


def test_the_legend_names_each_method_once():
    twice = CURVES | {("a", "y"): CURVES["a", "x"]}
    figure = curve_grid(twice, rows=["a"], columns=["x", "y"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GIW", "DIW"]


def test_lines_have_their_spread():
    lines = {"left": {"one": ([0, 1], [90.0, 80.0], [1.0, 2.0], Style(BLUE))}, "right": {}}
    left, right = line_grid(lines, xlabel="share").get_axes()
    assert len(left.containers) == 1
    assert visible(right) == ["no run"]
    assert left.get_xlabel() == "share"


def test_histograms_count_every_point():
    p_value = np.array([0.01, 0.5, 0.99, 0.02])
    inside = np.array([False, True, True, False])
    figure = score_grid(
        {("honest", "x"): (p_value, inside)},
        rows=["honest"],
        columns=["x"],
        cuts=[0.05],
        limits=(0, 1),
        xlabel="p-value",
    )
    bars = figure.get_axes()[0].containers
    assert [sum(bar.get_height() for bar in group) for group in bars] == [2, 2]


def test_a_montage_keeps_every_image_in_order():
    stack = np.arange(5)[:, None, None, None] * np.ones((5, 2, 2, 3))
    sheet = montage(stack)
    assert sheet.shape == (5, 8, 3)  # two rows of three, a gap of one
    assert sheet[0, 0, 0] == 0
    assert sheet[0, 6, 0] == 2
    assert sheet[3, 3, 0] == 4
    assert sheet[2, 0, 0] == 1  # the gap is white


def test_pictures_have_their_names():
    figure = picture_grid({"GIW": np.zeros((6, 5, 5, 3)), "DIW": np.ones((6, 5, 5, 3))})
    assert [axes.get_title() for axes in figure.get_axes()] == ["GIW", "DIW"]


@pytest.mark.parametrize("form", [svg_bytes, png_bytes])
def test_the_same_figure_gives_the_same_bytes(form):
    first, second = (curve_grid(CURVES, rows=["a"], columns=["x"]) for _ in range(2))
    assert form(first) == form(first) == form(second)
