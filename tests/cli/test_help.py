"""The help of every command, and mistakes in the command line."""

import subprocess
import sys
from itertools import pairwise

import pytest
import typer
from tests.cli.tables import run

import giw
from giw.cli import app

TREE = typer.main.get_command(app).commands
NAMES = [name for name, command in TREE.items() if not command.hidden and name != "paper"]
NAMES += [f"paper {name}" for name in TREE["paper"].commands]


def told(name, width=80):
    result = run(*name.split(), "--help", COLUMNS=str(width))
    assert result.exit_code == 0
    return [line.rstrip() for line in result.output.splitlines()]


def test_all_commands_are_tried():
    assert {"example", "diagnose", "fit", "predict", "demo", "paper run"} <= set(NAMES)


def test_the_commands_stand_in_two_groups():
    said = "\n".join(told(""))
    tables, paper = said.index("Your tables"), said.index("The paper")
    assert tables < said.index(" fit ") < paper < said.index(" paper ")
    assert "bench" not in said


@pytest.mark.parametrize(("old", "new"), [("bench", "run"), ("data", "data"), ("report", "report")])
def test_old_names_say_what_they_are_called_now(old, new):
    done = run(old, "--out", "x", "--tables")
    assert done.exit_code == 2
    assert done.output == f"giw {old}: is now called giw paper {new}\n"


def test_the_package_runs_as_a_module_and_tells_its_version():
    command = [sys.executable, "-m", "giw", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"giw {giw.__version__}\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_its_exit_codes_and_the_common_options(name):
    said = "\n".join(told(name))
    assert "Example:" in said
    assert f"giw {name}" in said.split("Example:")[1]
    assert "Exit code" in said
    assert "--json" in said
    assert "--quiet" in said
    if "--out" in said:
        assert "-o " in said


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 120])
def test_paragraphs_of_the_help_fill_the_lines(name, width):
    """A line ends early only where a paragraph does: nothing else breaks a line."""
    lines = told(name, width)
    assert max(map(len, lines)) <= width
    text = [line for line in lines if not line.startswith(("╭", "│", "╰"))]
    for line, following in pairwise(text):
        first = following.split(" " * 4)[0].split()
        if line.strip() and first and not following.startswith(" " * 3):
            assert len(f"{line} {first[0]}") > width - 2, line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fitt"], "giw: No such command 'fitt'"),
        (["paper", "runn"], "giw paper: No such command 'runn'"),
        (["fit"], "giw fit: Missing argument 'TRAIN'; see giw fit --help"),
        (["fit", "a.csv"], "giw fit: Missing argument 'VAL'; see giw fit --help"),
        (["diagnose", "a", "b", "--lable", "y"], "--lable"),
        (["demo", "--trials", "0"], "giw demo: Invalid value for '--trials'"),
        (["demo", "--seed", "-1"], "giw demo: Invalid value for '--seed'"),
        (["paper", "run", "--trials", "many"], "giw paper run: Invalid value for '--trials'"),
        (["paper", "data", "--fetch", "imagenet"], "'imagenet'"),
    ],
)
def test_a_mistake_in_the_command_is_one_line(words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
