"""What the pages need when the site is built: formulas without scripts, words from the code.

Formulas become MathML here, so that a page needs no script and no network to show them. Options of
a command are read from the command itself, so that the page cannot fall behind.
"""

from __future__ import annotations

import html
import re
import sys
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from api import entries, linked, listed, page_of
from gallery import GALLERY, title_of

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
OPTIONS = re.compile(r"<!-- options of giw ([\w ]+) -->")
HIDDEN = re.compile(r"<!-- run\n.*?-->\n?", re.DOTALL)


def on_config(config: Any) -> Any:
    """Pages of objects and of programs stand in the navigation below their lists."""
    for part in config.nav:
        if part.get("API"):
            groups = groupby(_objects(config), lambda one: one.section)
            pages = [{name: [f"api/{one.name}.md" for one in of]} for name, of in groups]
            part["API"] = ["api.md", *pages]
        if part.get("Gallery"):
            pages = [{title_of(name): f"gallery/{name}.md"} for name in GALLERY]
            part["Gallery"] = ["gallery/index.md", *pages]
    return config


def on_files(files: Files, config: Any) -> Files:
    """One page for every object of docs/api.md."""
    every = _objects(config)
    for one in every:
        page = File.generated(config, f"api/{one.name}.md", content=page_of(one, every))
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the options of commands and the list of objects; leave out what only tests run."""
    if page.file.src_uri == "api.md":
        return listed(markdown)
    return OPTIONS.sub(lambda found: options_table(found[1]), HIDDEN.sub("", markdown))


def on_page_content(content: str, page: Any, config: Any, **_: Any) -> str:
    """Write formulas as MathML; link the names of objects to their pages."""
    content = FORMULA.sub(lambda found: mathml(found[3], block=found[2] == "["), content)
    root = "../" * page.file.src_uri.count("/")
    return linked(content, root, {one.name for one in _objects(config)})


def _objects(config: Any) -> list[Any]:
    return entries((Path(config.docs_dir) / "api.md").read_text("utf-8"))


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
