"""What the pages say can be pasted, can be pasted; what they name, is there."""

import inspect
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import typer
from tests.docs.pages import PAGES, ROOT, program, quoted_commands

from giw.cli import app
from giw.nets.training import Method

WITH_EXAMPLES = [page for page in PAGES if program(page.read_text())]
# a demo of half a minute; the commands themselves have tests of their own
SLOW = {"commands.md", "adding_a_method.md"}
READ = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where giw is
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
        cwd=folder, capture_output=True, text=True, timeout=1800, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PATH": path,
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.name in SLOW else ())
        for page in WITH_EXAMPLES
    ],
)
def test_a_page_runs_from_top_to_bottom_in_an_empty_folder(page, tmp_path):
    done = run(program(page.read_text()), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_wrong_line_of_output_is_noticed(tmp_path):
    page = "```console\n$ echo one 1\none 2\n$ echo two\n{}\n```\n"
    assert run(program(page.format("…")), tmp_path).returncode == 0
    assert run(program(page.format("three")), tmp_path).returncode == 1
    assert run(program("```console\n$ false\n```\n"), tmp_path).returncode == 1


def test_the_pages_with_examples_are_found():
    assert {"index", "judging", "estimators", "saving", "commands"} <= {
        p.stem for p in WITH_EXAMPLES
    }


@cache
def options_of(program: str, name: str, *words: str) -> set[str]:
    """All options that a command or a script knows, from its source."""
    if program == "giw":
        command = typer.main.get_command(app).commands[name]
        if words and words[0] in getattr(command, "commands", ()):
            command = command.commands[words[0]]
        return {option for param in command.params for option in param.opts}
    return set(re.findall(r'"(--?[a-z][\w-]*)"', (ROOT / name).read_text()))


@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_commands_that_a_page_names_have_these_options(page):
    """Benchmarks take hours; that they exist and know their options takes a second."""
    for program_name, name, *words in quoted_commands(page.read_text()):
        options = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert options <= options_of(program_name, name, *words), [program_name, name, *words]


@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_no_page_names_a_file_that_is_not_there(page):
    named = re.findall(
        r"`((?:tests|benchmarks|examples|results|src)/[\w/.]+\.\w+)`", page.read_text()
    )
    assert [name for name in named if "clipped" not in name and not (ROOT / name).exists()] == []


def test_the_functions_of_a_method_are_those_of_the_protocol():
    page = (ROOT / "docs" / "adding_a_method.md").read_text()
    named = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    functions = {name for name, part in vars(Method).items() if inspect.isfunction(part)}
    assert set(named) == {name for name in functions if not name.startswith("_")}
