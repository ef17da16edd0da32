import numpy as np
import pytest
from scipy import stats
from tests.paper.made_up import made_up
from tests.paper.test_accuracy import PLACE, experiment_of, row_of

from giw.paper.accuracy_tables import agrees, difference_sheet, trials_sheet
from giw.paper.frame import Place, gather, standings
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


def test_differences_stand_in_the_papers_order_and_agreement_is_counted():
    """The paper has 95.16 ± 0.20 for GIW and 80.53 ± 1.23 for DIW."""
    experiment = experiment_of(
        ("giw", "honest", {0: 0.90, 1: 0.91, 2: 0.905}),
        ("diw", "honest", {0: 0.80, 1: 0.82, 2: 0.80}),
        ("pooled", "honest", {0: 0.90, 1: 0.90, 2: 0.9}),
    )
    sheet = difference_sheet(experiment, "honest")
    assert [group.label for group in sheet.groups] == ["MNIST (iii)"]
    assert len(sheet.rows) == 1
    cells = dict(zip(sheet.head, row_of(sheet, "support shift"), strict=True))
    assert cells["GIW"].text == "−4.7"
    assert not cells["GIW"].bold
    assert cells["DIW"].text == "+0.1"
    assert cells["DIW"].bold
    assert list(cells) == ["setting", "DIW", "GIW"]  # the paper has no Pooled
    assert "in 1 of 2 cells" in sheet.notes[1]
    assert sheet.notes[2].endswith("Val-only, Pretrain-val, Reweight, MW-Net, R-DIW, CCSA, DANN.")


def test_a_method_that_ran_in_another_setting_is_missing_in_this_one():
    other = Place("mnist", "iii", "label_noise_0.2")
    runs = [made_up(Run(*PLACE, "giw", t, epochs=20), 0.9) for t in range(2)]
    runs += [made_up(Run(*other, "ccsa", t, epochs=20), 0.9) for t in range(2)]
    (experiment,), _ = gather(runs)
    sheet = difference_sheet(experiment, "honest")
    cells = dict(zip(sheet.head, row_of(sheet, "support shift"), strict=True))
    assert cells["CCSA"].missing
    assert not cells["GIW"].missing


def test_trials_at_or_above_the_paper_are_counted():
    """The paper has 95.16 under support shift."""
    experiment = experiment_of(
        ("giw", "honest", {0: 0.90, 1: 0.96, 2: 0.93}),
        ("diw", "honest", {0: 0.99}),
    )
    sheet = trials_sheet(experiment)
    (row,) = sheet.rows
    texts = [entry.text for entry in row]
    assert texts == ["honest", "90.00", "93.00", "96.00", "95.16", "1 of 3"]
    assert trials_sheet(experiment_of(("diw", "honest", {0: 0.99}))) is None
