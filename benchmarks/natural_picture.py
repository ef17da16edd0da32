"""The README's table and picture of natural shifts, from the stored cells of benchmarks/natural.py.

    python benchmarks/natural_picture.py    prints the table, writes it into README.md, draws
                                            docs/images/natural.png

Only files by which no setting was chosen. A cell is a task, a number of validation rows and a base;
"below the best" is measured against the best of the four simple ways in that cell, in hindsight.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from giw.pages.figures import new_figure, png_bytes
from giw.pages.style import BLUE, GREY, INK, LINE, VERMILION
from giw.writing import write_whole
from natural_tasks import REPORT

ROOT = Path(__file__).resolve().parents[1]
WAYS = {
    "stack": "**giw**",
    "both tables": "both tables in one",
    "balanced": "both, half the weight each",
    "validation": "validation alone",
    "training": "training alone",
    "weighted by features": "weighted by features",
    "recalibrated": "training, recalibrated",
    "chosen by left-out loss": "the best by cross-validation",
}
BASES = {"trees": "boosted trees", "logistic": "logistic regression"}
MARK = "<!-- printed by benchmarks/natural_picture.py -->\n"
LOWEST = -20  # points; what lies below is drawn there


def main() -> None:
    """Print and draw."""
    cells = pd.read_csv(ROOT / "results" / "natural.csv")
    cells = cells[(cells["shift"] == "natural") & cells["file"].isin(REPORT) & cells["classifies"]]
    found = {
        base: cells[cells["base"] == base].set_index(["task", "n_val", "way"]) for base in BASES
    }
    kinds = set(cells["way"])
    shown = {way: name for way, name in WAYS.items() if way in kinds}
    sizes = {base: len(rows.xs("stack", level="way")) for base, rows in found.items()}
    heads = [f"{name}, accuracy | worst cell | log-loss" for name in BASES.values()]
    lines = [f"|  | {' | '.join(heads)} |", f"| --- | {' | '.join(['---'] * 3 * len(BASES))} |"]
    for way, name in shown.items():
        line = []
        for rows in found.values():
            of = rows.xs(way, level="way")
            line += [f"{of['score'].mean():.1f}", f"{of['regret'].min():+.1f}"]
            line += [f"{of['loss'].mean():.3f}"]
        lines.append(f"| {' | '.join([name, *(cell.replace('-', '−') for cell in line)])} |")
    counted = " and ".join(f"{size} cells of {BASES[base]}" for base, size in sizes.items())
    table = "\n".join([f"{counted}:", "", *lines, ""])
    print(table)
    page = (ROOT / "README.md").read_text("utf-8")
    before, _, rest = page.partition(MARK)
    write_whole(ROOT / "README.md", before + MARK + table + MARK + rest.partition(MARK)[2])

    figure, axes = new_figure(height=4.6)
    figure.set_size_inches(8.0, 4.6)
    rng = np.random.default_rng(0)
    for row, way in enumerate(reversed(shown)):
        for base, shift in (("trees", 0.16), ("logistic", -0.16)):
            regret = np.maximum(found[base].xs(way, level="way")["regret"], LOWEST)
            color = VERMILION if way == "stack" else BLUE if base == "trees" else GREY
            height = row + shift + rng.uniform(-0.08, 0.08, len(regret))
            axes.plot(regret, height, "o" if base == "trees" else "x", color=color, ms=4, alpha=0.7)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(range(len(shown)), [name.strip("*") for name in reversed(shown.values())])
    axes.grid(axis="x", color=LINE, linewidth=0.7)
    axes.set_xlabel("points of accuracy above the best simple way of the cell")
    axes.set_title("● boosted trees   × logistic regression", loc="right", fontsize=12, color=INK)
    write_whole(ROOT / "docs" / "images" / "natural.png", png_bytes(figure, dpi=130))


if __name__ == "__main__":
    main()
