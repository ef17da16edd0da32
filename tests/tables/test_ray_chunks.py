"""Ray Data on a real Ray, started here."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giw
from giw.tables import ray_chunks, ray_column

ROOT = Path(__file__).parents[2]


def test_what_is_no_dataset_is_refused():
    with pytest.raises(ValueError, match=r"need a ray\.data\.Dataset, got ndarray"):
        ray_chunks(np.zeros((2, 2)), ["a"])


@pytest.fixture(scope="module")
def datasets():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'giw[ray]'")
    import ray.data

    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=200 * 2**20,
        runtime_env={"env_vars": {"PYTHONPATH": f"{ROOT}/src", "OMP_NUM_THREADS": "1"}},
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(4_000, 2)), rng.normal(size=(300, 2)) + 0.5
    label = (x[:, 0] > 0).astype(int)

    def dataset(z, y):
        items = [{"a": a, "b": b, "y": int(c)} for (a, b), c in zip(z, y, strict=True)]
        found = ray.data.from_items(items, override_num_blocks=7)
        # work on the cluster, so that blocks may finish in any order
        return found.map_batches(lambda batch: {**batch, "b": 2 * batch["b"]})

    scaled = [z * [1, 2] for z in (x, v)]
    yield dataset(x, label), dataset(v, np.zeros(len(v))), *scaled, label
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [giw.ULSIF(), giw.RULSIF()], ids=["ulsif", "rulsif"])
def test_the_ratio_is_that_in_memory(datasets, estimator):
    train, val, x, v, _ = datasets
    expected = estimator.fit(x, v).weight_
    found = estimator.fit(*(ray_chunks(d, ["a", "b"], batch_rows=900) for d in (train, val)))
    assert_allclose(found.weight_, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_column_of_labels_is_read_whole(datasets):
    assert np.array_equal(ray_column(datasets[0], "y"), datasets[4])


@pytest.mark.slow
def test_a_column_that_is_not_there_is_named(datasets):
    with pytest.raises(ValueError, match=r"no columns \['age'\]; it has \['a', 'b', 'y'\]"):
        ray_chunks(datasets[0], ["age"])
