"""What works without torch, walked through: the rooms below the nets and the commands for tables.

    .venv-core/bin/python tools/without_torch.py   # where torch is not installed: make smoke
    python tools/without_torch.py --hide           # where it is, and every import of it is refused

Each step prints a line with its seconds of processor time. The first failure ends it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

NETS_ONLY = ("GIWClassifier", "GIWObjective")  # public names that say that they need torch
EXTRA = ("torch", "safetensors", "triton")


class Hidden(MetaPathFinder):
    """Finds everything but what ``giw[torch]`` brings, as if that were not installed."""

    find_distributions = staticmethod(
        PathFinder.find_distributions
    )  # versions of installed packages

    def __init__(self, finders: Sequence[Any]) -> None:
        self.finders = tuple(finders)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Where a module is, or None."""
        if name.split(".")[0] in EXTRA:
            return None
        specs = (finder.find_spec(name, path, target) for finder in self.finders)
        return next((spec for spec in specs if spec is not None), None)


def hide() -> None:
    """Let nobody find torch from here on."""
    sys.meta_path[:] = [Hidden(sys.meta_path)]


def two_tables(n: int, m: int) -> tuple[Any, Any, Any, Any]:
    """Training and validation rows with a number, a town and a gap; a third of the latter new."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)

    def side(rows: int, new: int) -> tuple[Any, Any]:
        x = rng.normal(size=(rows, 2))
        y = np.where(x[:, 0] > 0, "yes", "no")
        town = rng.choice(["Rome", "Oslo"], rows).astype(object)
        x[:new] += 8
        town[:new] = "Lima"
        frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "town": town})
        frame.loc[frame.index[-2:], "b"] = np.nan
        return frame, y

    return *side(n, 0), *side(m, m // 3)


def the_package() -> None:
    """``import giw`` loads neither torch nor scikit-learn."""
    import giw

    assert giw.__version__
    loaded = [name for name in (*EXTRA, "sklearn", "pandas", "giw.paper") if sys.modules.get(name)]
    assert not loaded, f"import giw loads {loaded}"


def the_help() -> None:
    """``giw --help`` imports no room."""
    from typer.testing import CliRunner

    from giw.cli import app

    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
    rooms = sorted(m for m in sys.modules if m.count(".") == 1 and m.startswith("giw."))
    assert set(rooms) <= {"giw.cli", "giw.checks", "giw.writing"}, rooms


def nets() -> None:
    """They say what they need in one line."""
    import giw

    for name in NETS_ONLY:
        said = ""
        try:
            getattr(giw, name)
        except ImportError as error:
            said = str(error)
        assert said == f"giw.{name} needs torch: pip install 'giw[torch]'", said


def tables() -> None:
    """Files are read, sampled and encoded."""
    import numpy as np

    from giw.tables import Encoder, read_table, sample_file

    X, y, X_val, _ = two_tables(300, 60)
    encoder = Encoder().fit(X, X_val)
    assert (encoder.level_counts(X_val)[:, 2] == 0).sum() == 20
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "parquet"):
            path = Path(folder) / f"t.{ending}"
            frame = X.assign(y=y)
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
            table = read_table(path)
            assert np.allclose(encoder.transform(table), encoder.transform(X))
            assert sample_file(path, 20, label="y").total == 300


def pages() -> None:
    """A table of results and a figure are drawn."""
    from giw.pages.figures import new_figure
    from giw.pages.tables import summarize, text_table

    runs = {"GIW": [0.9, 0.8, 0.9], "plain": [0.7, 0.8, 0.7]}
    assert "GIW" in text_table(summarize(runs))
    new_figure()


def weights() -> None:
    """Every estimator of the ratio, by its function."""
    import numpy as np

    import giw

    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(200, 2)), rng.normal(0.5, 1, size=(50, 2))
    for name in ("kmm", "kliep", "lsif", "ulsif", "rulsif", "classifier_ratio"):
        weight = getattr(giw, name)(x, v)
        assert isinstance(weight, np.ndarray)
        assert 0 < giw.effective_sample_size(weight) <= 200


def support() -> None:
    """Far rows are outside."""
    import giw
    from giw.tables import Encoder

    X, _, X_val, _ = two_tables(300, 60)
    encoder = Encoder().fit(X, X_val)
    z, z_val = encoder.transform(X), encoder.transform(X_val)
    split = giw.SupportSplitter(random_state=0).fit(z).split(z_val)
    assert not split.inside[:20].any()
    assert split.inside[20:].mean() > 0.8


def estimators() -> None:
    """Fitted, saved, loaded."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import giw

    X, y, X_val, y_val = two_tables(300, 60)
    numbers = make_column_transformer(
        (SimpleImputer(), ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["town"])
    )
    model = giw.ReweightedClassifier(make_pipeline(numbers, LogisticRegression()), random_state=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        assert (giw.load(Path(folder) / "model").predict(X) == model.predict(X)).all()


def judging() -> None:
    """The risk of a fitted model."""
    from sklearn.linear_model import LogisticRegression

    import giw

    X, y, X_val, y_val = two_tables(300, 60)
    model = LogisticRegression().fit(X[["a"]], y)
    found = giw.estimate_risk(model, X[["a"]], y, X_val[["a"]], y_val, random_state=0)
    assert 0 <= found.interval[0] <= found.estimate <= found.interval[1] <= 1


def diagnosis() -> None:
    """What has shifted, with a page."""
    import giw

    X, y, X_val, y_val = two_tables(300, 60)
    found = giw.diagnose(X, y, X_val, y_val)
    assert 0.1 < found.outside < 0.6
    with tempfile.TemporaryDirectory() as folder:
        found.to_html(Path(folder) / "page.html")


def commands() -> None:
    """``giw diagnose``, ``giw fit`` and ``giw predict`` on csv files; a net says what it needs."""
    from typer.testing import CliRunner

    from giw.cli import app

    def run(*words: object, code: int = 0) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == code, (words, result.output, result.exception)
        return result.stdout if code == 0 else result.output

    X, y, X_val, y_val = two_tables(300, 60)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, val, model = folder / "train.csv", folder / "val.csv", folder / "model"
        X.assign(y=y).to_csv(train, index=False)
        X_val.assign(y=y_val).to_csv(val, index=False)
        fit = ("fit", train, val, "--label", "y", "--out", model)
        assert json.loads(run("diagnose", train, val, "--label", "y", "--json"))["outside"] > 0.1
        run(*fit, "--model", "logistic", "--quiet")
        run("predict", model, val, "-o", folder / "p.csv", "--quiet")
        assert len((folder / "p.csv").read_text().splitlines()) == 61
        assert "pip install 'giw[torch]'" in run(*fit, "--model", "net", code=2)


STEPS: tuple[Callable[[], None], ...] = (
    the_package, the_help, nets, tables, pages, weights, support, estimators, judging, diagnosis,
    commands,
)  # fmt: skip


def main() -> None:
    """Every step, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which steps; all if none is named")
    parser.add_argument("--hide", action="store_true", help="refuse to import torch")
    chosen = parser.parse_args()
    if chosen.hide:
        hide()
    warnings.simplefilter("ignore", UserWarning)
    for step in STEPS:
        if chosen.names and step.__name__ not in chosen.names:
            continue
        started = time.process_time()
        step()
        loaded = [name for name in EXTRA if sys.modules.get(name)]
        assert not loaded, f"{step.__name__} loads {loaded}"
        print(f"{step.__name__:<12}{time.process_time() - started:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
