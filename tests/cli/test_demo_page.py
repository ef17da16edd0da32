"""The demo's page, read the way a person reads it: in a browser, on a desk and on a phone."""

import numpy as np
import pytest
from tests.browser import DESK, PHONE, look_at

from giw.cli.demo import demo_methods
from giw.cli.demo_page import METHODS, demo_page
from giw.pages.page import render_page
from giw.pages.style import name_of


def example() -> dict:
    """Made-up numbers in which Pooled wins, so that the page has to say so."""
    rng = np.random.default_rng(0)
    ends = {"giw": 0.86, "diw": 0.6, "val_only": 0.8, "pretrain_val": 0.82, "pooled": 0.92}
    accuracy = {m: end + np.array([-0.02, 0.0, 0.0, 0.01, 0.01]) for m, end in ends.items()}
    curves = {m: a[:, None] * np.linspace(0.5, 1, 8) for m, a in accuracy.items()}
    inside = np.arange(40) < 16
    p_value = np.where(inside, rng.uniform(0.06, 1, 40), rng.uniform(0, 0.04, 40))
    values = {"accuracy": accuracy, "curves": curves, "p_value": p_value, "inside": inside}
    return {**values, "alpha": 0.4, "seconds": 61.0, "command": "giw demo --seed 7"}


def test_the_answer_is_made_from_the_numbers():
    page = demo_page(**example())

    assert page.answer == (
        "GIW gets 86.0 % of the test set right, on average over 5 trials: "
        "6.0 points less than Pooled, a significant difference."
    )


def test_every_method_shown_is_explained_and_no_other():
    values = example()
    for name in ("accuracy", "curves"):
        values[name] = {m: values[name][m] for m in ("giw", "pooled")}
    facts = {s.title: s.facts for s in demo_page(**values).sections}["What the methods do"]

    assert list(facts) == ["GIW", "Pooled"]


def test_the_methods_of_the_demo_all_have_an_explanation():
    assert {name_of(method.name) for method in demo_methods()} == set(METHODS)


def test_figures_in_words():
    values = example() | {"p_value": np.repeat([0.01, 0.2], [10, 30])}
    pictures = [picture for section in demo_page(**values).sections for picture in section.pictures]
    said = {picture.name: picture.alt for picture in pictures}
    assert said["split"] == (
        "Of 16 points inside the training support 6 lie above the cut at 0.05; of 24 outside it "
        "24 do."
    )
    assert said["trials"].startswith("Mean test accuracy: Pooled 92.0 %, GIW 86.0 %")


def test_facts_and_the_command_are_told():
    values = example() | {"p_value": np.linspace(0.001, 1, 40)[::-1]}
    page = demo_page(**values)

    assert page.footer == ["Made by `giw demo --seed 7`."]
    facts = {s.title: s.facts for s in page.sections}["Sizes and settings"]
    assert facts["share inside, in truth"] == "0.40"
    assert facts["share inside, by the split"] == "0.40"
    assert facts["on the wrong side"] == "55 % of points"  # 38 of 40 lie above 0.05, 16 are inside


# In a browser -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    return look_at(render_page(demo_page(**example())), tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_person_reads_the_answer_first_then_the_figure_then_the_table(seen, width):
    words = seen[width]["words"].replace("\u00a0", " ")
    order = ["GIW gets 86.0 %", "Odd or even, when six", "Where they end", "against the best"]
    order += ["92.0 ± 1.2", "What the methods do", "learns from the validation points alone"]
    found = [words.find(text) for text in order]

    assert -1 not in found
    assert found == sorted(found)


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_nothing_runs_over_the_edge(seen, width):
    assert seen[width]["overflow"] == 0
    assert seen[width]["cut"] == []


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_figures_fill_their_place_and_their_letters_can_be_read(seen, width):
    assert len(seen[width]["figures"]) == 3
    for across, down in seen[width]["figures"]:
        assert 340 <= across <= 620
        assert 0.3 < down / across < 1.0
    assert min(seen[width]["letters"]) >= 10  # CSS pixels, height of the line
