"""Commands and examples under torchrun, with two real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.cli.tables import write_tables
from tests.paper.process_tree import AVAILABLE, children_of, kill_if_alive
from typer.testing import CliRunner

import giw
from giw.cli import app
from giw.cli.fit import torchrun_processes

pytest.importorskip("pandas")
ROOT = Path(__file__).parents[2]


COMMAND = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
HOW = {
    "text": True, "env": {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}/src"}
}  # fmt: skip


def torchrun(*arguments):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, timeout=600, check=False, **HOW
    )


def test_giw_fit_writes_the_model_of_one_process(tmp_path):
    train, val = write_tables(tmp_path)
    command = ["fit", train, val, "-l", "y", "--model", "net", "--epochs", "3"]
    alone = CliRunner().invoke(app, [*map(str, command), "-o", str(tmp_path / "alone")])
    assert alone.exit_code == 0, alone.output

    done = torchrun("-m", "giw", *command, "-o", tmp_path / "shared")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Learned from 150 training and 45 validation rows") == 1
    one, two = giw.load(tmp_path / "alone"), giw.load(tmp_path / "shared")
    assert two.alpha_ == one.alpha_
    expected, found = one.module_.state_dict(), two.module_.state_dict()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-4)


LAST = """
import atexit, os, runpy, sys
from pathlib import Path
tasks = Path("/proc/self/task")
atexit.register(lambda: print("left:", *[(t / "comm").read_text() for t in tasks.iterdir()]))
sys.argv = sys.argv[1:]
if sys.argv[0] == "giw":
    from giw.cli import app
    app(sys.argv[1:])
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(not AVAILABLE, reason="looks at processes in /proc")
@pytest.mark.parametrize("program", ["giw", ROOT / "examples" / "multi_node.py"])
def test_no_thread_of_gloo_is_alive_when_python_ends(tmp_path, program):
    """One that still held a tensor would abort the process, rarely and under load."""
    train, val = write_tables(tmp_path)
    fit = ["fit", train, val, "-l", "y", "--model", "net", "-o", tmp_path / "model"]
    script = tmp_path / "last.py"
    script.write_text(LAST)

    done = torchrun(script, program, *(fit if program == "giw" else []), "--epochs", "2")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("left:") == 2
    assert "pt_gloo" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not AVAILABLE, reason="looks at processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fit_goes_on_and_writes_the_same_model(tmp_path, number):
    """SIGINT is heard by torchrun and handed on; SIGKILL hits the process that writes."""
    train, val = write_tables(tmp_path)
    command = ["fit", train, val, "-l", "y", "--model", "net", "--epochs", "300"]
    assert torchrun("-m", "giw", *command, "-o", tmp_path / "alone").returncode == 0

    again = ["-m", "giw", *map(str, command), "-o", str(tmp_path / "model")]
    process = subprocess.Popen([*COMMAND, *again], stderr=subprocess.PIPE, **HOW)
    unfinished = tmp_path / "model.unfinished"
    while not unfinished.exists():
        assert process.poll() is None
        time.sleep(0.01)
    if number == signal.SIGINT:
        process.send_signal(number)
    else:
        kill_if_alive(children_of(process.pid)[0], number)
    said = process.communicate(timeout=600)[1]

    assert process.returncode != 0
    if number == signal.SIGINT:
        lines = [line for line in said.splitlines() if line.startswith("giw fit: ")]
        assert len(lines) == 1, said
        assert "and is saved in" in lines[0]
        assert "run the same command again to go on" in lines[0]
    assert not (tmp_path / "model").exists()
    assert torchrun(*again).returncode == 0
    assert not unfinished.exists()
    for path in (tmp_path / "alone").iterdir():
        assert (tmp_path / "model" / path.name).read_bytes() == path.read_bytes(), path.name


def test_trees_are_for_one_process(tmp_path, monkeypatch):
    train, val = write_tables(tmp_path)
    for name, value in {
        "TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda backend: None)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)

    told = CliRunner().invoke(
        app, ["fit", str(train), str(val), "-l", "y", "-o", str(tmp_path / "model")]
    )

    assert told.exit_code == 2
    assert "2 processes can share the training of a net only; add --model net" in told.output


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "4")  # other schedulers set it too
    with torchrun_processes() as found:
        assert found == (0, 1)


def test_a_distributed_fit_needs_a_process_group():
    with pytest.raises(ValueError, match="start the program with torchrun"):
        giw.GIWClassifier(distributed=True).fit([[0.0], [1.0]], [0, 1])


def test_the_example_for_several_machines_runs_on_two_processes():
    done = torchrun(ROOT / "examples" / "multi_node.py", "--epochs", 15)

    assert done.returncode == 0, done.stderr
    count, accuracy = done.stdout.strip().split(" processes: accuracy ")
    assert int(count) == 2
    assert float(accuracy) > 0.7
