import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.training.batches import epoch_batches, hold_out, validation_batches


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 5))
@settings(deadline=None, max_examples=80)
def test_an_epoch_sees_every_row_and_repeats_fewer_than_a_batch(n, batch_size, seed):
    rows = epoch_batches(n, batch_size, torch.Generator().manual_seed(seed))
    assert rows.shape[1] == min(n, batch_size)
    assert set(rows.flatten().tolist()) == set(range(n))
    assert rows.numel() - n < rows.shape[1]
    assert all(len(set(batch.tolist())) == len(batch) for batch in rows[:-1])


def test_a_small_validation_set_is_seen_whole_in_every_step():
    batches = validation_batches(5, 8, torch.Generator().manual_seed(0))
    assert [next(batches).tolist() for _ in range(3)] == [[0, 1, 2, 3, 4]] * 3


def test_a_large_validation_set_is_walked_through():
    batches = validation_batches(10, 4, torch.Generator().manual_seed(0))
    seen = torch.cat([next(batches) for _ in range(3)])
    assert set(seen.tolist()) == set(range(10))
    assert len(next(batches)) == 4


@pytest.mark.parametrize(
    ("n", "share", "most", "expected"), [(100, 0.2, 50, 20), (100, 0.2, 7, 7), (1, 0.5, 10, 0)]
)
def test_rows_kept_back_are_a_share_up_to_a_limit(n, share, most, expected):
    seen = hold_out(n, share, most, torch.Generator().manual_seed(0))
    assert int((~seen).sum()) == expected
