"""One page for every public object, made from the list in docs/api.md.

An entry of the list is a line ``::: name`` with an example below it. Its page has what the
docstring says, the example, and the other objects of its section. The list becomes one line each.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from dataclasses import dataclass
from types import MethodType
from typing import Any

ENTRY = re.compile(r"^::: ([\w.]+)\n(.*?)(?=^::: |^## |\Z)", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":\w+:`~?([\w.]+)`")
CODE = re.compile(
    r"(<a [^>]*>.*?</a>|<pre.*?</pre>|<h\d.*?</h\d>)|<code>((?:giw\.)?(\w+)(?:\([^<]*\))?)</code>",
    re.DOTALL,
)


@dataclass(frozen=True)
class Entry:
    """An object of the list."""

    path: str  # where it is defined
    section: str
    example: str

    @property
    def name(self) -> str:
        """Its last word, which is that of its page."""
        return self.path.rpartition(".")[2]

    @property
    def shown(self) -> str:
        """How it is imported."""
        public = self.name in importlib.import_module("giw").__all__
        return f"giw.{self.name}" if public else self.path

    @property
    def first_line(self) -> str:
        """The first line of its docstring; of a class's function, that of the class."""
        thing = located(self.path)
        if isinstance(thing, MethodType):
            return f"Weights by `giw.{thing.__self__.__name__}`, in one call."
        return ROLE.sub(r"`\1`", self.summary(thing).replace("``", "`"))

    @property
    def described(self) -> str:
        """What mkdocstrings shows; a function that is a class's method is told from here."""
        thing = located(self.path)
        if not isinstance(thing, MethodType):
            return f"::: {self.path}"
        given = inspect.signature(thing, eval_str=False).parameters.values()
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in given]
        call = f"{self.shown}{inspect.Signature(bare)}"
        owner = thing.__self__.__name__
        of_class = f"The class is [`giw.{owner}`]({owner}.md): {self.summary(thing.__self__)}"
        return f"```python\n{call}\n```\n\n{inspect.getdoc(thing)}\n\n{of_class}"

    @staticmethod
    def summary(thing: Any) -> str:
        """The first line of a docstring, without marks of references."""
        return re.sub(r" \[\d\]_", "", (inspect.getdoc(thing) or "").splitlines()[0])


def located(path: str) -> Any:
    """The object of a dotted name; a module goes before a function of its name."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise LookupError(path)


def entries(listing: str) -> list[Entry]:
    """All of the list, in its order."""
    return [
        Entry(path, section, example.strip())
        for section, body in SECTION.findall(listing)
        for path, example in ENTRY.findall(body)
    ]


def page_of(entry: Entry, every: list[Entry]) -> str:
    """The page of one object, in Markdown."""
    beside = [one for one in every if one.section == entry.section and one != entry]
    also = [f"[`{one.shown}`]({one.name}.md): {one.first_line}" for one in beside]
    also.append(f"[All objects](../api.md#{anchor(entry.section)})")
    return "\n\n".join(
        [f"# {entry.shown}", entry.described, "## Example", entry.example, "## See also",
         "\n".join(f"- {line}" for line in also)]
    ) + "\n"  # fmt: skip


def anchor(title: str) -> str:
    """The name of a heading in an address."""
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def listed(listing: str) -> str:
    """The list as people read it."""
    lines = {
        one.path: f"- [`{one.shown}`](api/{one.name}.md): {one.first_line}"
        for one in entries(listing)
    }
    return ENTRY.sub(lambda found: f"{lines[found[1]]}\n", listing)


def linked(content: str, root: str, names: set[str]) -> str:
    """Names of objects in the text of a page, as links to their pages."""

    def link(found: re.Match[str]) -> str:
        code, name = found[2], found[3]
        if not code or name not in names or not (code.startswith("giw.") or name[0].isupper()):
            return found[0]
        return f'<a href="{html.escape(root)}api/{name}.html">{found[0]}</a>'

    return CODE.sub(link, content)
