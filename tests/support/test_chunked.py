"""A split calibrated on chunks is the split calibrated on the whole matrix."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import giw
from giw.support import KNN, chunks, rows


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks even of a few rows."""
    monkeypatch.setattr(chunks, "BLOCK", 150)
    monkeypatch.setattr(rows, "BLOCK", 150)


def problem(n=900, m=60, copies=0):
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=n)
    z = rng.normal(size=(n, 4)) + 4 * label[:, None] * [1, 0, 0, 0]
    z[:copies], label[:copies] = z[n - copies :], label[n - copies :]
    z_val = rng.normal(size=(m, 4)) + np.array([4, 0, 0, 0])
    z_val[: m // 3] += [0, 7, 0, 0]
    return z, label, z_val


def both(splitter, z, label, z_val, **calibration):
    whole = splitter.fit(z, label, **calibration).split(z_val)
    pieces = np.split(z, [1, 400, 433])
    labels = None if label is None else np.split(label, [500])
    return whole, splitter.fit(lambda: iter(pieces), labels, **calibration).split(z_val)


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("copies", [0, 40])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scorer": KNN(unit_norm=True)},
        {"calibration": "hold_out"},
        {"cells": "none", "level": 0.1},
    ],
    ids=str,
)
def test_scores_cells_and_p_values_are_those_in_memory(settings, labelled, copies):
    z, label, z_val = problem(copies=copies)
    splitter = giw.SupportSplitter(random_state=0, **settings)
    whole, found = both(splitter, z, label if labelled else None, z_val)

    assert_allclose(found.score, whole.score, rtol=1e-10)
    assert_allclose(found.calibration_score, whole.calibration_score, rtol=1e-10)
    for name in ("cell", "p_value", "inside", "posterior", "train_cell_share"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


def test_calibration_rows_may_be_given():
    z, label, z_val = problem()
    held_out = {"z_calibration": z[::5], "y_calibration": label[::5]}
    whole, found = both(
        giw.SupportSplitter(random_state=0), z[1::5], label[1::5], z_val, **held_out
    )
    assert np.array_equal(found.p_value, whole.p_value)


def test_neighbours_in_chunks_are_those_in_memory():
    z = torch.as_tensor(problem()[0])
    from giw.support.scorers.knn import nearest

    pieces = chunks.as_chunks([z[:7], z[7:800], z[800:]], "z")
    for expected, found in zip(nearest(z[:99], z, 6), nearest(z[:99], pieces, 6), strict=True):
        assert torch.equal(expected, found)


@pytest.mark.parametrize("settings", [{"scorer": "osvm"}, {"same_label": True}])
def test_other_scorers_need_everything_in_memory(settings):
    z, label, _ = problem()
    with pytest.raises(ValueError, match="chunks are for scorer='knn'"):
        giw.SupportSplitter(**settings).fit([z], label)
