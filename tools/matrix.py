"""What users install, tried: the wheel alone, in an empty environment for each Python.

    python tools/matrix.py            every cell that this machine can try
    python tools/matrix.py 3.12       those whose name begins so

The sdist and the wheel are built and checked by twine. A cell is a Python and a choice of
dependencies: the newest that there are or, on 3.11, the oldest that pyproject.toml allows. It
installs the wheel and runs fast tests against it; without torch, tests that need it are left out.
torch's pinned build is for Python 3.11; elsewhere the same pin brings 5 GB of CUDA, so the other
cells are without torch here and the hosted workflow has them all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
WORK = REPOSITORY / ".venv-matrix"
CELLS = ("3.11-oldest", "3.11-torch", "3.12", "3.13")
# The whole of it would take an hour: rooms that work without torch, and with torch the nets too.
CORE_TESTS = (
    "checks",
    "tables",
    "pages",
    "weights",
    "support",
    "estimators",
    "judging",
    "diagnosis",
)
TORCH_TESTS = (*CORE_TESTS, "objective", "nets")


def run(*command: object, **settings: object) -> None:
    """A command that must succeed."""
    subprocess.run([str(c) for c in command], check=True, **settings)  # type: ignore[call-overload]


def pip(env: Path, *what: object) -> None:
    """Install into an environment."""
    run(env / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-qq", *what)


def environment(python: str, name: str) -> Path:
    """An empty environment of a Python."""
    env = WORK / name
    shutil.rmtree(env, ignore_errors=True)
    run(python, "-m", "venv", env)
    return env


def built() -> Path:
    """The wheel, after twine has read it and the sdist."""
    env = environment(sys.executable, "build")
    pip(env, "build", "twine")
    shutil.rmtree(WORK / "dist", ignore_errors=True)
    python = env / "bin" / "python"
    run(python, "-m", "build", "--outdir", WORK / "dist", REPOSITORY)
    files = sorted((WORK / "dist").iterdir())
    run(python, "-m", "twine", "check", "--strict", *files)
    return next(f for f in files if f.suffix == ".whl")


def oldest() -> list[str]:
    """The dependencies at the lowest versions that pyproject.toml allows."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return [re.sub(r">=([^,]+).*", r"==\1", need) for need in project["dependencies"]]


def tried(cell: str, python: str, wheel: Path) -> str:
    """Install the wheel into an empty environment and run the tests against it; the last line."""
    env = environment(python, cell)
    with_torch = cell.endswith("torch")
    if with_torch:
        pinned = REPOSITORY / "constraints.txt"
        pip(env, f"giw[torch,data] @ {wheel.as_uri()}", "filelock", "--constraint", pinned)
    else:
        pip(env, wheel, *(oldest() if cell.endswith("oldest") else []))
    pip(env, "pytest", "hypothesis", "cvxopt")
    names = TORCH_TESTS if with_torch else CORE_TESTS
    tests = [t for name in names for t in (f"tests/{name}", f"tests/test_{name}.py")]
    there = [t for t in tests if (REPOSITORY / t).exists()]
    # the tests import giw from the environment: src is not on their path
    command = [
        env / "bin" / "python",
        "-m",
        "pytest",
        "-o",
        "pythonpath=.",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [str(c) for c in (*command, *there)], cwd=REPOSITORY, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stdout[-5000:], done.stderr[-2000:])
        raise SystemExit(f"{cell}: red")
    return done.stdout.strip().splitlines()[-1]


def python_of(version: str) -> str | None:
    """Where a Python is, if anywhere."""
    if shutil.which("pyenv"):  # its python3.12 on the path runs only where that version is chosen
        listed = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True)
        there = sorted(Path(listed.stdout.strip()).glob(f"versions/{version}.*/bin/python"))
        return str(there[-1]) if there else None
    return shutil.which(f"python{version}")


def main() -> None:
    """Build, then one line for each cell."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    wheel = built()
    for cell in (c for c in CELLS if c.startswith(wanted)):
        python = python_of(cell.split("-")[0])
        if python is None:
            print(f"{cell}: skipped, no such Python on this machine")
            continue
        began = time.monotonic()
        print(
            f"{cell}: {tried(cell, python, wheel)} ({time.monotonic() - began:.0f} s)", flush=True
        )


if __name__ == "__main__":
    main()
