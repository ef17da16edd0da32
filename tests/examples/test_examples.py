"""The worked examples run, and GIW is of use in them."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def test_a_loop_of_ones_own():
    found = example("plain_pytorch_loop").main(["--epochs", "15"])
    assert found["GIW"] > found["training data alone"] + 0.05


def test_a_lightning_module():
    pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
    assert example("lightning_module").main(["--epochs", "15"]) > 0.8


def test_hugging_faces_trainer():
    pytest.importorskip("transformers", reason="not installed: pip install transformers accelerate")
    found = example("hugging_face_trainer").main(["--epochs", "10"])
    assert found["GIW"] > found["training data alone"] + 0.05


@pytest.mark.parametrize("trees", ["sklearn", "lightgbm", "xgboost"])
def test_boosted_trees_in_a_pipeline(trees):
    if trees != "sklearn":
        pytest.importorskip(trees, reason=f"{trees} is not installed: pip install {trees}")
    found = example("boosted_trees_pipeline").main(["--trees", trees])
    assert found["GIW"] > found["plain"] + 0.1
