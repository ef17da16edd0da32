"""What the API reference prints of each parameter is there to be printed."""

import inspect
import re
import sys

import pytest
from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "tools" / "site"))
from api import located

NAMES = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
RULE = re.compile(r"-{3,}")
LISTS = ("Parameters", "Attributes", "Returns", "Yields")


def documented(thing):
    """It and its public methods, which the page prints too."""
    yield thing
    if inspect.isclass(thing):
        for name, member in inspect.getmembers(thing, inspect.isfunction):
            if not name.startswith("_") and member.__module__.startswith("giw"):
                yield member


def without_description(docstring):
    """Entries of its lists with nothing below them."""
    lines, section = inspect.cleandoc(docstring).splitlines(), ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if RULE.fullmatch(following):
            section = line
            continue
        entry = re.match(r"\S", line) and not RULE.fullmatch(line)
        if section in LISTS and entry and not following.startswith(" "):
            yield line


def test_an_entry_without_words_is_seen():
    text = "What.\n\nParameters\n----------\na : int\n    Words.\nb : int\nc : int\n"
    assert list(without_description(text)) == ["b : int", "c : int"]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_description(name):
    empty = {
        one.__qualname__: list(without_description(one.__doc__ or ""))
        for one in documented(located(name))
    }
    assert {one: lines for one, lines in empty.items() if lines} == {}
