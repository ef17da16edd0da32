"""The whole diagnosis on data whose truth is known, read as an object, as text and in a browser."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from tests.browser import DESK, PHONE, look_at

import giw
from giw.diagnosis import STEPS, Diagnosis
from giw.diagnosis.data import read
from giw.diagnosis.verdict import python_code
from giw.tables import Table

EVIL = "<script>alert('α')</script>"
N, M, OUTSIDE = 400, 80, 32


def text(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def evil_tables():
    """A table whose column names and labels are markup; 40 % of validation has a new category.

    Training labels are flipped in 15 % of the rows.
    """
    rng = np.random.default_rng(0)

    def side(n, outside=0):
        town = rng.choice(["Rome", "Oslo"], n).astype(object)
        x = rng.normal(size=n)
        y = np.where(x > 0, "<b>yes</b>", "no & never")
        town[:outside] = "<i>Lima</i>"
        income = rng.normal(size=n)
        income[:outside] += 5
        return Table({EVIL: income, "town": text(town), "x": x}), y

    train, y = side(N)
    val, y_val = side(M, OUTSIDE)
    flipped = rng.random(N) < 0.15
    y = np.where(flipped, np.where(y == "<b>yes</b>", "no & never", "<b>yes</b>"), y)
    return train, y, val, y_val


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return giw.diagnose(*evil_tables())


def test_the_share_outside_and_the_case_are_found(found):
    low, high = found.outside_interval
    assert low <= OUTSIDE / M <= high
    assert set(found.verdict.possible) <= {"iii", "iv"}
    assert found.recommendation.remedy == "giw"


def test_the_outside_rows_are_those_that_were_put_there(found):
    rows = {row.row for row in found.outside_rows}
    assert len(rows & set(range(OUTSIDE))) >= 0.9 * OUTSIDE
    assert len(rows - set(range(OUTSIDE))) <= 0.2 * len(rows)


def test_the_columns_that_were_moved_are_blamed(found):
    assert found.outside_columns[0][0] == EVIL
    assert all("town" in row.columns for row in found.outside_rows[:5])
    assert any("town not in training" in row.text for row in found.outside_rows)


def test_the_summary_begins_with_the_answer_and_says_what_to_do(found):
    lines = found.summary().splitlines()
    assert lines[0].startswith("Category '<i>Lima</i>' of column 'town' is in 32 of 80")
    assert "generalized importance weighting" in lines[1]
    assert lines[3:5] == ["Facts", f"  {found.facts[0].text}"]
    assert lines[4].startswith("  Category '<i>Lima</i>' of column 'town' is in 32 of 80")
    assert "\u00a0" not in found.summary()


def test_plain_values_go_through_json(found):
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))

    assert again["verdict"]["case"] == found.verdict.case
    assert again["outside"] == found.outside
    assert [row["row"] for row in again["outside_rows"]] == [r.row for r in found.outside_rows]
    assert [f["kind"] for f in again["findings"]] == [f.kind for f in (*found.facts, *found.shifts)]


def few_rows_of_a_new_category(count):
    """Ten columns of numbers and one of text, of which validation has a new value in few rows."""
    rng = np.random.default_rng(1)

    def side(n, new):
        town = rng.choice(["Rome", "Oslo"], n).astype(object)
        town[:new] = "Lima"
        columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
        return Table(columns | {"town": town}), np.where(columns["x0"] > 0, "yes", "no")

    return *side(300, 0), *side(70, count)


@pytest.mark.parametrize("count", [4, 12])
def test_a_category_that_training_lacks_is_the_first_fact_and_its_rows_are_outside(count):
    found = giw.diagnose(*few_rows_of_a_new_category(count))
    fact = found.facts[0]
    assert (fact.kind, fact.rows) == ("new category", tuple(range(count)))
    assert not np.asarray(found.split.inside)[np.isin(found.val_rows, fact.rows)].any()
    assert set(range(count)) <= {row.row for row in found.outside_rows}
    assert fact.text[:-1] in found.recommendation.answer
    assert found.recommendation.remedy == "giw"
    assert found.outside_interval[0] <= count / 70 <= found.outside_interval[1]


def test_an_object_is_one_line_a_frame_and_a_page_without_scripts(found):
    line = repr(found)
    assert "\n" not in line
    assert "Lima" in line
    assert len(line) < 400
    frame = found.to_frame("findings")
    assert list(frame["kind"]) == ["new category", "range", *(test.kind for test in found.shifts)]
    html = found._repr_html_()
    assert html.startswith('<iframe sandbox=""')
    assert "<script" not in html


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("kind", ["frame", "array"])
@pytest.mark.parametrize("remedy", ["plain", "class weights", "giw"])
@pytest.mark.parametrize("val_labels", [True, False])
def test_the_code_it_names_runs_on_the_table_diagnosed(text, kind, remedy, val_labels):
    if remedy == "class weights" and not val_labels:
        pytest.skip("class shares of unlabelled rows are not known")
    rng = np.random.default_rng(0)

    def side(n, town):
        frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
        if text:
            frame["town"] = rng.choice(["Rome", town], n)
        return frame, np.where(frame["x"] > 0, "yes", "no")

    (X, y), (X_val, y_val) = side(60, "Oslo"), side(24, "Lima")
    if kind == "array":
        X, X_val = X.to_numpy(), X_val.to_numpy()
    frame = kind == "frame"
    data = read(X, y, X_val, y_val if val_labels else None)
    code = python_code(remedy, data, frame=frame)
    names = {"X": X, "y": y, "X_val": X_val, "y_val": y_val}
    exec(code.replace("BoostingClassifier()", "BoostingClassifier(max_iter=3)"), names)
    assert names["model"].predict(X_val).shape == (24,)


@pytest.mark.slow
def test_the_code_of_a_frame_with_text_is_of_its_columns_and_runs():
    X, y, X_val, y_val = few_rows_of_a_new_category(12)
    X, X_val = (pd.DataFrame(dict(side.columns)) for side in (X, X_val))
    told = giw.diagnose(X, y, X_val, y_val).recommendation
    names = {"X": X, "y": y, "X_val": X_val, "y_val": y_val}
    exec(told.code, names)
    assert "Encoder" in told.code
    assert names["model"].score(X_val, y_val) > 0.8


def test_the_same_data_and_seed_give_the_same_diagnosis(found):
    assert giw.diagnose(*evil_tables()).to_dict() == found.to_dict()


# The page -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    page = found.to_html(folder / "page.html", command=f"giw diagnose {EVIL}")
    return look_at(page.read_text(), folder)


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_person_reads_the_answer_then_the_advice_then_the_evidence(seen, width):
    words = seen[width]["words"].replace("\u00a0", " ")
    order = ["is in 32 of 80 validation rows and in no training row", "What is certain"]
    order += [
        "lies outside the range of training",
        "What to do",
        "giw.ReweightedClassifier(",
        "What has shifted?",
        "What does it cost a model?",
        "Column by column",
        "Does training cover",
        "How is a row called outside?",
    ]
    order += ["Which rows lie outside, and why", "town not in training"]
    order += ["Are training labels wrong?", "Sizes and notes", "Made by"]
    found = [words.find(part) for part in order]

    assert -1 not in found
    assert found == sorted(found)


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_markup_in_names_and_labels_is_shown_and_not_obeyed(seen, width):
    assert seen[width]["scripts"] == 0
    for part in (EVIL, "<b>yes</b>", "no & never"):
        assert part in seen[width]["words"]


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_nothing_runs_over_the_edge(seen, width):
    assert seen[width]["overflow"] == 0
    assert seen[width]["cut"] == []


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_figures_can_be_read_and_say_in_words_what_they_show(seen, width):
    assert len(seen[width]["figures"]) == len(seen[width]["alts"]) >= 1
    assert min(seen[width]["letters"]) >= 8
    told = " ".join(seen[width]["alts"])
    assert "called inside (" in told


def test_small_bars_are_as_high_as_their_shares_and_say_so(found):
    drawn = (
        unescape(found._repr_html_()).split('aria-label="town in training')[1].split("</svg>")[0]
    )
    heights = [float(h) for h in re.findall(r'height="([0-9.]+)" fill', drawn)]
    shares = [part for _, *both in found.to_frame().set_index("column").shares["town"]
              for part in both]  # fmt: skip

    assert heights == pytest.approx([30 * share / max(shares) for share in shares], abs=0.06)
    assert "&lt;i&gt;Lima&lt;/i&gt; 0\u00a0% and 40\u00a0%" in drawn


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_the_page_is_written_and_stands_alone(found, tmp_path):
    html = found.to_html(tmp_path / "new" / "report.html").read_text()

    assert not {"script", "link", "iframe", "b", "i"} & set(Tags(html).found)
    assert "http-equiv" in html


# Other kinds of data ------------------------------------------------------------------------------


def shifted(seed=0, n=300, m=60):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    return X, X[:, 0] > 0, X_val, X_val[:, 0] > 0


def test_data_that_are_alike_are_called_alike():
    found = giw.diagnose(*shifted())
    assert not any(test.found for test in found.shifts)
    assert found.recommendation.remedy == "plain"
    assert found.effective_share > 0.7


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", ["validation rows are training rows", "training rows repeat"])
def test_copies_are_no_shift(case, seed):
    """A model that has seen a row's copy is not surprised by it; the difference is no shift."""
    X, y = make_classification(500, 8, n_informative=5, random_state=seed)
    X_val, y_val, X, y = X[400:], y[400:], X[:400], y[:400]
    if case == "training rows repeat":
        X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
        note = "800 training rows are copies of others and take no part in tests."
    else:
        X_val, y_val = X[:100], y[:100]
        note = "100 of 100 validation rows are training rows too"
    found = giw.diagnose(X, y, X_val, y_val)
    assert not any(test.found for test in found.shifts)
    assert any(line.startswith(note) for line in [*found.notes, *(f.text for f in found.facts)])


