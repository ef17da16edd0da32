"""A Ray dataset walked through as docs/saving.md says, on a real Ray that is started here."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giw

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ray_data():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'giw[ray]'")
    import ray.data

    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=200 * 2**20,
        runtime_env={"env_vars": {"PYTHONPATH": f"{ROOT}/src", "OMP_NUM_THREADS": "1"}},
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray.data
    ray.shutdown()


def chunks_of(ray_data, x):
    dataset = ray_data.from_items([{"a": a, "b": b} for a, b in x], override_num_blocks=7)
    # work on the cluster, so that blocks may finish in any order
    dataset = dataset.map_batches(lambda batch: {**batch, "b": 2 * batch["b"]})
    dataset.context.execution_options.preserve_order = True

    def chunks():
        for batch in dataset.iter_batches(batch_size=900, batch_format="numpy"):
            yield np.stack([batch["a"], batch["b"]], axis=1)

    return chunks


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [giw.ULSIF(), giw.RULSIF()], ids=["ulsif", "rulsif"])
def test_the_ratio_is_that_in_memory(ray_data, estimator):
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(4_000, 2)), rng.normal(size=(300, 2)) + 0.5
    expected = estimator.fit(x * [1, 2], v * [1, 2]).weight_
    found = estimator.fit(chunks_of(ray_data, x), chunks_of(ray_data, v)).weight_
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
