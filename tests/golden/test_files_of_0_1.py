"""Files that version 0.1.0 wrote are read, or refused in one line with the way out."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import giw
from giw.paper.rows import Store

FILES = Path(__file__).parent / "files_of_0.1"


@pytest.mark.parametrize("name", ["net", "reweighted_classifier", "reweighted_regressor"])
def test_a_model_of_0_1_is_refused_with_the_way_out(name):
    words = r"written by giw '0\.1.*' in format 1, and giw .* reads format 2: fit the model again"
    with pytest.raises(ValueError, match=words) as told:
        giw.load(FILES / "models" / name)
    assert "\n" not in str(told.value)


def test_a_checkpoint_of_0_1_is_refused_and_stays(tmp_path):
    path = shutil.copy(FILES / "checkpoint", tmp_path)
    rng = np.random.default_rng(0)
    X, X_val = (rng.normal(size=(n, 3)).astype(np.float32) for n in (60, 16))
    clf = giw.GIWClassifier(
        torch.nn.Linear(3, 2), max_epochs=6, pretrain_epochs=2, batch_size=16, random_state=0
    )
    data = {"X_val": X_val, "y_val": X_val[:, 0] > 0}

    with pytest.raises(ValueError, match=r"is no checkpoint .* by this version; .*another") as told:
        clf.fit(X, X[:, 0] > 0, **data, checkpoint=path)

    assert "\n" not in str(told.value)
    assert Path(path).read_bytes() == (FILES / "checkpoint").read_bytes()


def test_results_of_0_1_are_read_with_their_figures(tmp_path):
    shutil.copy(FILES / "mnist-iii-support.jsonl", tmp_path)

    good, bad = Store(tmp_path).read_all()

    assert bad == []
    assert [result.run.method for result in good] == ["ccsa", "ccsa"]
    assert [result.run.trial for result in good] == [0, 1]
    assert good[0].curve[:3].tolist() == [0.8552, 0.8875, 0.8976]
    assert good[0].about["giw"].startswith("0.1")
