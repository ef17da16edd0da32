import numpy as np
import pytest
from scipy import stats
from tests.paper.made_up import made_up
from tests.paper.test_accuracy import PLACE

from giw.paper.comparison import agrees, cells_sheet, reproduced_sentence
from giw.paper.frame import gather, standings
from giw.paper.plan import Run
from giw.paper.printed import PaperFigure


def row(*accuracy):
    return standings({"giw": dict(enumerate(accuracy))})["giw"]


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0, 3.0, 8.0])
def test_the_test_is_welchs_on_samples_with_these_means_and_spreads(shift):
    """Five numbers with the paper's mean and spread stand for the paper's trials."""
    ours = np.array([0.90, 0.92, 0.91, 0.94])
    shape = np.array([-2, -1, 0, 1, 2.0])
    theirs = 92 + shift + shape / shape.std(ddof=1)
    p_value = stats.ttest_ind(100 * ours, theirs, equal_var=False).pvalue
    assert agrees(row(*ours), PaperFigure(92 + shift, 1.0)) == (p_value >= 0.05)


def test_without_any_spread_only_the_same_figure_agrees():
    assert agrees(row(0.4928, 0.4928), PaperFigure(49.28, 0.0))
    assert not agrees(row(0.4930, 0.4930), PaperFigure(49.28, 0.0))
    assert not agrees(row(0.4928), PaperFigure(49.28, 0.0))  # one trial allows no test


def cells_of(*runs):
    """Cells of the table by method, for runs of 100 epochs."""
    results = [
        made_up(Run(*PLACE, method, t, "authors", variant, epochs=100), accuracy)
        for method, variant, trials in runs
        for t, accuracy in enumerate(trials)
    ]
    experiments, _ = gather(results)
    sheet = cells_sheet(experiments)
    rows = {row[0].text: [entry.text for entry in row[1:]] for row in sheet.groups[0].rows}
    return rows, reproduced_sentence(experiments)


def test_each_cell_is_reproduced_or_has_one_sentence_of_why():
    """The paper has GIW 95.16 ± 0.20, Val-only 78.94 ± 0.99 and DIW 80.53 ± 1.23."""
    rows, sentence = cells_of(
        ("giw", "", [0.90, 0.91]),
        ("giw_published", "", [0.945, 0.955]),
        ("val_only", "one_step", [0.79, 0.80]),
        ("diw", "", [0.86, 0.84]),
        ("reweight", "", [0.5, 0.6]),
    )
    assert rows["GIW"][1:] == [
        *("95.00 ± 0.71", "published, authors, 100 epochs, 2 trials, 0.1.0", "reproduced")
    ]
    assert rows["Val-only"][2:] == ["one_step, authors, 100 epochs, 2 trials, 0.1.0", "reproduced"]
    assert rows["DIW"][-1].endswith("solver of the weights; not run at this version")
    assert rows["Reweight"][-1] == "not explained; not run at this version"
    assert rows["DANN"][1:] == ["–", "–", "not run"]
    assert sentence.startswith("2 of the paper's 135 cells")
    assert sentence.endswith("4 cells were run.")


def test_laptop_runs_and_short_runs_reproduce_nothing():
    few = [made_up(Run(*PLACE, "giw", t, epochs=99), 0.9516) for t in range(2)]
    few += [made_up(Run(*PLACE, "giw", t, epochs=200, scale="laptop"), 0.9516) for t in range(2)]
    assert reproduced_sentence(gather(few)[0]).startswith("0 of the paper's 135")
