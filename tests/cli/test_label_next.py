"""``giw label-next``: rows to label first."""

import json
import shlex

import pandas as pd
import pytest
from tests.cli.tables import run, write_tables


@pytest.fixture
def tables(tmp_path):
    train, val = write_tables(tmp_path)
    pool = pd.read_csv(val, dtype=str, keep_default_na=False).drop(columns="y")
    pool.assign(day="2024-01-31").to_csv(tmp_path / "pool.csv", index=False)
    days = pd.read_csv(train, dtype=str, keep_default_na=False).assign(day="2024-01-30")
    days.to_csv(train, index=False)
    return train, tmp_path / "pool.csv"


def test_rows_are_those_of_the_pool_with_their_numbers_and_room_for_a_label(tables):
    train, pool = tables
    out = pool.with_name("next.csv")
    result = run("label-next", train, pool, "-l", "y", "-n", 7, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, dtype=str, keep_default_na=False)
    every = pd.read_csv(pool, dtype=str, keep_default_na=False)
    told = json.loads(result.stdout)
    assert told["rows"] == written["row"].astype(int).tolist() == sorted(told["rows"])
    assert told["way"] == "random"
    columns = [*every.columns]
    same = every.iloc[written["row"].astype(int) - 2][columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(written[columns], same)
    assert set(written["y"]) == {""}


def test_the_command_it_names_runs_once_labels_are_there(tables, tmp_path, monkeypatch):
    train, pool = tables
    monkeypatch.chdir(tmp_path)
    result = run("label-next", train, pool, "-l", "y", "-n", 20)
    assert result.exit_code == 0, result.output
    frame = pd.read_csv("to_label.csv").assign(y=["yes", "no"] * 10)
    frame.to_csv("to_label.csv", index=False)
    command = shlex.split(result.stdout.splitlines()[-1])
    assert run(*command[1:], "--model", "logistic").exit_code == 0


def test_what_labels_are_expected_to_gain_is_told_with_val(tables, tmp_path):
    train, pool = tables
    val = pd.read_csv(tmp_path / "val.csv").assign(day="2024-01-31")
    val.to_csv(tmp_path / "val.csv", index=False)
    words = ("label-next", train, pool, "-l", "y", "-n", 9, "--val", tmp_path / "val.csv")
    result = run(*words, "-o", tmp_path / "a.csv")
    assert result.exit_code == 0, result.output
    assert "Expected gain" in result.stdout
    assert f"add the rows to {tmp_path / 'val.csv'}" in result.stdout
    told = json.loads(run(*words, "-o", tmp_path / "b.csv", "--json").stdout)
    low, high = told["gain_interval"]
    assert low <= told["expected_gain"] <= high


def test_of_numbers_all_rows_are_random(tables, tmp_path):
    train, pool = tables
    val = tmp_path / "val.csv"
    for path in (train, val):
        frame = pd.read_csv(path).assign(day="2024-01-31")
        frame.assign(y=frame["x"] / 3).to_csv(path, index=False)
    result = run(
        "label-next", train, pool, "-l", "y", "-n", 9, "--val", val, "-o", tmp_path / "a.csv"
    )
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(tmp_path / "a.csv")) == 9


def test_a_file_that_is_there_is_not_replaced(tables):
    train, pool = tables
    result = run("label-next", train, pool, "-l", "y", "-o", pool)
    assert result.exit_code == 2
    assert "exists already" in result.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("-n", 46), "45 rows to label, fewer than 46"),
        (("-o", "rows.txt"), "must end in .csv"),
        (("-l", "why"), "no column 'why'"),
        (("row",), "has a column 'row'"),
    ],
)
def test_mistakes_get_one_line(tables, monkeypatch, more, words):
    train, pool = tables
    if not more[0].startswith("-"):
        for path in tables:
            pd.read_csv(path).assign(**{more[0]: 1}).to_csv(path, index=False)
        more = ()
    monkeypatch.chdir(pool.parent)
    result = run("label-next", train, pool, "-l", "y", "-n", 5, *more)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (pool.parent / "to_label.csv").exists()
