"""Results that nobody reads any more, and text that a terminal would obey."""

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.tables import write_tables

from giw.cli import app, common


def broken(errno_name):
    class Gone:
        def write(self, text):
            import errno

            raise OSError(getattr(errno, errno_name), errno_name)

        def isatty(self):
            return False

        def flush(self):
            pass

    return Gone()


@pytest.mark.parametrize(
    ("stdout", "words"),
    [
        (None, "Bad file descriptor"),
        (broken("EPIPE"), "Broken pipe"),
        (broken("ENOSPC"), "No space left on device"),
    ],
)
def test_output_that_is_lost_is_told_and_files_stay(stdout, words, tmp_path, monkeypatch, capsys):
    train, val = write_tables(tmp_path)
    page = tmp_path / "page.html"
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(SystemExit) as ended:
        app(["diagnose", str(train), str(val), "--label", "y", "-o", str(page)])
    assert ended.value.code == common.FAILED
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == f"giw diagnose: standard output is lost: {words}; files are written"
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_python_does_not_complain_again_when_it_ends(tmp_path):
    words = [sys.executable, "-m", "giw", "example", "new-category", "-o", str(tmp_path / "x")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == common.FAILED
    assert len(done.stderr.splitlines()) == 1
    assert (tmp_path / "x" / "train.csv").exists()


def test_warnings_become_sentences_each_once_and_those_of_python_stay_what_they_are():
    kinds = {"few\n rows": UserWarning, "few rows": UserWarning, "old": DeprecationWarning}
    with warnings.catch_warnings(record=True) as others, common.heard_warnings() as heard:
        warnings.simplefilter("always")
        for words, kind in kinds.items():
            warnings.warn(words, kind, stacklevel=1)
    assert list(heard) == ["few rows"]
    assert [str(other.message) for other in others] == ["old"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_lines_of_its_width_and_whole_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "50")
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    app(["example", "no-shift"], standalone_mode=False)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit):
        app(["example", "none-of-these"])
    lines = out.getvalue().splitlines()
    commands = [line for line in lines if line.startswith("  giw ")]
    assert commands[1] == (
        "  giw fit no-shift/train.csv no-shift/val.csv --label finding -o no-shift/model"
    )
    others = [line for line in lines if line not in commands] + err.getvalue().splitlines()
    assert max(map(len, others)) <= 50
    assert len(err.getvalue().splitlines()) > 1


def test_a_terminal_gets_rows_of_tables_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    results = Path(__file__).parents[2] / "results"
    app(["paper", "report", str(results), "--tables"], standalone_mode=False)
    lines = out.getvalue().splitlines()
    assert any(line.startswith("-" * 60) for line in lines)
    assert any(len(line) > 60 and line.count("  ") > 3 for line in lines)


def test_what_a_terminal_would_obey_is_spelled(tmp_path, capsys):
    train, val = write_tables(tmp_path)
    odd, spelled = "a\x1b[31m\ufffe", r"a\x1b[31m\ufffe"
    for path in (train, val):
        pd.read_csv(path).rename(columns={"x": odd}).to_csv(path, index=False)
    page = tmp_path / "page.html"
    command = ["diagnose", str(train), str(val), "--label"]
    app([*command, "y", "-o", str(page)], standalone_mode=False)
    app([*command, "y", "--json"], standalone_mode=False)
    with pytest.raises(SystemExit):
        app([*command, odd + "!"])
    out, err = capsys.readouterr()
    assert not {"\x1b", "\ufffe"} & {*out, *err, *page.read_text()}
    assert spelled in out
    assert spelled in err
    assert odd in {column["column"] for column in json.loads(out.splitlines()[-1])["columns"]}
