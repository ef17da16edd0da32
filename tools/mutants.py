"""How strong a room's tests are: the share of small faults in its code that they notice.

    python tools/mutants.py weights --n 100 --processes 2

Every mutant is one change of one operator, comparison, condition or number, in a private copy of
the working tree, on a line that a fast test of the room runs; it is killed if one of the tests that
run this line fails, or takes far more processor time than before. The row goes to
tests/mutants.csv. Some survivors change nothing that a test could see.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
COLUMNS = (
    "room",
    "commit",
    "seed",
    "points",
    "not_run",
    "tried",
    "killed",
    "share",
    "survivors",
)
LOADED_ONCE = ("numpy", "pandas", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "torch")
NO_CPU = ("_kernel.py", "_kernels.py")  # Triton's language: no processor runs it
TREE = Path()  # a process's own copy
PYTEST = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
SWAPS: dict[Any, Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.MatMult: ast.Mult},
    **{ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In},
}


@dataclass(frozen=True)
class Mutant:
    """One fault: the place in the walk through a file, its line, and the fault in words."""

    file: str
    place: int
    line: int
    words: str


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes in a fixed order, without annotations, messages of errors and anything that is text."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr | ast.Raise):
                yield node
                yield from nodes_of(node)


def faults_of(node: ast.AST) -> list[str]:
    """What can be done wrong at a node, in words."""
    if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp):
        old = node.ops[0] if isinstance(node, ast.Compare) else node.op
        new = SWAPS.get(type(old))
        return [f"{type(old).__name__} to {new.__name__}"] if new else []
    if isinstance(node, ast.If | ast.IfExp):
        return ["condition negated"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        return [f"{type(node.op).__name__} dropped"]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [f"{node.value} to {not node.value}"]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [f"{node.value} to {other_number(node.value)}"]
    return []


def other_number(value: Any) -> float:
    """The next whole number, or the double."""
    return value + 1 if isinstance(value, int) else 2 * value or 1.0


def spoil(node: Any) -> None:
    """Do it."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(node.op, node.operand)  # twice is not at all
    elif isinstance(node, ast.Constant):
        v = node.value
        node.value = not v if isinstance(v, bool) else other_number(v)


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """All mutants of a file."""
    return [
        Mutant(name, place, getattr(node, "lineno", 0), words)
        for place, node in enumerate(nodes_of(ast.parse(path.read_text("utf-8"))))
        for words in faults_of(node)
    ]


