"""``giw fit`` and ``giw predict`` as a person meets them."""

import json
import shutil
import sys

import numpy as np
import pytest
from tests.cli.tables import run, write_tables

import giw

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def model(tables):
    train, val = tables
    folder = train.parent / "model"
    result = run("fit", train, val, "-l", "y", "-o", folder, "--model", "logistic")
    assert result.exit_code == 0, result.output
    return folder


def test_fit_says_what_it_learned_from_and_what_comes_next(tables, tmp_path):
    train, val = tables
    result = run(
        *("fit", train, val, "--label", "y", "-o", tmp_path / "m"),
        *("--model", "net", "--epochs", 2),
    )

    assert result.exit_code == 0, result.output
    assert "150 training and 45 validation rows" in result.stdout
    assert "count as inside" in result.stdout
    assert "giw predict" in result.stdout
    assert isinstance(giw.load(tmp_path / "m"), giw.GIWClassifier)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_predictions_are_the_models_own(tables, model, tmp_path, ending):
    out = tmp_path / f"p.{ending}"
    result = run("predict", model, tables[1], "-o", out)
    assert result.exit_code == 0, result.output
    assert "% match column 'y'" in result.stdout
    if ending == "npz":
        with np.load(out) as file:
            said, probability = file["prediction"], file["probability"]
    else:
        frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        said = frame["prediction"].to_numpy(dtype=str)
        probability = frame[["probability of no", "probability of yes"]].to_numpy()

    assert len(said) == 45
    assert np.allclose(probability.sum(axis=1), 1)
    assert list(said) == [["no", "yes"][j] for j in probability.argmax(axis=1)]
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_rows_without_a_label_are_predicted_and_not_counted(tables, model, tmp_path):
    frame = pd.read_csv(tables[1])
    frame.loc[frame.index[3:], "y"] = None
    frame.to_csv(tmp_path / "to_label.csv", index=False)
    result = run("predict", model, tmp_path / "to_label.csv", "-o", tmp_path / "p.csv", "--json")
    assert result.exit_code == 0, result.output
    said = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert len(said) == 45
    assert json.loads(result.stdout)["accuracy"] == (said[:3] == frame["y"][:3]).mean()


def test_columns_are_found_by_name_and_others_ignored(tables, model, tmp_path):
    frame = pd.read_csv(tables[1]).assign(more=1)
    frame[["more", "income", "x", "town"]].to_csv(tmp_path / "other.csv", index=False)
    for data, out in ((tables[1], "a.csv"), (tmp_path / "other.csv", "b.csv")):
        assert run("predict", model, data, "-o", tmp_path / out, "-q").exit_code == 0

    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_quiet_is_quiet_and_json_is_json(tables, model, tmp_path):
    train, val = tables
    out = tmp_path / "p.csv"
    assert run("predict", model, val, "-o", out, "-q").output == ""
    told = json.loads(run("predict", model, val, "-o", out, "--json").stdout)
    assert told["rows"] == 45
    assert 0 <= told["accuracy"] <= 1
    arguments = ("fit", train, val, "-l", "y", "-o", tmp_path / "m", "--model", "logistic")
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["classes"] == ["no", "yes"]
    assert 0 < told["inside_share"] < 1
    assert run(*arguments, "-q").output == ""


