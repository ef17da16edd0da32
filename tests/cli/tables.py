"""A command as a person runs it, and small tables: a third of the validation rows is new."""

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from giw.cli import app


def run(*arguments, **environment):
    """What ``giw ARGUMENTS`` prints, and its exit code."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, words, env={"COLUMNS": "200", "NO_COLOR": "1", **environment})


def write_tables(folder: Path, n: int = 150, m: int = 45) -> tuple[Path, Path]:
    """``train.csv`` and ``val.csv`` with a number, a category, gaps, and the label ``y``."""
    import pandas as pd

    rng = np.random.default_rng(0)

    def side(rows: int, new: int) -> pd.DataFrame:
        x, town = rng.normal(size=rows), rng.choice(["Rome", "Oslo"], rows).astype(object)
        label = np.where(x > 0, "yes", "no")
        income = rng.normal(size=rows)
        income[rng.random(rows) < 0.1] = np.nan
        x[:new] += 8
        town[:new] = "Lima"
        return pd.DataFrame({"x": x, "town": town, "income": income, "y": label})

    paths = folder / "train.csv", folder / "val.csv"
    for path, frame in zip(paths, (side(n, 0), side(m, m // 3)), strict=True):
        frame.to_csv(path, index=False)
    return paths
