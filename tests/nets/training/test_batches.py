import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.nets.images import Augmentation
from giw.nets.kernels.devices import seeded_stream
from giw.nets.training.step import BatchStream, epoch_batches, hold_out


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 5))
@settings(deadline=None, max_examples=80)
def test_an_epoch_sees_every_row_and_repeats_fewer_than_a_batch(n, batch_size, seed):
    rows = epoch_batches(n, batch_size, torch.Generator().manual_seed(seed))
    assert rows.shape[1] == min(n, batch_size)
    assert set(rows.flatten().tolist()) == set(range(n))
    assert rows.numel() - n < rows.shape[1]
    assert all(len(set(batch.tolist())) == len(batch) for batch in rows[:-1])


def stream(n=20, m=5, batch_size=8, **settings):
    return BatchStream(torch.arange(n), m, batch_size, random_state=0, purpose="test", **settings)


def test_a_small_validation_set_is_seen_whole_in_every_step():
    assert stream(n=24).next_epoch().val.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_a_large_validation_set_is_walked_through_across_epochs():
    batches = stream(n=16, m=20, batch_size=4)  # five validation batches a walk, four an epoch
    first, second = batches.next_epoch(), batches.next_epoch()
    seen = torch.cat([first.val, second.val[:1]])
    assert first.val.shape == (4, 4)
    assert set(seen.flatten().tolist()) == set(range(20))


@pytest.mark.parametrize(("m", "steps"), [(5, 1), (8, 1), (9, 2)])
def test_an_epoch_over_validation_points_has_a_step_for_each_of_their_batches(m, steps):
    whole, short = stream(n=40, m=m), stream(n=40, m=m, over_val=True)
    assert short.next_epoch().train.tolist() == whole.next_epoch().train[:steps].tolist()
    assert len(short.next_epoch().val) == steps


def test_only_the_given_rows_are_drawn():
    rows = torch.tensor([3, 5, 8])
    batches = BatchStream(rows, 0, 2, random_state=0, purpose="test")
    assert set(batches.next_epoch().train.flatten().tolist()) == {3, 5, 8}


def test_a_stream_goes_on_from_its_state():
    moved = Augmentation(rotations=(10.0,))
    batches = stream(n=16, m=20, batch_size=6, augmentation=moved, side=4)
    batches.next_epoch()
    state = batches.state()
    expected = batches.next_epoch()
    again = stream(n=16, m=20, batch_size=6, augmentation=moved, side=4)
    again.load_state(state)
    for part, found in zip(expected, again.next_epoch(), strict=True):
        assert torch.equal(part, found)


def test_augmentation_does_not_change_the_order_of_rows():
    plain, moved = stream(), stream(augmentation=Augmentation(translate=0.1), side=4)
    assert torch.equal(plain.next_epoch().train, moved.next_epoch().train)
    assert torch.equal(plain.next_epoch().train, moved.next_epoch().train)


def test_streams_of_other_purposes_are_other_streams():
    other = BatchStream(torch.arange(20), 5, 8, random_state=0, purpose="other")
    assert not torch.equal(stream().next_epoch().train, other.next_epoch().train)


@pytest.mark.parametrize(
    ("n", "share", "most", "expected"), [(100, 0.2, 50, 20), (100, 0.2, 7, 7), (1, 0.5, 10, 0)]
)
def test_rows_kept_back_are_a_share_up_to_a_limit(n, share, most, expected):
    seen = hold_out(n, share, most, torch.Generator().manual_seed(0))
    assert int((~seen).sum()) == expected


def test_a_seeded_stream_leaves_all_other_streams_alone(monkeypatch):
    """torch.manual_seed reaches every GPU, where nobody would put the old state back."""

    def refuse(seed):
        raise AssertionError("a stream of another device was seeded")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refuse)
    before = torch.random.get_rng_state()
    with seeded_stream(3, torch.device("cpu")):
        first = torch.rand(2)
    with seeded_stream(3, torch.device("cpu")):
        again = torch.rand(2)

    torch.testing.assert_close(first, again, rtol=0, atol=0)
    torch.testing.assert_close(first, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(torch.random.get_rng_state(), before)
