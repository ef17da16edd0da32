"""Tables beside the paper, from results made up so that every figure can be checked by hand."""

import pytest
from tests.paper.made_up import made_up

from giw.pages.tables import text_sheet
from giw.paper.frame import Place, gather
from giw.paper.plan import PAPER_METHODS, Run
from giw.paper.table_accuracy import overview, signed

PLACE = Place("mnist", "iii", "support")


def experiment_of(*cells):
    """From (method, protocol, accuracies by trial) to one experiment."""
    results = [
        made_up(Run(*PLACE, method, trial, protocol, epochs=20), accuracy)
        for method, protocol, trials in cells
        for trial, accuracy in trials.items()
    ]
    (experiment,), _ = gather(results)
    return experiment


def row_of(sheet, name, group=0):
    return next(row for row in sheet.groups[group].rows if row[0].text == name)


THREE = experiment_of(
    ("giw", "honest", {0: 0.90, 1: 0.92}),
    ("giw", "published", {0: 0.96}),
    ("diw", "honest", {0: 0.50, 1: 0.51}),
    ("pooled", "honest", {0: 0.91, 1: 0.90}),
)


def test_each_setting_stands_above_the_paper():
    """The paper has 95.16 ± 0.20, and no Pooled."""
    ours, theirs = overview(THREE, "honest").groups[0].rows[:2]
    assert [entry.text for entry in ours] == [
        *("support shift", "91.0 ± 1.4", "50.5 ± 0.7", "90.5 ± 0.7")
    ]
    assert [entry.text for entry in theirs] == ["— paper", "95.2 ± 0.2", "80.5 ± 1.2", "–"]


def test_best_and_tied_are_bold_and_the_beaten_are_not():
    giw, diw, pooled = row_of(overview(THREE, "honest"), "support shift")[1:]
    assert giw.bold
    assert pooled.bold  # 1 behind, 2 ahead: not told apart
    assert not diw.bold


def test_unequal_trials_are_counted_and_the_smaller_test_is_told():
    sheet = overview(
        experiment_of(
            ("giw", "honest", {0: 0.9, 1: 0.8, 2: 0.9}),
            ("diw", "honest", {0: 0.5, 1: 0.6, 2: 0.5}),
            ("ccsa", "honest", {0: 0.7, 2: 0.6}),
            ("dann", "honest", {1: 0.99}),
        ),
        "honest",
    )
    text = text_sheet(sheet)
    assert "65.0 ± 7.1 [2]" in text
    assert "99.0 [1]" in text
    assert not row_of(sheet, "support shift")[list(sheet.head).index("DANN")].bold
    assert "3 trials unless a cell says otherwise" in text


def test_the_overview_names_epochs_seed_protocol_and_what_is_missing():
    sheet = overview(THREE, "honest")
    assert sheet.title == "Test accuracy, 20 epochs, seed 0, honest protocol"
    assert [group.label for group in sheet.groups] == ["MNIST (iii)"]
    missing = [entry.text for entry in row_of(sheet, "label noise 0.4")[1:]]
    assert missing == ["missing"] * 3
    assert "2 trials in every cell that is there." in sheet.notes


def test_methods_without_a_run_are_named_and_have_no_column():
    sheet = overview(THREE, "honest")
    assert list(sheet.head) == ["setting", "GIW", "DIW", "Pooled"]
    assert (
        "Missing, not run in any of these settings: "
        "Val-only, Pretrain-val, Reweight, MW-Net, R-DIW, CCSA, DANN." in sheet.notes
    )
    assert list(overview(THREE, "published").head) == ["setting", "GIW"]
    whole = experiment_of(*((method, "honest", {0: 0.5, 1: 0.6}) for method in PAPER_METHODS))
    sheet = overview(whole, "honest")
    assert len(sheet.head) == 1 + len(PAPER_METHODS)
    assert not any("not run" in note for note in sheet.notes)


@pytest.mark.parametrize(
    ("value", "text"), [(1.234, "+1.23"), (-1.0, "−1.00"), (0.0, "0.00"), (-0.001, "0.00")]
)
def test_differences_carry_their_sign_and_zero_none(value, text):
    assert signed(value) == text


def test_split_giw_is_a_dash_where_giw_splits_and_missing_where_it_could_have_run():
    prior = made_up(Run("mnist", "iii", "class_prior_10", "giw_split", 0, epochs=20), 0.8)
    support = made_up(Run(*PLACE, "giw", 0, epochs=20), 0.9)
    (experiment,), _ = gather([prior, support])
    sheet = overview(experiment, "honest")
    column = list(sheet.head).index("GIW, split")
    cells = {row[0].text: row[column].text for row in sheet.groups[0].rows}
    assert cells["support shift"] == "–"
    assert cells["class prior 10"] == "80.0"
    assert cells["class prior 100"] == "missing"
