"""What a call leaves behind, and what the calls beside it change: nothing."""

import gc
import os
import random
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import giw

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(300, 5)), RNG.normal(size=(40, 5)) + 0.5
Y, Y_VAL = (X[:, 0] + X[:, 1] ** 2 > 0).astype(int), (X_VAL[:, 0] > 0).astype(int)
IMAGES = RNG.normal(size=(60, 1, 8, 8)).astype(np.float32)


# dropout draws from the one stream that torch has for all threads
NET = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))


def linear(seed):
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=seed, n_folds=2)
    return clf.fit(X, Y, X_VAL, Y_VAL).predict_proba(X)


def trees(seed):
    return giw.ReweightedClassifier(random_state=seed, n_folds=2).fit(X, Y, X_VAL, Y_VAL).weight_


def net_with_dropout(seed):
    clf = giw.GIWClassifier(NET, max_epochs=3, random_state=seed)
    single = X.astype(np.float32)
    return clf.fit(single, Y, X_val=X_VAL.astype(np.float32), y_val=Y_VAL).predict_proba(single)


def net_on_images(seed):
    clf = giw.GIWClassifier(max_epochs=2, random_state=seed)
    return clf.fit(IMAGES, Y[:60], X_val=IMAGES[:16], y_val=Y[:16]).predict_proba(IMAGES)


def split(seed):
    return giw.SupportSplitter(random_state=seed).fit(X, Y).split(X_VAL, Y_VAL).p_value


def page(seed):
    found = giw.diagnose(X, Y, X_VAL, Y_VAL, random_state=seed)
    return np.frombuffer(found._repr_html_().encode(), dtype=np.uint8)


def risk(seed):
    model = LogisticRegression().fit(X, Y)
    return giw.estimate_risk(model, X, Y, X_VAL, Y_VAL, random_state=seed).estimate


def kmm(seed):
    return giw.kmm(X, X_VAL)


CALLS = [linear, trees, net_with_dropout, net_on_images, split, page, risk, kmm]


def state():
    """Whatever in this process belongs to the caller."""
    name, words, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "numpy": (name, words.tobytes(), *rest),
        "random": random.getstate(),
        "torch": torch.get_rng_state().numpy().tobytes(),
        "threads of torch": torch.get_num_threads(),
        "threads of libraries": sorted(
            (p["filepath"], p["num_threads"]) for p in threadpool_info()
        ),
        "running": threading.active_count(),
        "warnings": list(warnings.filters),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "numpy's errors": np.geterr(),
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "matplotlib": dict(matplotlib.rcParams),
        "pandas": pd.get_option("display.max_rows"),
    }


@pytest.mark.parametrize("call", CALLS)
def test_nothing_of_the_process_is_changed(call):
    call(0)  # what is loaded only once is loaded now
    before = state()
    call(1)
    after = state()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize("call", [linear, net_with_dropout, net_on_images, split])
def test_fits_in_threads_give_what_one_gives_alone(call):
    seeds = (0, 1, 0, 1)
    alone = [call(seed) for seed in seeds]
    stream = torch.get_rng_state()
    with ThreadPoolExecutor(len(seeds)) as pool:
        beside = list(pool.map(call, seeds))
    np.testing.assert_array_equal(beside, alone)
    assert call is split or not np.array_equal(alone[0], alone[1])
    assert torch.equal(torch.get_rng_state(), stream)


@pytest.mark.slow
def test_fits_in_worker_processes_give_what_one_gives_alone():
    jobs = [(call, seed) for call in (linear, trees, net_with_dropout) for seed in (0, 1)]
    alone = [call(seed) for call, seed in jobs]
    beside = joblib.Parallel(n_jobs=2)(joblib.delayed(call)(seed) for call, seed in jobs)
    for found, right in zip(beside, alone, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("call", CALLS)
def test_two_threads_give_what_one_gives(call):
    """Bit for bit; ratios by themselves sum in another order, which docs/reliability.md says."""
    found, before = {}, torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            found[threads] = call(0)
    torch.set_num_threads(before)
    if call is kmm:
        np.testing.assert_allclose(found[2], found[1], atol=1e-6)
    else:
        np.testing.assert_array_equal(found[2], found[1])


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def megabytes():
    gc.collect()
    statm = Path("/proc/self/statm").read_text().split()
    return int(statm[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is asked of /proc")
@pytest.mark.parametrize("fits", [20, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", [linear, net_with_dropout, split])
def test_memory_and_open_files_stay_flat_over_many_fits(call, fits):
    for seed in range(10):
        call(seed)
    files, memory, threads = descriptors(), megabytes(), threading.active_count()
    for seed in range(fits):
        call(seed)
    assert len(descriptors()) == len(files)
    assert threading.active_count() == threads
    assert megabytes() - memory < 20