def spoiled(source: str, place: int) -> str:
    """The file with one fault."""
    tree = ast.parse(source)
    node = next(node for i, node in enumerate(nodes_of(tree)) if i == place)
    spoil(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def pytest_in_child(tree: Path, arguments: Sequence[str], cpu: float | None = None) -> int | None:
    """Exit code of pytest in a fork of this process; None where a limit or a signal ended it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(tree)
        sys.dont_write_bytecode = False  # compiling everything anew is most of a short test
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        if cpu is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
        code = 3
        try:
            import pytest
            from hypothesis import HealthCheck, Phase, settings

            # a failure is enough, its smallest example is not asked for
            settings.register_profile(
                "mutants",
                derandomize=True,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.generate],
            )
            code = int(pytest.main(["--rootdir", str(tree), *PYTEST, *arguments]))
        finally:
            os._exit(code)
    waited = time.monotonic()
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if cpu is not None and time.monotonic() - waited > 30 * cpu:  # asleep for ever
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)


def tests_by_line(tree: Path, source: str, tests: Sequence[str]) -> dict[str, dict[int, set[str]]]:
    """Which test functions run each line, by file; the empty name is the import."""
    data = tree / "coverage"
    os.environ["COVERAGE_FILE"] = str(data)
    measured = [f"--cov={source}", "--cov-context=test", "--cov-report="]
    code = pytest_in_child(tree, [*measured, *tests])
    if code != 0:
        raise SystemExit(f"the tests of {source} are not green without a mutant (pytest: {code})")
    from coverage import CoverageData

    found = CoverageData(str(data))
    found.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for file in found.measured_files():
        name = str(Path(file).relative_to(tree))
        lines[name] = {
            line: {context.split("|")[0].split("[")[0] for context in contexts}
            for line, contexts in found.contexts_by_lineno(file).items()
        }
    names = {name for runs in lines.values() for found in runs.values() for name in found if name}
    if pytest_in_child(tree, ["--collect-only", *sorted(names)]) != 0:
        raise SystemExit("coverage names tests that pytest does not find")
    return lines


def in_order(mutant: Mutant, names: set[str], tests: Sequence[str]) -> list[str]:
    """Tests that may kill a mutant; those of the file that mirrors its own come first."""
    mirror = f"test_{Path(mutant.file).stem}.py"
    if names <= {""}:  # a line that the import runs: any test of the room
        first = [str(p) for root in tests for p in Path(root).rglob(mirror)]
        return [*first, *tests]
    return sorted(names - {""}, key=lambda name: (f"/{mirror}::" not in name, name))


def copy_of_tree() -> Path:
    """A private copy of the working tree."""
    tree = Path(tempfile.mkdtemp(prefix="mutants-"))
    no_code = shutil.ignore_patterns(".*", "results", "__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY, tree, ignore=no_code, dirs_exist_ok=True)
    return tree


def measure(args: argparse.Namespace, tree: Path) -> dict[str, object]:
    """Try mutants, each process its share, until there are enough or time is up."""
    ends, spent = time.monotonic() + 60 * args.minutes, os.times()
    run_by = tests_by_line(tree, args.source, args.tests)
    after = os.times()
    cpu = (after.children_user + after.children_system) - (
        spent.children_user + spent.children_system
    )
    points: list[Mutant] = []
    not_run = 0
    for path in sorted((tree / args.source).rglob("*.py")):
        name = str(path.relative_to(tree))
        if not name.endswith(NO_CPU):
            every = mutants_of(path, name)
            here = [m for m in every if m.line in run_by.get(name, {})]
            points, not_run = points + here, not_run + len(every) - len(here)
    chosen = random.Random(args.seed).sample(points, min(args.n, len(points)))
    print(f"{len(points)} points, {not_run} more on lines that no fast test runs; {cpu:.0f} s CPU")
    jobs = [
        (m, in_order(m, run_by[m.file][m.line], args.tests), 20 + 2 * cpu, ends) for m in chosen
    ]
    survivors: dict[str, list[str]] = defaultdict(list)
    tried = 0
    with multiprocessing.get_context("fork").Pool(args.processes, own_tree) as pool:
        for mutant, killed in pool.imap_unordered(try_one, jobs):
            if killed is None:
                continue
            tried += 1
            if not killed:
                survivors[mutant.file].append(f"{mutant.line} {mutant.words}")
            how = "killed" if killed else "SURVIVED"
            print(f"{tried:3} {how:8} {mutant.file}:{mutant.line} {mutant.words}", flush=True)
        pool.close()
        pool.join()
    alive = sum(map(len, survivors.values()))
    listed = "; ".join(f"{file}: {', '.join(found)}" for file, found in sorted(survivors.items()))
    return {
        "points": len(points), "not_run": not_run, "tried": tried, "killed": tried - alive,
        "share": f"{(tried - alive) / max(tried, 1):.3f}", "survivors": listed,
    }  # fmt: skip


def own_tree() -> None:
    """Give a process a copy of the code of its own."""
    global TREE
    TREE = copy_of_tree()
    multiprocessing.util.Finalize(None, shutil.rmtree, (TREE,), exitpriority=1)


def try_one(job: tuple[Mutant, list[str], float, float]) -> tuple[Mutant, bool | None]:
    """Whether a test notices; None where time was up."""
    mutant, tests, limit, ends = job
    if time.monotonic() > ends:
        return mutant, None
    path = TREE / mutant.file
    source = path.read_text("utf-8")
    try:
        path.write_text(spoiled(source, mutant.place), "utf-8")
        forget_compiled(path)
        code = pytest_in_child(TREE, tests, cpu=limit)
    finally:
        path.write_text(source, "utf-8")
        forget_compiled(path)
    return mutant, code != 0


def forget_compiled(path: Path) -> None:
    """Python knows compiled files by second and size: two faults of one second look the same."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def main() -> None:
    """Measure a room and append the row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("room")
    parser.add_argument("--n", type=int, default=100, help="mutants to try (100)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--processes", type=int, default=2, help="at a time (2)")
    parser.add_argument("--commit", help="name in the row (that of the working tree)")
    parser.add_argument("--source", help="folder of the code (src/giw/ROOM)")
    parser.add_argument("--tests", nargs="*", help="folders or files of tests (tests/ROOM)")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--csv", type=Path, default=REPOSITORY / "tests" / "mutants.csv")
    args = parser.parse_args()
    args.source = args.source or f"src/giw/{args.room}"
    args.tests = args.tests or [f"tests/{args.room}"]
    named = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    commit = args.commit or subprocess.run(named, capture_output=True, text=True).stdout.strip()
    os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in LOADED_ONCE:  # the same for every mutant, and most of the time of a short test
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    tree = copy_of_tree()
    try:
        row = {"room": args.room, "commit": commit, "seed": args.seed}
        row |= measure(args, tree)
    finally:
        shutil.rmtree(tree)
    new = not args.csv.exists()
    with args.csv.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(f"{args.room}: {row['killed']} of {row['tried']} killed")


if __name__ == "__main__":
    main()
