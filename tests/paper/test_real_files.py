"""The real files, where $GIW_DATA has them."""

import os

import numpy as np
import pytest

from giw.paper.cifar import cifar20, cifar_edition
from giw.paper.files import catalogue
from giw.paper.mnist import mnist

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("GIW_DATA"), reason="GIW_DATA names no data folder"),
]


def test_no_file_is_altered():
    states = {status.file.name: status.state for status in catalogue(verify=True)}

    assert "altered" not in states.values()
    assert "verified" in states.values()


def test_mnist_has_its_published_numbers():
    train, test = mnist("train"), mnist("test", task="digit")

    assert train.x.shape == (60_000, 1, 28, 28)
    assert test.x.shape == (10_000, 1, 28, 28)
    np.testing.assert_array_equal(
        np.bincount(train.group), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    )
    assert train.x.mean() / 255 == pytest.approx(0.1307, abs=1e-4)


def test_cifar_has_its_twenty_superclasses_and_plausible_channels():
    train, test = cifar20("train"), cifar20("test")

    assert train.x.shape[1:] == test.x.shape[1:] == (3, 32, 32)
    if cifar_edition() == "npz":
        assert (len(train), len(test)) == (20_233, 9_999)
    else:
        assert (len(train), len(test)) == (50_000, 10_000)
    np.testing.assert_array_equal(np.unique(test.group), np.arange(100))
    # The published channel means; red, green and blue in another order would not fit.
    np.testing.assert_allclose(test.x.mean((0, 2, 3)) / 255, [0.509, 0.487, 0.442], atol=0.005)
