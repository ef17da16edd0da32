import numpy as np
import pytest
from tests.paper.report.made_up import made_up

from giw.paper.bench.plan import Run, plan
from giw.paper.bench.store import Result
from giw.paper.report.cells import gather
from giw.paper.report.drawings import (
    colours_of,
    curve_pictures,
    kernel_pictures,
    representation_picture,
    sample_picture,
    size_picture,
    split_error_picture,
    stored_array,
)


def experiment_of(runs, **options):
    (experiment,), _ = gather([made_up(run, **options) for run in runs])
    return experiment


def small(**choice):
    return plan(trials=2, epochs=12, **choice)


def noisy(**choice):
    """The corner in which the paper has its ablations."""
    return small(datasets=["mnist"], cases=["iii"], shifts=["label_noise_0.2"], **choice)


def test_curves_by_family_and_shifts_without_runs_are_named():
    methods = ["giw", "diw"]
    pictures = curve_pictures(
        experiment_of(small(datasets=["mnist"], shifts=["support"], methods=methods))
    )
    assert [p.name for p in pictures] == ["curves-e12-s0-honest-iw"]
    assert "Missing, no run: label noise 0.2" in pictures[0].caption
    assert len(pictures[0].figure.get_axes()) == 2  # case (iii) above case (iv)


def test_domain_adaptation_has_a_figure_of_its_own():
    runs = [
        Run("mnist", "iii", "support", m, t, epochs=12) for m in ("ccsa", "giw") for t in (0, 1)
    ]
    names = [p.name for p in curve_pictures(experiment_of(runs))]
    assert names == ["curves-e12-s0-honest-iw", "curves-e12-s0-honest-da"]


def test_no_hidden_weights_no_picture():
    runs = [Run("mnist", "iii", "support", "diw", 0, epochs=12)]
    assert representation_picture(experiment_of(runs)) is None


def test_ablations_are_drawn_with_the_paper_where_it_has_them():
    variants = ["oracle", "out_to_in_0.3", "in_to_out_0.3"]
    runs = noisy(
        methods=["giw"],
        variants=variants,
    )
    picture = split_error_picture(experiment_of(runs), ("mnist", "iii", "honest"))
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert labels == ["out → in", "out → in, paper", "in → out", "in → out, paper"]


def test_sizes_are_drawn_for_every_method_that_was_run():
    runs = noisy(
        methods=["giw", "diw"],
        variants=["n_val_10", ""],
    )
    picture = size_picture(experiment_of(runs), ("mnist", "iii", "honest"), "n_val")
    (axes,) = picture.figure.get_axes()
    assert [list(c.lines[0].get_xdata()) for c in axes.containers] == [[10, 20], [10, 20]]


def test_representations_are_drawn_with_four_names():
    runs = noisy(
        methods=["giw", "diw"],
        variants=["hidden", ""],
    )
    picture = representation_picture(experiment_of(runs))
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert labels == ["DIW-L", "DIW-F", "GIW-L", "GIW-F"]


# What a result brings along -----------------------------------------------------------------------


def stored(extra):
    run = Run("color_mnist", "iii", "support", "giw", 0, epochs=10)
    return Result(run, np.full(10, 0.5), 1.0, extra=extra)


def test_an_array_is_stored_flat_with_its_shape():
    values = np.arange(24.0)
    back = stored_array(
        stored({"kernels": values.tolist(), "kernels_shape": [1, 3, 2, 4]}), "kernels"
    )
    np.testing.assert_array_equal(back, values.reshape(1, 3, 2, 4))
    assert stored_array(stored({}), "kernels") is None


@pytest.mark.parametrize("shape", [[1, 3, 2, 5], [24], []])
def test_numbers_that_do_not_fill_their_shape_are_named_and_not_drawn(shape):
    result = stored({"kernels": [0.0] * 24, "kernels_shape": shape})
    with pytest.raises(ValueError, match="do not fill the four sides"):
        stored_array(result, "kernels")
    (experiment,), remarks = gather([result])
    assert kernel_pictures(experiment, remarks) == []
    assert result.run.key in remarks[0]


def test_kernels_and_samples_are_drawn_where_they_are_stored():
    runs = [
        Run("color_mnist", "iii", "support", m, t, epochs=12)
        for m in ("giw", "diw")
        for t in (0, 1)
    ]
    experiment = experiment_of(runs, rich=True)
    (kernels,) = kernel_pictures(experiment, [])
    assert kernels.name == "kernels-e12-s0-color_mnist-iii-support-honest"
    assert [axes.get_title() for axes in kernels.figure.get_axes()] == ["DIW", "GIW"]
    assert "Missing, not stored: Val-only, Pretrain-val, Reweight" in kernels.caption
    titles = [axes.get_title() for axes in sample_picture(experiment, []).figure.get_axes()]
    assert titles == ["Color-MNIST (iii)\ntraining", "Color-MNIST (iii)\nvalidation"]


def test_kernel_colours_are_absolute_values_with_the_largest_at_one():
    kernels = np.zeros((1, 3, 1, 2))
    kernels[0, 0, 0] = [-2.0, 1.0]  # red
    np.testing.assert_allclose(colours_of(kernels)[0, 0], [[1, 0, 0], [0.5, 0, 0]])
    assert colours_of(np.zeros((1, 1, 2, 2))).shape == (1, 2, 2, 3)
