"""``giw example``: what it writes, and that the commands it names run."""

import json
import shlex

import pandas as pd
import pytest
from tests.cli.tables import run

from giw.cli.example import STORIES, example_tables


def test_the_list_names_every_example():
    told = run("example").stdout
    names = [line for line in told.split("\n\n")[0].splitlines() if not line.startswith("  ")]
    assert names == list(STORIES)
    assert "\n  Another season. Flights" in told
    assert list(json.loads(run("example", "--json").stdout)) == list(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_the_files_hold_the_tables_and_a_second_call_changes_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("example", name)
    assert result.exit_code == 0, result.output
    tables = example_tables(name)
    for part, table in tables.items():
        read = pd.read_csv(tmp_path / name / f"{part}.csv")
        assert read.columns[-1] in ("large", "late", "finding")
        assert len(read) == len(table) >= 50
    assert run("example", name).exit_code == 0  # the same files again


def test_each_example_has_the_difference_it_tells_of():
    tables = example_tables("new-category")
    assert "UA" not in set(tables["train"]["airline"])
    assert (tables["val"]["airline"] == "UA").mean() > 0.1
    shares = [(t["finding"] == "malignant").mean() for t in example_tables("class-mix").values()]
    assert shares[0] == pytest.approx(0.1)
    assert min(shares[1:]) > 0.5
    noisy, clean = (example_tables(n)["train"] for n in ("noisy-labels", "no-shift"))
    features = clean.columns.drop("finding")
    pd.testing.assert_frame_equal(noisy[features], clean[features])
    assert 0.25 < (noisy["finding"] != clean["finding"]).mean() < 0.35


def test_a_file_of_the_users_is_not_replaced(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"mine: \xff")
    result = run("example", "no-shift", "-o", tmp_path)
    assert result.exit_code == 2
    assert "another folder" in result.stderr
    assert (tmp_path / "train.csv").read_bytes() == b"mine: \xff"
    assert not (tmp_path / "val.csv").exists()
    result = run("example", "no-shift", "-o", tmp_path / "train.csv")
    assert result.exit_code == 2
    assert "cannot be written to; name another place with --out" in result.stderr


def test_an_unknown_name_is_answered_with_the_list():
    result = run("example", "nothing")
    assert result.exit_code == 2
    assert "time-drift" in result.stderr


def test_the_commands_it_names_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = json.loads(run("example", "no-shift", "--json").stdout)
    for command in told["next_commands"]:
        result = run(*shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "no-shift" / "model").is_dir()
