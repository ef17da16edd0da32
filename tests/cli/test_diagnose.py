"""``giw diagnose`` as a person meets it."""

import functools
import json
import shlex

import pandas as pd
import pytest
from tests.cli.tables import run, write_tables


def diagnose(*arguments):
    return run("diagnose", *arguments)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


def test_the_answer_comes_first_and_the_page_is_written(tables, tmp_path):
    result = diagnose(*tables, "--label", "y", "-o", tmp_path / "sub" / "report.html")

    assert result.exit_code == 0, result.output
    assert "in 15 of 45 validation rows and in no training row" in result.stdout.splitlines()[0]
    assert "town not in training" in result.stdout
    page = (tmp_path / "sub" / "report.html").read_text()
    assert f"giw diagnose {tables[0]} {tables[1]} --label y" in page
    fit = f"giw fit {tables[0]} {tables[1]} --label y -o model/"
    assert fit in page
    assert f"From the shell:\n  {fit}\n" in result.stdout


def test_the_command_it_names_runs_on_the_tables_diagnosed(tables, tmp_path, monkeypatch):
    line = json.loads(diagnose(*tables, "--label", "y", "--json").stdout)["next_command"]
    monkeypatch.chdir(tmp_path)

    result = run(*shlex.split(line)[1:])

    assert result.exit_code == 0, result.output
    assert (tmp_path / "model").is_dir()


def test_the_command_drops_the_columns_that_were_not_compared(tables, tmp_path, monkeypatch):
    paths = tmp_path / "train.csv", tmp_path / "val.csv"
    for old, path, empty in zip(tables, paths, (False, True), strict=True):
        frame = pd.read_csv(old)
        frame["row number"] = range(len(frame))
        frame["age"] = None if empty else frame["x"]
        frame.to_csv(path, index=False)
    told = json.loads(diagnose(*paths, "--label", "y", "--json").stdout)
    monkeypatch.chdir(tmp_path)
    fit = shlex.split(told["next_command"])
    result = run(*fit[1:])

    assert fit[-4:] == ["--drop", "age", "--drop", "row number"]
    assert result.exit_code == 0, result.output
    result = run("predict", "model/", paths[1], "-o", "p.csv")
    assert result.exit_code == 0, result.output


def test_json_has_everything_and_nothing_else_is_printed(tables):
    result = diagnose(*tables, "--label", "y", "--json")
    told = json.loads(result.stdout)

    assert result.stderr == ""
    assert told["recommendation"]["remedy"] == "giw"
    assert told["outside_interval"][0] <= 1 / 3 <= told["outside_interval"][1]
    assert {row["row"] for row in told["outside_rows"]} & set(range(15))


def test_all_rows_are_written_as_a_spreadsheet_counts_them(tables, tmp_path):
    """The first line holds the names, so the row of index 0 stands in line 2."""
    path = tmp_path / "new" / "rows.csv"
    result = diagnose(*tables, "--label", "y", "--rows", path, "--json")
    told, written = json.loads(result.stdout), pd.read_csv(path)
    lines = tables[1].read_text().splitlines()

    assert len(written) == len(told["outside_rows"]) + len(told["suspects"])
    outside = written[written["table"] == "validation"]
    for row in outside[outside["value"].notna()].itertuples():
        assert str(row.value) in lines[row.line - 1]
    assert (outside["p_value"] <= 0.1).all()


def test_rows_of_a_group_count_once(tables, tmp_path):
    """Fifteen copies of three rows are three groups and no shift."""
    frame = pd.read_csv(tables[0])
    frame["patient"] = range(len(frame))
    val = frame.iloc[list(range(12)) * 15]
    paths = tmp_path / "train.csv", tmp_path / "val.csv"
    for side, path in zip((frame.iloc[12:], val), paths, strict=True):
        side.to_csv(path, index=False)
    told = json.loads(diagnose(*paths, "--label", "y", "--group", "patient", "--json").stdout)

    assert told["sizes"]["used_val"] == len(told["groups"]) == 12
    assert {group["rows"] for group in told["groups"]} == {15}
    assert told["recommendation"]["remedy"] == "plain"
    assert "patient" not in {column["column"] for column in told["columns"]}


def test_without_a_label_features_are_compared_and_quiet_says_one_line(tables):
    result = diagnose(*tables, "--no-label", "-q")
    assert result.exit_code == 0, result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{train}", "{val}", "--label", "Y "), "did you mean 'y'?"),
        (("{train}", "{train}.none"), "does not exist"),
        ((".", "{val}", "-l", "y"), ". is not a saved model: it holds no giw.json"),
        (("{train}", "{val}"), "columns of few values: 'y', 'town'), or say --no-label"),
        (("{train}", "{val}", "-l", "y", "--no-label"), "exclude each other"),
        (("{train}", "{val}", "-l", "y", "--group", "towns"), "did you mean 'town'?"),
        (("{train}", "{val}", "--label", "x"), "and not a class"),
        (("{train}", "{val}", "-o", "{train}/report.html"), "cannot write"),
        (("{train}", "{val}", "-o", "report.pdf"), "--out must end in .html or .htm"),
        (("{train}", "{val}", "--rows", "rows.txt"), "--rows must end in .csv, got rows.txt"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(tables, arguments, words):
    result = diagnose(*(a.format(train=tables[0], val=tables[1]) for a in arguments))

    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_larger_than_memory_is_walked_through(tables, tmp_path, monkeypatch, kind):
    """Rows keep their numbers in the file, and classes are counted over all of it."""
    import numpy as np

    import giw.tables.sampling as module

    few = functools.partial(module.sample_file, most=120)
    monkeypatch.setattr(module, "sample_file", few)
    paths = [tmp_path / f"train.{kind}", tmp_path / f"val.{kind}"]
    for old, path in zip(tables, paths, strict=True):
        frame = pd.concat([pd.read_csv(old)] * 20, ignore_index=True)
        # far down in the file, so that a number in the sample would be another one
        frame = frame.iloc[np.argsort(frame["x"], kind="stable")]
        frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)

    whole = json.loads(diagnose(*paths, "--label", "y", "--json").stdout)
    monkeypatch.setattr(module, "COPIES", 10**4)  # as if the files were large
    result = diagnose(*paths, "--label", "y", "--memory", "0.1", "--json")
    told = json.loads(result.stdout)

    assert result.exit_code == 0, result.output
    assert told["class_shares"] == whole["class_shares"]
    assert "a random sample of 120 of its 900 rows was read" in " ".join(told["notes"])
    rows = {row["row"] for row in told["outside_rows"]}
    assert len(rows & set(range(600, 900))) >= 0.8 * len(rows)
    assert max(rows) > 120  # a number in the file, and not in the sample
    assert told["outside_interval"][0] <= 1 / 3 <= told["outside_interval"][1]
