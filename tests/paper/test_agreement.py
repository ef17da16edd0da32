import numpy as np
import pytest
from scipy import stats
from tests.paper.made_up import made_up
from tests.paper.test_accuracy import PLACE, experiment_of, row_of

from giw.paper.comparison import agrees, cells_sheet, reproduced_sentence
from giw.paper.frame import Place, gather, standings
from giw.paper.plan import Run
from giw.paper.printed import PaperFigure
from giw.paper.table_accuracy import differences


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


def test_differences_stand_in_the_papers_order_and_agreement_is_counted():
    """The paper has 95.16 ± 0.20 for GIW and 80.53 ± 1.23 for DIW."""
    experiment = experiment_of(
        ("giw", "honest", {0: 0.90, 1: 0.91, 2: 0.905}),
        ("diw", "honest", {0: 0.80, 1: 0.82, 2: 0.80}),
        ("pooled", "honest", {0: 0.90, 1: 0.90, 2: 0.9}),
    )
    sheet = differences(experiment, "honest")
    assert [group.label for group in sheet.groups] == ["MNIST (iii)"]
    assert len(sheet.rows) == 1
    cells = dict(zip(sheet.head, row_of(sheet, "support shift"), strict=True))
    assert cells["GIW"].text == "−4.7"
    assert not cells["GIW"].bold
    assert cells["DIW"].text == "+0.1"
    assert cells["DIW"].bold
    assert list(cells) == ["setting", "GIW", "DIW"]  # the paper has no Pooled
    assert "in 1 of 2 cells" in sheet.notes[1]
    assert sheet.notes[2].endswith("Val-only, Pretrain-val, Reweight, MW-Net, R-DIW, CCSA, DANN.")


def test_a_method_that_ran_in_another_setting_is_missing_in_this_one():
    other = Place("mnist", "iii", "label_noise_0.2")
    runs = [made_up(Run(*PLACE, "giw", t, epochs=20), 0.9) for t in range(2)]
    runs += [made_up(Run(*other, "ccsa", t, epochs=20), 0.9) for t in range(2)]
    (experiment,), _ = gather(runs)
    sheet = differences(experiment, "honest")
    cells = dict(zip(sheet.head, row_of(sheet, "support shift"), strict=True))
    assert cells["CCSA"].missing
    assert not cells["GIW"].missing


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
        *("95.00 ± 0.71", "published, authors, 100 epochs, 0.1.0", "reproduced")
    ]
    assert rows["Val-only"][2:] == ["one_step, authors, 100 epochs, 0.1.0", "reproduced"]
    assert rows["DIW"][-1].endswith("solver of the weights; not run at this version")
    assert rows["Reweight"][-1] == "not explained; not run at this version"
    assert rows["DANN"][1:] == ["–", "–", "not run"]
    assert sentence.startswith("2 of the paper's 135 cells")
    assert sentence.endswith("4 cells were run.")


def test_laptop_runs_and_short_runs_reproduce_nothing():
    few = [made_up(Run(*PLACE, "giw", t, epochs=99), 0.9516) for t in range(2)]
    few += [made_up(Run(*PLACE, "giw", t, epochs=200, scale="laptop"), 0.9516) for t in range(2)]
    assert reproduced_sentence(gather(few)[0]).startswith("0 of the paper's 135")
