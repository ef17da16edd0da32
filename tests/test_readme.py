"""What the README says can be pasted, can be pasted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_there_are_blocks_to_run():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_code_block_runs_by_itself_in_an_empty_folder(number, tmp_path):
    wanted = re.findall(r'"([\w-]+)/\w+\.csv"|f"([\w-]+)/', BLOCKS[number])
    for name in {one or other for one, other in wanted}:  # as the page says before the block
        subprocess.run([sys.executable, "-m", "giw", "example", name], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", BLOCKS[number]],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "a block of the README prints what it found"