def test_without_validation_labels_only_features_are_compared(tmp_path):
    X, y, X_val, _ = shifted()
    found = giw.diagnose(X, y, X_val)

    assert [test.kind for test in found.shifts] == ["outside", "covariate"]
    assert found.suspects == ()
    assert any("Label validation rows" in step for step in found.recommendation.next_steps)
    found.to_html(tmp_path / "report.html")


def test_without_any_labels_it_works_too():
    X, _, X_val, _ = shifted()
    assert giw.diagnose(X, None, X_val).class_shares == ()
    with pytest.raises(ValueError, match="y_val came without y"):
        giw.diagnose(X, None, X_val, [0] * len(X_val))


def test_a_handful_of_rows_is_not_overinterpreted(tmp_path):
    X, y, X_val, y_val = shifted(m=5)
    found = giw.diagnose(X, y, X_val, y_val)

    assert [test.kind for test in found.shifts] == ["outside"]
    assert found.verdict.case == "cannot tell"
    assert "Too few" in found.to_html(tmp_path / "r.html").read_text()


def test_large_data_are_sampled_and_the_result_says_so():
    X, y, X_val, y_val = shifted(n=600, m=200)
    found = giw.diagnose(X, y, X_val, y_val, max_train=300, max_val=50)

    assert (found.sizes.used_train, found.sizes.used_val) == (300, 50)
    assert sum("random sample" in note for note in found.notes) == 2
    assert len(found.split) == len(found.val_rows) == 50
    assert max(found.val_rows) > 50  # rows are counted in the user's table


