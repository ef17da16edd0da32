"""A pickle is read and never run."""

import os
import pickle
import tracemalloc

import numpy as np
import pytest
from tests.paper.written_files import cifar_arrays, python2_pickle

from giw.paper.safe_pickle import load_arrays


class Runs:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_file_that_asks_for_a_function_is_refused_and_nothing_runs(tmp_path, protocol):
    target = tmp_path / "made"
    raw = pickle.dumps({"data": Runs(os.mkdir, str(target))}, protocol=protocol)

    with pytest.raises(ValueError, match=r"mkdir, which is not allowed"):
        load_arrays(raw, "file")
    assert not target.exists()


def test_numpy_names_beyond_the_few_are_refused_too():
    raw = pickle.dumps({"data": Runs(np.zeros, (3,))}, protocol=2)
    with pytest.raises(ValueError, match="zeros, which is not allowed"):
        load_arrays(raw, "file")


def test_plain_values_and_arrays_of_bytes_come_back():
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    found = load_arrays(pickle.dumps({"a": array, b"b": [1, "x"]}, protocol=2), "file")

    np.testing.assert_array_equal(found["a"], array)
    assert found["b"] == [1, "x"]


@pytest.mark.parametrize("array", [np.zeros(3), np.array([object()]), np.array(["x"])])
def test_only_arrays_of_bytes_are_made(array):
    with pytest.raises(ValueError, match="cannot be read as a pickle of arrays"):
        load_arrays(pickle.dumps({"a": array}, protocol=2), "file")


@pytest.mark.parametrize("claimed", [(2_000_000_000, 1), (1, 3072), (-2, -307200)])
def test_a_shape_that_lies_is_refused_before_memory_is_asked_for(claimed):
    raw = python2_pickle(*cifar_arrays(n=200), claimed=claimed)

    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="do not fill shape"):
            load_arrays(raw, "file")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(raw)
    finally:
        tracemalloc.stop()


def test_a_size_given_to_the_constructor_is_ignored():
    """numpy would allocate what ``_reconstruct`` is called with."""
    raw = python2_pickle(*cifar_arrays(n=2))
    small, huge = b"(J\x00\x00\x00\x00t", b"(J\xff\xff\xff\x7ft"
    assert raw.count(small) == 1

    found = load_arrays(raw.replace(small, huge), "file")

    assert found["data"].shape == (2, 3072)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x80\x02}r\xff\xff\xff\x7f.", "memo place 2147483647"),  # 34 GB of empty places
        (b"\x80\x02T\xff\xff\xff\x7fabc.", "2147483647 bytes"),  # a string that is not there
        (b"\x80\x05\x96\xff\xff\xff\xff\x00\x00\x00\x00abc.", "4294967295 bytes"),
    ],
)
def test_instructions_that_claim_too_much_cost_no_memory(raw, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            load_arrays(raw, "file")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("raw", [b"", b"garbage", pickle.dumps([1]), b"\x80\x02}("])
def test_garbage_is_a_value_error_with_the_name_of_the_file(raw):
    with pytest.raises(ValueError, match="the file"):
        load_arrays(raw, "the file")
