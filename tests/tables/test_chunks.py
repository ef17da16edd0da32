import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.tables import chunks as module
from giw.tables.chunks import Chunks, as_chunks


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 7), st.data())
def test_blocks_and_picked_rows_do_not_depend_on_the_pieces(sizes, block, data):
    n = sum(sizes)
    if n == 0:
        return
    x = rows(n)
    index = np.array(data.draw(st.permutations(range(n))))[: n // 2 + 1]
    pieces = np.split(x, np.cumsum(sizes)[:-1])
    old, module.BLOCK = module.BLOCK, block
    try:
        found = list(Chunks(lambda: pieces, "x"))
        picked = Chunks(lambda: pieces, "x").rows(index)
    finally:
        module.BLOCK = old

    expected = [x[start : start + block] for start in range(0, n, block)]
    assert len(found) == len(expected)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert np.array_equal(picked, x[index])


def test_what_is_taken_for_pieces_and_what_is_not():
    torch = pytest.importorskip("torch")
    x = rows(4)
    for array in (x, torch.as_tensor(x), x.tolist(), [1.0, 2.0], list(x)):
        assert as_chunks(array, "x") is None
    for pieces in ([x, x], (torch.as_tensor(x),), lambda: iter([x, x]), Chunks(lambda: [x], "x")):
        assert len(as_chunks(pieces, "x")) % 4 == 0


def test_an_iterator_is_refused_because_it_ends():
    with pytest.raises(ValueError, match="only once; pass a function"):
        as_chunks(iter([rows(2)]), "x_train")


def test_a_function_that_forgets_rows_is_found_out():
    left = [rows(5), rows(4)]
    chunks = Chunks(lambda: [left.pop(0)], "x_train")
    assert len(chunks) == 5
    with pytest.raises(ValueError, match="4 rows where 5 were expected"):
        list(chunks)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([], "x_train is empty"),
        ([rows(2, 2), rows(2, 3)], "piece 1 has 3 features and the first one 2"),
        ([np.array([[np.nan]])], "piece 0, holds 1 NaN"),
    ],
)
def test_bad_pieces_are_named(pieces, words):
    with pytest.raises(ValueError, match=words):
        list(Chunks(lambda: pieces, "x_train"))
