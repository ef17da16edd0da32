"""``giw demo``: what it draws, what its page says, and the page in a browser."""

import numpy as np
import pytest
from rich.console import Console
from tests.browser import DESK, PHONE, look_at
from tests.cli.tables import run

from giw.cli.demo_page import METHODS, SHOWN, Digits, compare_digits, demo_arrays, demo_page
from giw.pages.page import render_page
from giw.pages.style import name_of


def test_the_demo_draws_what_it_says():
    arrays, inside = demo_arrays(np.random.default_rng(0))
    assert len(arrays["y_val"]) == 20
    assert inside.sum() == 8
    images = {name: {x.tobytes() for x in arrays[f"x_{name}"]} for name in ("train", "val", "test")}
    assert not images["val"] & (images["train"] | images["test"])
    assert not images["train"] & images["test"]


@pytest.mark.slow
def test_giw_beats_plain_importance_weighting_and_its_split_is_mostly_right():
    digits = compare_digits(5, 0, Console(quiet=True))
    mean = {method: np.mean(each) for method, each in digits.accuracy.items()}
    assert mean["giw"] > mean["diw"] + 0.05
    assert mean["giw"] > mean["val_only"]
    assert mean["giw_plus"] > mean["diw"] + 0.05
    assert digits.wrong <= 0.2


def test_it_writes_tables_four_figures_and_a_page(tmp_path):
    result = run("demo", "--trials", 1, "--seed", 3, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    figures = {f"{stem}.{kind}" for stem in STEMS for kind in ("svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "table.md"} | figures
    page = (tmp_path / "report.html").read_text()
    assert "giw demo --trials 1 --seed 3" in page
    ways = ("training alone", "validation alone", "both tables", "both, balanced", "giw, stack")
    for name in (*ways, *(name_of(method) for method in METHODS)):
        assert f"{name} " in result.output
        assert page.count(name) >= 2  # in the table and in a figure


def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run("demo", "--out", tmp_path / "taken")
    assert result.exit_code == 2
    assert "--out" in result.output


# The page -----------------------------------------------------------------------------------------

STEMS = ("tables", "images", "trials")


def example(*names):
    """Made-up numbers in which other ways win, so that the page has to say so."""
    ends = {"giw": 0.86, "diw": 0.6, "val_only": 0.8, "pretrain_val": 0.82, "pooled": 0.92}
    accuracy = {m: list(ends[m] + np.array([-0.02, 0, 0, 0.01, 0.01])) for m in names or ends}
    loss = {"training alone": 0.5, "both tables": 0.3, "giw, stack": 0.4}
    scores = {way: [(0.8, each)] * 5 for way, each in loss.items()}
    rows = {name: np.full((9, 8, 8), 0.5) for name in ("training", "inside", "outside")}
    digits = Digits(accuracy, 0.25, rows)
    return demo_page(dict.fromkeys(SHOWN, scores), digits, command="giw demo --seed 7", seconds=61)


def test_the_answers_are_made_from_the_numbers():
    page = example()
    tables, digits = page.sections
    said = "the stack has a log-loss of 0.400 and the best simple way (both tables) one of 0.300."
    assert page.answer.count(said) == 2
    assert [row[2].text for row in tables.sheets[0].rows if row[2].bold] == ["0.300"] * 2
    assert digits.text[0] == (
        "GIW gets 86.0 % of the test set right, on average over 5 trials: "
        "6.0 points less than Pooled, a significant difference."
    )
    assert "it calls 25 % of them inside or outside where they are not" in digits.text[1]
    assert "Mean test accuracy: Pooled 92.0 %, GIW 86.0 %" in digits.pictures[1].alt
    assert page.footer == ["Made by `giw demo --seed 7` in 61 s."]


def test_every_method_shown_is_explained_and_no_other():
    assert list(example("giw", "pooled").sections[1].facts) == ["GIW", "Pooled"]
    assert set(example().sections[1].facts) == {name_of(m) for m in METHODS if m != "giw_plus"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return look_at(render_page(example()), tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_person_reads_the_answer_first_and_nothing_runs_over_the_edge(seen, width):
    words = seen[width]["words"].replace("\u00a0", " ")
    order = ["has a log-loss of", "Two real shifts", "Odd or even, when six", "GIW gets 86.0 %"]
    order += ["against the best", "92.0 ± 1.2", "Train on the validation data alone"]
    found = [words.find(text) for text in order]
    assert -1 not in found
    assert found == sorted(found)
    assert seen[width]["overflow"] == 0
    assert seen[width]["cut"] == []


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_figures_fill_their_place_and_their_letters_can_be_read(seen, width):
    assert len(seen[width]["figures"]) == len(STEMS)
    for across, down in seen[width]["figures"]:
        assert 340 <= across <= 620
        assert 0.3 < down / across < 1.0
    assert min(seen[width]["letters"]) >= 10  # CSS pixels, height of the line
