"""How large the house is: lines, rooms, numbers, what an import loads, which files a fit walks.

    python tools/house.py
    python tools/house.py --most lines=22000 code=12800 weights=1500 numbers=100

Prints every figure. With ``--most`` each named figure is held against a number; the exit code is
how many are larger. Figures are `lines`, `code`, `files`, `numbers`, `inner_numbers`, the lines of
a room by its name, and `net_fit`, `table_fit`: files that the two fits pass through.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "giw"
ENTRIES = {
    "import giw": "import giw",
    "ReweightedClassifier": "import giw; giw.ReweightedClassifier",
    "GIWClassifier": "import giw; giw.GIWClassifier",
    "giw --help": "import sys; sys.argv = ['giw', '--help']; from giw.cli import app; app()",
}
NEEDED = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "typer", "skops", "torch")
FITS = {
    "net_fit": "giw.GIWClassifier(max_epochs=1, pretrain_epochs=1, random_state=0)",
    "table_fit": "giw.ReweightedClassifier(random_state=0)",
}


@dataclass(frozen=True)
class Count:
    """Lines of one file by kind, and the numbers written down outside of functions."""

    lines: int
    code: int  # neither blank nor comment, docstring or import
    numbers: int  # plain ones, assigned to a name of the module
    inner_numbers: int  # in tuples, dicts, calls and class bodies of the module


def count(path: Path) -> Count:
    """Count one file."""
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    bare = {row for row, line in enumerate(lines, 1) if not line.strip() or line.lstrip()[0] == "#"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bare.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                bare.update(range(first.lineno, (first.end_lineno or 0) + 1))
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    plain = sum(_is_number(value) for value in values)
    inside = sum(_numbers(value) for value in values if not _is_number(value))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inside += sum(
                _numbers(part.value)
                for part in node.body
                if isinstance(part, ast.Assign | ast.AnnAssign)
            )
    return Count(len(lines), len(lines) - len(bare), plain, inside)


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def _numbers(node: ast.expr | None) -> int:
    return 0 if node is None else sum(
        isinstance(part, ast.Constant) and _is_number(part) for part in ast.walk(node)
    )  # fmt: skip


def figures(source: Path = SOURCE) -> dict[str, int]:
    """Totals, and the lines of each room; a file beside the rooms is of the room ``root``."""
    found: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        one, parts = count(path), path.relative_to(source).parts
        found.update(files=1, lines=one.lines, code=one.code)
        found.update(numbers=one.numbers, inner_numbers=one.inner_numbers)
        found[parts[0] if len(parts) > 1 else "root"] += one.lines
    return dict(found)


def loaded_by(code: str, source: Path = SOURCE) -> dict[str, Any]:
    """What a fresh interpreter has loaded after ``code``, and its processor seconds."""
    program = (
        "import atexit, json, sys, time\n"
        "def tell():\n"
        "    names = [m for m in sys.modules if m == 'giw' or m.startswith('giw.')]\n"
        "    heavy = ['torch', 'sklearn', 'pandas', 'matplotlib', 'giw.paper']\n"
        "    found = {'seconds': time.process_time(), 'giw': len(names)}\n"
        "    found['loads'] = [m for m in heavy if m in sys.modules]\n"
        "    print('\\n' + json.dumps(found))\n"
        "atexit.register(tell)\n" + code
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(source.parent), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def files_walked(call: Callable[[], Any], source: Path = SOURCE) -> list[str]:
    """Files of the package in which a function runs during ``call``; imports do not count."""
    found, root = set(), f"{source}{os.sep}"

    def entered(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(root) and code.co_name not in ("<module>", "__getattr__"):
            found.add(code.co_filename.removeprefix(root))

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return sorted(found)


def walked_by_a_fit(model: Any) -> list[str]:
    """Files that fitting a model to two small tables passes through."""
    import numpy as np

    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(120, 3)), rng.normal([2.0, 0.0, 0.0], size=(30, 3))
    return files_walked(lambda: model.fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 1] > 0))


def largest(source: Path = SOURCE, how_many: int = 8) -> list[tuple[int, str]]:
    """Lines and names of the largest files."""
    sizes = [(count(path).lines, str(path.relative_to(source))) for path in source.rglob("*.py")]
    return sorted(sizes, reverse=True)[:how_many]


def too_large(found: dict[str, int], most: dict[str, int]) -> list[str]:
    """A line for every figure above its limit; a room that is gone is no more than nothing."""
    return [
        f"{name}: {found.get(name, 0):,} and at most {limit:,} wanted"
        for name, limit in most.items()
        if found.get(name, 0) > limit
    ]


def measured(source: Path = SOURCE) -> dict[str, int]:
    """Print what imports load and which files fits walk; how many files those are."""
    for name, code in ENTRIES.items():
        told = loaded_by(code, source)
        loads = ", ".join(told["loads"]) or "nothing large"
        print(f"{name}: {told['seconds']:.2f} s of processor time, {told['giw']} files; {loads}")
    sys.path.insert(0, str(source.parent))
    import giw

    found = {}
    for name, made in FITS.items():
        walked = walked_by_a_fit(eval(made, {"giw": giw}))
        found[name] = len(walked)
        print(f"{name}, {made.split('(')[0]}: {len(walked)} files:", *walked)
    return found


def main() -> int:
    """Print it all; how many figures are too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--most", nargs="*", default=[], metavar="FIGURE=NUMBER")
    parser.add_argument("--source", type=Path, default=SOURCE, help="another src/giw to count")
    options = parser.parse_args()
    source = options.source.resolve()
    found = figures(source)
    for name in sorted(found, key=lambda name: -found[name]):
        print(f"{found[name]:>8,}  {name}")
    print("largest files:", *(f"{lines:>8,}  {name}" for lines, name in largest(source)), sep="\n")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"imports and fits are not measured: {sys.executable} lacks {', '.join(missing)}")
    else:
        found |= measured(source)
    complaints = too_large(found, {k: int(v) for k, v in (p.split("=") for p in options.most)})
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return len(complaints)


if __name__ == "__main__":
    sys.exit(main())
