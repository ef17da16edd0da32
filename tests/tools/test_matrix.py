"""What the hosted workflow runs is there, and what the wheel needs at least is what it says."""

import re
from pathlib import Path

import pytest

from tools import matrix

yaml = pytest.importorskip("yaml")
REPOSITORY = Path(matrix.__file__).resolve().parents[1]
JOBS = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "tests.yml").read_text("utf-8"))[
    "jobs"
]


def test_the_workflow_runs_targets_and_scripts_that_exist():
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    commands = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        first, *rest = command.split()
        if first == "make":
            assert rest[0] in targets
        else:
            assert (REPOSITORY / (rest[0] if first == "python" else first)).is_file()


def test_the_workflow_has_every_cell_with_its_own_python():
    cells = JOBS["wheel"]["strategy"]["matrix"]["include"]
    assert sorted(c["cell"] for c in cells) == sorted(matrix.CELLS)
    assert all(c["cell"].startswith(c["python"]) for c in cells)


def test_the_oldest_dependencies_are_the_lower_bounds():
    pins = matrix.oldest()
    assert "numpy==1.26" in pins
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins)
