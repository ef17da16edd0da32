import pytest
from tests.paper.report.test_ablations import experiment_of

from giw.paper.report.changes import changed_picture, protocol_picture


def dots(axes):
    """Places of the dots by row, from top to bottom."""
    rows = [label.get_text() for label in axes.get_yticklabels()]
    found = {row: [] for row in rows}
    for container in axes.containers:
        (x,), (y,) = container.lines[0].get_data()
        found[rows[round(y)]].append(float(x))
    return found


def test_both_protocols_stand_in_one_row_where_both_were_run():
    experiment = experiment_of(
        ("giw", "", "honest", [0.7, 0.8]),
        ("giw", "", "published", [0.9, 1.0]),
        ("diw", "", "published", [0.5, 0.5]),
    )
    picture = protocol_picture(experiment)
    (axes,) = picture.figure.get_axes()
    assert axes.get_title(loc="left") == "GIW on MNIST (iii)"
    assert dots(axes) == {"label noise 0.2": [pytest.approx(75), pytest.approx(95)]}
    assert [t.get_text() for t in picture.figure.legends[0].get_texts()] == ["honest", "published"]


def test_a_variant_stands_beside_the_method_as_it_is_and_a_missing_one_has_no_row():
    experiment = experiment_of(
        ("giw", "", "honest", [0.7, 0.8]), ("giw", "osvm_code", "honest", [0.4])
    )
    always = ["osvm_code", "oracle"]
    picture = changed_picture(experiment, "x", "Split", ["split_way"], always)
    (axes,) = picture.figure.get_axes()
    assert dots(axes) == {
        "as it is": [pytest.approx(75)],
        "published split, threshold of the code": [pytest.approx(40)],
    }


def test_nothing_to_compare_is_no_picture():
    alone = experiment_of(("giw", "", "honest", [0.7, 0.8]))
    assert protocol_picture(alone) is None
    assert changed_picture(alone, "x", "Split", ["split_way"], []) is None
