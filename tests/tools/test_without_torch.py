"""The rooms below the nets, where torch cannot be imported."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "without_torch.py"


def walk(*names):
    command = [sys.executable, str(SCRIPT), "--hide", *names]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "names",
    [("the_package", "the_help", "nets", "tables", "pages", "weights"), ("support", "estimators"),
     ("judging", "diagnosis"), ("commands",)],
)  # fmt: skip
def test_what_needs_no_torch_works_without_it(names):
    done = walk(*names)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(names)


def test_the_script_hides_torch():
    code = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import without_torch; "
    code += "without_torch.hide(); import torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: No module named 'torch'" in done.stderr
