"""Exact neighbours, whatever the block size, and copies that earn nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from giw.support.scorers import knn
from giw.support.scorers.knn import KNN, nearest


def line(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_the_score_is_the_mean_distance_to_the_nearest():
    scorer = KNN(k=2, relative=0).fit(line(0.0, 1.0, 3.0, 7.0))

    assert scorer.score(line(0.5, 8.0)).tolist() == [0.5, 3.0]


def test_one_copy_is_not_a_neighbour():
    """0 is a training point: without its twin the nearest rows are at 1 and 3."""
    reference = line(0.0, 1.0, 3.0, 7.0)

    assert KNN(k=1, relative=0).fit(reference).score(line(0.0)).tolist() == [1.0]
    assert KNN(k=2, relative=0).fit(reference).score(line(0.0)).tolist() == [2.0]


def test_a_copy_also_loses_its_own_say_in_the_local_scale():
    """The score of a training row is that of the same point had the row been left out."""
    rng = np.random.default_rng(0)
    z = torch.from_numpy(rng.normal(size=(2_000, 3)))

    with_twin = KNN(k=5).fit(z).score(z[:1])
    without = KNN(k=5).fit(z[1:]).score(z[:1])

    assert with_twin.item() == pytest.approx(without.item(), rel=0.01)


def test_the_score_is_relative_to_how_dense_training_lies_there():
    """Gaps of 1 here and of 4 there: a point halfway scores d / scale ** relative."""
    reference = line(*range(20), *range(1000, 1080, 4))
    z = line(9.5, 1038.0)

    for relative, ratio in ((0.0, 4.0), (0.5, 2.0), (1.0, 1.0)):
        near, far = KNN(k=2, relative=relative).fit(reference).score(z).tolist()
        assert far / near == pytest.approx(ratio)


def test_further_copies_count():
    """In tables of categories rows repeat, and a frequent row is inside."""
    assert KNN(k=2).fit(line(0.0, 0.0, 0.0, 5.0)).score(line(0.0)).tolist() == [0.0]


def test_repeated_rows_leave_scores_finite():
    scorer = KNN(k=2).fit(line(*[0.0] * 30, *[1.0] * 30))

    assert bool(torch.isfinite(scorer.score(line(0.0, 1.0, 5.0))).all())
    assert scorer.score(line(5.0)) > scorer.score(line(1.0))


def test_fewer_training_rows_than_neighbours():
    assert KNN(k=5, relative=0).fit(line(0.0, 1.0)).score(line(3.0)).tolist() == [2.5]
    assert KNN(k=5, relative=0).fit(line(2.0)).score(line(3.0)).tolist() == [1.0]


def test_unit_norm_compares_directions():
    scorer = KNN(k=1, relative=0, unit_norm=True).fit(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))

    assert scorer.score(torch.tensor([[9.0, 9.0]])).item() == pytest.approx(
        np.sqrt(2 - np.sqrt(2)), rel=1e-6
    )


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 60),
    m=st.integers(1, 20),
    d=st.integers(1, 8),
    k=st.integers(1, 12),
    offset=st.sampled_from([0.0, 1e3]),
    block=st.sampled_from([1, 40, 2**23]),
)
def test_neighbours_agree_with_scikit_learn_in_any_block_size(seed, n, m, d, k, offset, block):
    rng = np.random.default_rng(seed)
    reference, z = rng.normal(offset, 1, (n, d)), rng.normal(offset, 1, (m, d))
    k = min(k, n)
    expected, _ = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(reference).kneighbors(z)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knn, "BLOCK_ELEMENTS", block)
        distance, index = nearest(torch.from_numpy(z), torch.from_numpy(reference), k)

    np.testing.assert_allclose(distance.numpy(), expected, rtol=1e-6, atol=1e-7)
    exact = np.linalg.norm(z[:, None] - reference[index.numpy()], axis=2)
    np.testing.assert_allclose(distance.numpy(), exact, rtol=1e-9)


def test_close_neighbours_far_from_the_origin_keep_their_digits():
    """Expanding the square would leave nothing of a gap of 0.01 at 10,000 in float32."""
    reference = torch.tensor([[1e4, 0.0], [1e4, 0.03], [1e4, 0.3]])

    distance, index = nearest(torch.tensor([[1e4, 0.01]]), reference, 2)

    assert index.tolist() == [[0, 1]]
    np.testing.assert_allclose(distance.numpy(), [[0.01, 0.02]], rtol=1e-5)


def test_no_neighbours_no_score():
    with pytest.raises(ValueError, match="at least 1"):
        KNN(k=0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        KNN(relative=2)
    with pytest.raises(ValueError, match="call fit"):
        KNN().score(line(0.0))


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu():
    generator = torch.Generator().manual_seed(0)
    reference = torch.randn(5_000, 32, generator=generator)
    z = torch.randn(300, 32, generator=generator)

    cpu = KNN().fit(reference).score(z)
    cuda = KNN().fit(reference.cuda()).score(z.cuda())

    assert cuda.device.type == "cuda"
    torch.testing.assert_close(cuda.cpu(), cpu, rtol=1e-4, atol=1e-5)
