"""Every cell of the grid and of its ablations trains; what comes out is judged elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from tests.paper import tiny_grid

from giw.paper import run as runner_module
from giw.paper.plan import PAPER_METHODS, Job, Run, group, plan
from giw.paper.run import Runner
from giw.paper.settings import SHIFTS
from giw.paper.shifts import Sample
from giw.paper.variants import SPLIT_GIW

OF_GIW = (
    *("oracle", "out_to_in_0.3", "in_to_out_0.7", "osvm_code", "osvm_text", "soft", "input"),
    *("fc1", "hidden", "paper_bandwidth", "median_bandwidth", "level_0.1"),
    *("osvm_code+paper_bandwidth", "oracle+wide_net", "wide_net", "all_rows+osvm_text"),
)
NOISY = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["label_noise_0.2"]}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """One epoch of pretraining and no augmentation: nothing here is about accuracy."""
    config_of = runner_module.config_of

    def short_config(run):
        return replace(config_of(run), augmentation=None, pretrain_epochs=1)

    monkeypatch.setattr(runner_module, "config_of", short_config)


def check(runner, job):
    (done,) = runner.run(job)
    assert done.curve.shape == (1,), job.name
    assert 0 <= done.curve[0] <= 1, job.name
    return done


@pytest.mark.parametrize("protocol", ["honest", "published", "authors"])
def test_every_variant_of_giw(protocol):
    small = Runner(tiny_grid.SAMPLES)
    choice = {"methods": ["giw"], "protocols": [protocol], "trials": 1, "epochs": 1}
    for variant in OF_GIW:
        (job,) = group(plan(**NOISY, **choice, variants=[variant]))
        assert check(small, job).split, job.name


def test_every_method_at_other_sizes_and_diw_from_the_hidden_layer():
    small = Runner(tiny_grid.SAMPLES)
    jobs = group(plan(**NOISY, variants=["n_val_10", "n_train_100"], trials=1, epochs=1))
    assert len(jobs) == len(PAPER_METHODS)
    for job in jobs:
        check(small, job)
    check(small, Job((Run("mnist", "iii", "support", "diw", 0, variant="hidden", epochs=1),)))


@pytest.mark.parametrize("case", ["iii", "iv"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_giw_under_every_shift(case, shift):
    small = Runner(tiny_grid.SAMPLES)
    check(small, Job((Run("mnist", case, shift, "giw", 0, epochs=1),)))
    if shift.startswith("class_prior"):
        assert check(small, Job((Run("mnist", case, shift, SPLIT_GIW, 0, epochs=1),))).split


@pytest.mark.slow
@pytest.mark.parametrize("method", PAPER_METHODS)
def test_every_method_on_cifar20(method):
    """Nets with batch normalisation go another way through training."""
    rng = np.random.default_rng(0)

    def pool(each):
        fine = np.repeat(np.arange(100), each)
        x = rng.integers(0, 256, size=(len(fine), 3, 32, 32), dtype=np.uint8)
        return Sample(x, fine % 20, fine, classes=tuple(map(str, range(20))))

    run = Run("cifar20", "iii", "support", method, 0, variant="n_val_100", epochs=1)
    check(Runner((pool(2), pool(1))), Job((run,)))