def test_tensors_and_frames_are_taken():
    torch = pytest.importorskip("torch")
    X, y, X_val, y_val = shifted(n=200, m=20)
    frames = [pd.DataFrame(side, columns=["a", "b"]) for side in (X, X_val)]
    tensors = [torch.as_tensor(side) for side in (X, y, X_val, y_val)]
    by_frame = giw.diagnose(frames[0], y, frames[1], y_val)
    by_tensor = giw.diagnose(*tensors)

    assert by_frame.outside == by_tensor.outside
    assert by_tensor.sizes.n_features == 2


def test_steps_are_told_as_they_begin():
    told = []
    giw.diagnose(*shifted(n=100, m=10), on_step=told.append)
    assert tuple(told) == STEPS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, V, w: (X, y, V[:, :1], w), "X_val has 1 columns and the training data 2"),
        (lambda X, y, V, w: (X, y[:-1], V, w), "one label per point"),
        (lambda X, y, V, w: (X, y.astype(str), V, w), "the same label in both"),
        (lambda X, y, V, w: (X, X[:, 0], V, V[:, 0]), "and not a class"),
        (lambda X, y, V, w: (X, y, V + np.inf, w), "infinite"),
    ],
)
def test_mistakes_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        giw.diagnose(*change(*shifted()))


