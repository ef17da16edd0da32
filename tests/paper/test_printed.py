import json
from importlib.resources import files

import pytest

from giw.paper.plan import PAPER_METHODS
from giw.paper.printed import PaperFigure, paper_accuracy, paper_split_error
from giw.paper.settings import PAPER_SETTINGS

THEIRS = [method for method in PAPER_METHODS if method != "pooled"]


def test_the_paper_has_nine_methods_in_twenty_settings():
    found = [paper_accuracy(s.dataset, s.case, s.shift, m) for s in PAPER_SETTINGS for m in THEIRS]
    assert len(found) == 180
    assert all(figure is not None and 0 < figure.mean < 100 for figure in found)


def test_the_file_holds_nothing_else():
    text = files("giw.paper").joinpath("paper_figures.json").read_text(encoding="utf-8")
    table = json.loads(text)
    assert len(table["accuracy"]) == 180
    assert len(table["split_error"]) == 2 * 2 * 5


@pytest.mark.parametrize(
    ("cell", "figure"),
    [
        (("mnist", "iii", "support", "giw"), (95.16, 0.20)),
        (("mnist", "iv", "support", "diw"), (75.11, 1.43)),
        (("color_mnist", "iii", "class_prior_100", "pretrain_val"), (79.70, 3.29)),
        (("cifar20", "iii", "support", "ccsa"), (60.87, 0.39)),
        (("cifar20", "iii", "class_prior_100", "giw"), (40.27, 2.17)),
    ],
)
def test_figures_are_those_that_the_paper_prints(cell, figure):
    assert paper_accuracy(*cell) == PaperFigure(*figure)


def test_split_errors_are_those_that_the_paper_prints():
    assert paper_split_error("out_to_in", 0.7, "label_noise_0.2") == (86.76, 1.28)
    assert paper_split_error("in_to_out", 0.7, "label_noise_0.4") == (90.53, 1.22)
    assert paper_split_error("in_to_out", 0.0, "label_noise_0.4") == paper_accuracy(
        "mnist", "iii", "label_noise_0.4", "giw"
    )


def test_what_the_paper_lacks_is_none():
    assert paper_accuracy("mnist", "iii", "support", "pooled") is None
    assert paper_split_error("out_to_in", 0.2, "label_noise_0.2") is None
    assert paper_split_error("out_to_in", 0.1, "support") is None
