"""What the pages need when the site is built: formulas without scripts, options from the code.

Formulas become MathML here, so that a page needs no script and no network to show them. Options of
a command are read from the command itself, so that the page cannot fall behind.
"""

from __future__ import annotations

import html
import re
from enum import Enum
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
OPTIONS = re.compile(r"<!-- options of giw ([\w ]+) -->")
HIDDEN = re.compile(r"<!-- run\n.*?-->\n?", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the options of commands; leave out what only the tests run."""
    return OPTIONS.sub(lambda found: options_table(found[1]), HIDDEN.sub("", markdown))


def on_page_content(content: str, **_: Any) -> str:
    """Write formulas as MathML."""
    return FORMULA.sub(lambda found: mathml(found[3], block=found[2] == "["), content)


def mathml(latex: str, *, block: bool) -> str:
    """One formula; a browser shows it by itself."""
    text = html.unescape(latex).strip()
    # two spellings that the converter does not know, and one space that it sets too wide
    text = re.sub(r"\{\\rm\s*([^{}]*)\}|\\rm\s+(\w+)", r"\\mathrm{\1\2}", text)
    text = text.replace(r"\lVert", r"\|").replace(r"\rVert", r"\|").replace(r"\,", r"\thinspace ")
    found = convert(text, display="block" if block else "inline")
    return f'<div class="formula">{found}</div>' if block else found


def options_table(name: str) -> str:
    """Arguments and options of one command, in Markdown."""
    import typer

    from giw.cli import app

    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    lines = ["| option | default | |", "| --- | --- | --- |"]
    for param in command.params:
        if param.name == "help":
            continue
        spelling = ", ".join(f"`{option}`" for option in param.opts)
        if not param.opts[0].startswith("-"):
            spelling = f"`{param.opts[0].upper()}`"
        lines.append(f"| {spelling} | {_default(param)} | {param.help} |")
    return "\n".join(lines)


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if isinstance(param.show_default, str):
        return html.escape(param.show_default)
    value = param.default.value if isinstance(param.default, Enum) else param.default
    if value is None or value == [] or getattr(param, "is_flag", False):
        return ""
    return f"`{value}`"