def test_names_and_labels_that_no_page_can_hold_are_spelled(tmp_path):
    """Control characters, ANSI escapes, lone surrogates and non-characters."""
    rng = np.random.default_rng(0)
    names = pd.Index(["a\x00\x1b[31m", "b\ud800", "c\uffff"], dtype=object)
    label = np.array(["no\x00\x1b[31m", "yes\ud800"], dtype=object)
    X, X_val = (pd.DataFrame(rng.normal(size=(n, 3)) + by) for n, by in ((90, 0), (40, 2)))
    X.columns = X_val.columns = names
    kinds = np.array(["u\ud800", "v\uffff"], dtype=object)
    for side in (X, X_val):
        side["kind"] = pd.Series(kinds[np.arange(len(side)) % 2], dtype=object)

    found = giw.diagnose(
        X, label[np.arange(90) % 2], X_val, label[np.arange(40) % 2], random_state=0
    )

    page = found.to_html(tmp_path / "page.html").read_text()
    assert not {"\x00", "\x1b", "\ud800", "\uffff"} & set(page)
    assert r"a\x00\x1b[31m" in page
    assert r"b\ud800" in page


@pytest.mark.parametrize("seed", range(4))
def test_groups_split_at_random_are_no_shift(seed):
    """Rows of a group are alike, so that a group leaves the range of others by itself."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(60), 10)
    X = 2 * rng.normal(size=(60, 5))[group] + 0.3 * rng.normal(size=(600, 5))
    y, train = X[:, 0] + rng.normal(size=600) > 0, group < 40
    found = giw.diagnose(
        X[train], y[train], X[~train], y[~train], groups=group[train], groups_val=group[~train]
    )
    assert found.recommendation.kinds == ()
    assert not any(fact.found for fact in found.facts)
    assert found.outside_rows == ()


def test_whoever_asks_has_the_same_rows_outside():
    """More training rows than are held out, so that seeds of their own would give other rows."""
    rng = np.random.default_rng(3)
    X, X_val = rng.normal(size=(3_200, 3)), rng.normal(size=(50, 3))
    X_val[:12, 0] += 3.5
    y, y_val = X[:, 1] > 0, X_val[:, 1] > 0
    found = giw.diagnose(X, y, X_val, y_val, random_state=5)
    inside = np.asarray(found.split.inside)[np.argsort(found.val_rows)]
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=1)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    plain = LogisticRegression().fit(X, y)

    assert 8 <= (~inside).sum() <= 20
    assert np.asarray(model.split_.inside).tolist() == inside.tolist()
    assert giw.estimate_risk(plain, X, y, X_val, y_val).alpha == inside.mean()


SAID_OF_ALL = {"95", "5", "3", "98", "2.2", "0.2", "100", "12", "0.05"}  # levels, not findings


def numbers_of(value):
    """All numbers and texts that plain values hold."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_of(item)]
    return [] if value is None or isinstance(value, bool) else [value]


def test_every_number_of_the_page_is_in_the_plain_values(found):
    told = [*numbers_of(found.to_dict()), len(found.outside_rows), len(found.suspects)]
    words = " ".join(value for value in told if isinstance(value, str))
    numbers = [value for value in told if not isinstance(value, str)]
    shown = {f"{100 * abs(v):.{digits}f}" for v in numbers for digits in (0, 1)}
    shown |= {f"{abs(v):{form}}" for v in numbers for form in (",.0f", ".2f", ".2g", ".3g", "g")}
    page = unescape(found._repr_html_())
    text = re.sub(r"<(script|style|svg|pre|code).*?</\1>|<[^>]*>", " ", page, flags=re.S)
    said, heard = (
        {n.rstrip(",") for n in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", each)}
        for each in (unescape(text).replace("\u00a0", " "), words)
    )
    missing = said - heard - shown - SAID_OF_ALL
    assert len(said) > 40
    assert missing == set()


@pytest.mark.parametrize("side", ["training", "validation"])
def test_a_column_of_text_may_happen_to_be_empty_on_one_side(side):
    X, y, X_val, y_val = shifted()
    X, X_val = (pd.DataFrame(part, columns=["a", "b"]) for part in (X, X_val))
    X["pool"], X_val["pool"] = None, None
    (X_val if side == "training" else X).loc[3, "pool"] = "good"
    found = giw.diagnose(X, y, X_val, y_val)
    assert "pool" in set(found.to_frame()["column"])
    assert found.recommendation.remedy == "plain"