def test_a_table_without_validation_labels_is_enough_for_weights(tables, tmp_path):
    train, val = tables
    pd.read_csv(val).drop(columns="y").to_parquet(tmp_path / "val.parquet")
    arguments = (tmp_path / "val.parquet", "-l", "y", "-o", tmp_path / "m")
    result = run("fit", train, *arguments, "--model", "logistic")
    assert result.exit_code == 0, result.output
    assert "the others taught nothing" in result.stdout
    assert "cannot join training without a label" in result.stderr
    result = run("fit", train, *arguments, "--model", "logistic", "--json")
    assert "cannot join training without a label" in json.loads(result.stdout)["notes"][-1]
    assert result.stderr == ""
    assert run("fit", train, *arguments, "--model", "net").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "{train}", "{val}", "-l", "why", "-o", "{out}"), "no column 'why'"),
        (("fit", "{train}", "{val}", "-l", "x", "-o", "{out}"), "giw.ReweightedRegressor"),
        (("fit", "{train}", "none.csv", "-l", "y", "-o", "{out}"), "does not exist"),
        (("fit", "{train}", "{odd}", "-l", "y", "-o", "{out}"), "it lacks 'town'"),
        (
            ("fit", "{train}", "{val}", "-l", "y", "-o", "{out}", "--method", "dann"),
            "--model net",
        ),
        (
            ("fit", "{train}", "{val}", "-l", "y", "-o", "{train}"),
            "it is a file; name a folder",
        ),
        (("predict", "{train}", "{val}", "-o", "{out}.csv"), "holds no giw.json"),
        (("predict", "{model}", "{odd}", "-o", "{out}.csv"), "it lacks 'town'"),
        (
            ("predict", "{model}", "{val}", "-o", "{out}.doc"),
            "must end in .csv or .parquet or .npz",
        ),
        (("predict", "{model}", "{val}", "-o", "{folder}"), "it is a folder; name a file"),
        (("diagnose", "{train}", "{val}", "-l", "y", "-o", "{folder}"), "must end in .html"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(tables, model, tmp_path, arguments, words):
    train, val = tables
    pd.read_csv(val).drop(columns="town").to_csv(tmp_path / "odd.csv", index=False)
    (tmp_path / "folder.csv").mkdir()
    names = {"train": train, "val": val, "model": model, "out": tmp_path / "out"}
    names["folder"] = tmp_path / "folder.csv"
    result = run(*(a.format(**names, odd=tmp_path / "odd.csv") for a in arguments))

    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_failure_at_work_has_exit_code_1(tables, model, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(sys.modules["giw.cli.predict"], "write_predictions", full)
    result = run("predict", model, tables[1], "-o", tmp_path / "p.csv")
    assert result.exit_code == 1
    assert result.stderr == "giw predict: no space left on device\n"


def test_a_model_from_python_is_not_guessed_at(tables, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = giw.GIWClassifier(max_epochs=1, method="train_only").fit(X, X[:, 0] > 0)
    result = run("predict", clf.save(tmp_path / "m"), tables[1], "-o", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert "saved from Python" in result.stderr


@pytest.mark.parametrize("form", ["apart", "joined", "first"])
def test_the_option_val_of_the_last_version_is_taken_and_one_line_says_so(tables, tmp_path, form):
    train, val = map(str, tables)
    words = {
        "apart": [train, "--val", val], "joined": [train, f"--val={val}"],
        "first": ["--val", val, train],
    }[form]  # fmt: skip
    command = ["fit", *words, "-l", "y", "-o", tmp_path / "m", "--model", "logistic", "--json"]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert result.stderr == "giw fit: --val is going away; write giw fit TRAIN VAL\n"
    told = json.loads(result.stdout)
    assert (told["training_rows"], told["validation_rows"]) == (150, 45)


def test_fit_ends_with_what_it_gained(tables, tmp_path):
    train, val = tables
    arguments = ("fit", train, val, "-l", "y", "-o", tmp_path / "m", "--model", "logistic")
    last = run(*arguments).stdout.splitlines()[-2:]
    assert last[0].startswith("Left-out validation rows: plain 0.")
    assert "stack 0." in last[0]
    assert "plain training" in last[1].lower()
    told = json.loads(run(*arguments, "--json").stdout)["left_out"]
    assert told["points"] == 45
    assert told["gain"] == pytest.approx(told["scores"]["stack"] - told["scores"]["plain"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_flags_and_sets_are_columns(tables, model, tmp_path, ending):
    frame = pd.concat([pd.read_csv(tables[0])[:50], pd.read_csv(tables[1])])
    frame.iloc[:5, frame.columns.get_loc("town")] = "Bonn"
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / f"p.{ending}"
    result = run("predict", model, tmp_path / "new.csv", "-o", out, "--flag", "--sets", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    if ending == "npz":
        with np.load(out) as file:
            outside, members = file["outside"], file["set"]
            sets = ["|".join(file["classes"][row]) for row in members]
    else:
        read = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        outside, sets = read["outside"].to_numpy(), read["set"].tolist()
    assert outside[:5].all()  # neither table has the town
    assert outside.sum() == told["outside"] < 40
    assert set(sets) <= {"no", "yes", "no|yes"}
    held = np.mean([label in text.split("|") for label, text in zip(frame["y"], sets, strict=True)])
    assert told["coverage"] == pytest.approx(held)
    assert told["set_size"] == pytest.approx(np.mean([len(text.split("|")) for text in sets]))


def test_new_rows_beside_a_model_end_with_0_and_3(tables, model, tmp_path):
    frame = pd.read_csv(tables[1]).drop(columns="y")
    frame.to_csv(tmp_path / "same.csv", index=False)
    frame.assign(x=frame["x"] + 5).to_csv(tmp_path / "other.csv", index=False)
    result = run("diagnose", model, tmp_path / "same.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No drift: 45 new rows")
    result = run("diagnose", model, tmp_path / "other.csv", "--rows", tmp_path / "rows.csv")
    assert result.exit_code == 3, result.output
    assert "- x: median" in result.stdout
    told = json.loads(run("diagnose", model, tmp_path / "other.csv", "--json").stdout)
    assert told["found"]
    listed = pd.read_csv(tmp_path / "rows.csv")["row"] - 2
    assert listed.tolist() == told["outside"]
    result = run("diagnose", model, tmp_path / "same.csv", "-l", "y")
    assert result.exit_code == 2
    assert "leave out --label" in result.stderr


def test_a_net_keeps_rows_too_and_has_no_sets(tables, tmp_path):
    train, val = tables
    arguments = ("-l", "y", "-o", tmp_path / "m", "--model", "net", "--epochs", 1)
    assert run("fit", train, val, *arguments, "-q").exit_code == 0
    words = ("predict", tmp_path / "m", val, "-o", tmp_path / "p.csv")
    assert run(*words, "--flag").exit_code == 0
    assert run("diagnose", tmp_path / "m", val).exit_code == 0
    result = run(*words, "--sets")
    assert result.exit_code == 2
    assert "a net has none" in result.stderr


def test_no_command_writes_over_a_table_that_it_reads(tables, model, tmp_path):
    train, val = (shutil.copy(path, tmp_path / path.name) for path in tables)
    for words in (
        ("predict", model, val, "-o", val),
        ("diagnose", train, val, "-l", "y", "--rows", train),
        ("diagnose", train, val, "-l", "y", "--rows", tmp_path / "." / val.name),
    ):
        before = [path.read_bytes() for path in (train, val)]
        result = run(*words)
        assert result.exit_code == 2
        assert "is read by this command; name another file with --" in result.stderr
        assert before == [path.read_bytes() for path in (train, val)]
