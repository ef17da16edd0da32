import matplotlib
import numpy as np
import pytest

from giw.pages.figures import draw_curve, new_figure, save, svg_bytes
from giw.pages.style import STYLES


def test_a_curve_is_the_mean_and_its_band_one_standard_deviation():
    axes = new_figure()[1]
    draw_curve(axes, np.array([[20.0, 60.0], [40.0, 80.0]]), STYLES["giw"])

    assert axes.lines[0].get_xdata().tolist() == [1, 2]
    assert axes.lines[0].get_ydata() == pytest.approx([30, 70])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    std = 100 * np.sqrt(0.02)  # of 0.2 and 0.4, n - 1 in the denominator
    assert band.min() == pytest.approx(30 - std)
    assert band.max() == pytest.approx(70 + std)


def test_one_trial_has_no_band_and_one_epoch_is_a_dot():
    axes = new_figure()[1]
    draw_curve(axes, np.array([[50.0]]), STYLES["giw"])

    assert len(axes.collections) == 0
    assert axes.lines[0].get_marker() == "o"


def test_figures_are_saved_as_svg_and_png_the_same_bytes_each_time(tmp_path):
    figure, axes = new_figure()
    axes.plot([0, 1])
    svg, png = save(figure, tmp_path / "folder" / "name.v1")
    first = svg.read_bytes(), png.read_bytes()
    save(figure, tmp_path / "folder" / "name.v1")

    assert (svg.name, png.name) == ("name.v1.svg", "name.v1.png")
    assert first[1].startswith(b"\x89PNG")
    assert (svg.read_bytes(), png.read_bytes()) == first


def test_no_global_state_is_touched():
    before = dict(matplotlib.rcParams)
    svg_bytes(new_figure()[0])

    assert dict(matplotlib.rcParams) == before
