"""Docstrings as Markdown: the few pieces of reStructuredText that numpydoc asks for."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|data|meth|mod):`~?([\w.]+)`")
MATH = re.compile(r":math:`(.+?)`", re.DOTALL)
BLOCK = re.compile(r"^([ ]*)\.\. math:: ?(.*(?:\n(?:\1[ ]+.*|[ ]*(?=\n\1[ ]+)))*)", re.MULTILINE)
FOOTNOTE = re.compile(r"^[ ]*\.\. \[(\d+)\] ", re.MULTILINE)


def as_markdown(text: str) -> str:
    """The same docstring with Markdown's formulas, code and references."""
    text = BLOCK.sub(_display, text)
    text = MATH.sub(lambda found: f"${' '.join(found[1].split())}$", text)
    text = ROLE.sub(lambda found: f"`{found[1]}`", text)
    return FOOTNOTE.sub(r"[\1] ", text).replace("]_", "]")


def _display(found: re.Match[str]) -> str:
    indent, body = found[1], " ".join(textwrap.dedent(found[2]).split())
    return f"\n{indent}$$\n{indent}{body}\n{indent}$$\n"


class Markdown(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
