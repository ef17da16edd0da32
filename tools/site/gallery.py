"""The gallery: each program of examples/ as a page with what it prints and draws.

    python tools/site/gallery.py                  run all programs, write docs/gallery/
    python tools/site/gallery.py time_drift       run one of them

A program is plain Python. Its docstring is the title and the first words of the page; a line
``# %%`` begins a cell, and comment lines right below it are text. What a cell prints and the
figures that it leaves open stand below it. Programs whose libraries
are missing are left as they are.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs" / "gallery"
MARK = "# %%"
# in the order of the page; beside each what must be installed
GALLERY = {
    "new_category": (),
    "noisy_labels": (),
    "class_mix": (),
    "time_drift": (),
    "another_hospital": (),
    "regression": (),
    "no_target_labels": (),
    "few_labels": (),
    "plain_pytorch_loop": ("torch",),
    "lightning_module": ("torch", "lightning"),
    "hugging_face_trainer": ("torch", "transformers", "accelerate"),
    "lightgbm_grid_search": ("lightgbm",),
    "when_not_to_use": (),
}


@dataclass
class Cell:
    """A piece of a program: text, code, and what came of it."""

    text: str
    code: str
    printed: str = ""
    figures: list[str] = field(default_factory=list)


def title_of(name: str) -> str:
    """The first line of a program's docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))) or name
    return text.splitlines()[0].rstrip(".")


def parsed(program: str) -> tuple[str, list[Cell]]:
    """The docstring, and the cells below it."""
    docstring = ast.parse(program).body[0]
    lines = program.splitlines()
    cells = []
    for part in "\n".join(["", *lines[docstring.end_lineno :]]).split(f"\n{MARK}\n"):
        rows = part.strip("\n").splitlines()
        words = 0
        while cells and words < len(rows) and rows[words].startswith("#"):
            words += 1  # before the first mark a comment is code
        text = "\n".join(row.removeprefix("#").removeprefix(" ") for row in rows[:words])
        cells.append(Cell(text, "\n".join(rows[words:]).strip("\n")))
    return ast.get_docstring(ast.parse(program)) or "", [c for c in cells if c.text or c.code]


def executed(path: Path) -> tuple[str, list[Cell]]:
    """Run a program cell by cell in this process, with figures in the look of the library."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    words, cells = parsed(path.read_text("utf-8"))
    look(plt)
    module = types.ModuleType("__main__")
    sys.modules["__main__"], sys.argv = module, [str(path)]
    for number, cell in enumerate(cells):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; a program's own words are printed
            code = compile("from __future__ import annotations\n" + cell.code, str(path), "exec")
            exec(code, module.__dict__)
        cell.printed = "\n".join(line.rstrip() for line in said.getvalue().splitlines())
        for figure in map(plt.figure, plt.get_fignums()):
            cell.figures.append(drawn(figure, f"{path.stem}-{number}-{len(cell.figures)}-"))
        plt.close("all")
    return words, cells


def look(plt: object) -> None:
    """Figures as narrow as a phone, without a box, in colours for light and dark pages."""
    from cycler import cycler

    from giw.pages.style import BLUE, GREEN, GREY, INK, LINE, PINK, VERMILION

    plt.rcParams.update(  # type: ignore[attr-defined]
        {
            "figure.figsize": (5.0, 2.8), "figure.constrained_layout.use": True,
            "font.size": 10, "axes.titlesize": 10, "axes.titlelocation": "left",
            "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
            "axes.grid": True, "axes.axisbelow": True, "grid.color": LINE, "grid.linewidth": 0.7,
            "xtick.major.size": 0, "ytick.major.size": 0, "legend.frameon": False,
            "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
            "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
            "axes.prop_cycle": cycler(color=[VERMILION, BLUE, GREEN, PINK, GREY]),
        }
    )  # fmt: skip


def drawn(figure: object, prefix: str) -> str:
    """A figure as one line of SVG that takes the colours of the page."""
    from giw.pages.figures import svg_bytes
    from giw.pages.page import inline_svg

    axes = figure.axes[0]  # type: ignore[attr-defined]
    said = [axes.get_title(loc="left") or axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
    svg = inline_svg(svg_bytes(figure), alt=". ".join(filter(None, said)), prefix=prefix)  # type: ignore[arg-type]
    return " ".join(svg.split())


def page(name: str, words: str, cells: list[Cell]) -> str:
    """A page in Markdown."""
    title, _, rest = words.partition("\n")
    parts = [
        f"# {title.rstrip('.')}", rest.strip(),
        f"*One program, `examples/{name}.py`, with what it printed; `make gallery` runs it again.*",
    ]  # fmt: skip
    for cell in cells:
        parts += [cell.text] if cell.text else []
        parts += [f"```python\n{cell.code}\n```"] if cell.code else []
        parts += [f"```{{.text .printed}}\n{cell.printed}\n```"] if cell.printed else []
        parts += [f'<figure class="plot" markdown="0">{svg}</figure>' for svg in cell.figures]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """The list of all pages, each with the first sentence below its title."""
    lines = []
    for name in GALLERY:
        words, _ = parsed((EXAMPLES / f"{name}.py").read_text("utf-8"))
        first = words.split("\n\n")[1].replace("\n", " ")
        lines.append(f"- [{title_of(name)}]({name}.md). {first}")
    intro = (
        "Thirteen programs on data that come with giw or scikit-learn. Each has beside it what one "
        "would try without giw, and says which was better."
    )
    return "\n".join(["# Gallery", "", intro, "", *lines, ""])


def missing(name: str) -> list[str]:
    """Libraries of a program that are not installed."""
    return [need for need in GALLERY[name] if importlib.util.find_spec(need) is None]


def main(argv: list[str]) -> None:
    """Each program in a process of its own."""
    if argv[:1] == ["--here"]:
        name = argv[1]
        words, cells = executed(EXAMPLES / f"{name}.py")
        folder = Path(argv[2]) if argv[2:] else PAGES
        (folder / f"{name}.md").write_text(page(name, words, cells), "utf-8")
        return
    PAGES.mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in argv or GALLERY:
        if missing(name):
            print(f"{name}: left as it is, needs {', '.join(missing(name))}")
            continue
        began = os.times()
        subprocess.run([sys.executable, __file__, "--here", name], check=True, env=env)
        ended = os.times()
        spent = ended.children_user - began.children_user
        print(f"{name}: {spent:.0f} s of processor time", flush=True)
    (PAGES / "index.md").write_text(index(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
