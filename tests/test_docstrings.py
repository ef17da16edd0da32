"""Examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import giw

MODULES = [
    m.name for m in pkgutil.walk_packages(giw.__path__, "giw.") if not m.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_promise(name):
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert result.failed == 0
