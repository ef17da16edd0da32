"""One HTML page that stands alone: no script, no file beside it, nothing fetched.

Figures are SVG inside the page and take its colours, so that they follow a reader's dark mode.
Everything that comes in is text and is escaped; a method called ``<b>`` is shown as ``<b>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import giw
from giw.pages.style import INK, LINE
from giw.pages.tables import Sheet
from giw.writing import visible, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows in words, for readers who do not see it, and a caption.

    A ``wide`` one takes the width of the window and can be pushed sideways on a phone; ``name`` is
    for a file of its own.
    """

    figure: Figure
    alt: str
    caption: str = ""
    name: str = ""
    wide: bool = False

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG, drawn once for page and file."""
        from giw.pages.figures import svg_bytes

        return svg_bytes(self.figure)


@dataclass(frozen=True)
class Section:
    """A part of the page, shown in this order; whatever is left empty is left out.

    Parameters
    ----------
    title : str
    text : sequence of str
        Paragraphs in plain words.
    pictures : sequence of Picture
    sheets : sequence of Sheet
        Tables.
    facts : mapping of str to str
        Short facts in two columns, such as sizes of data sets.
    part : str
        The part of the page that it belongs to; the index shows it.
    """

    title: str
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    sheets: Sequence[Sheet] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    part: str = ""


@dataclass(frozen=True)
class Page:
    """What a report says, in the order in which it is read.

    Parameters
    ----------
    title : str
    answer : str
        The result in one sentence; set in large letters under the title.
    lead : sequence of str
        Paragraphs that say in plain words what was asked and done.
    sections : sequence of Section
    kicker : str
        A few words above the title, such as the command.
    footer : sequence of str
        How to make this page again.
    index : bool, default=False
        Whether the sections are listed at the top, with links.
    """

    title: str
    answer: str
    lead: Sequence[str] = ()
    sections: Sequence[Section] = ()
    kicker: str = "giw"
    footer: Sequence[str] = ()
    index: bool = False


def render_page(page: Page) -> str:
    """The page as one string of HTML."""
    number = count(1)

    def drawn(picture: Picture) -> Markup:
        return inline_svg(picture.svg, alt=picture.alt, prefix=f"fig{next(number)}-")

    numbered = enumerate(page.sections, start=1)
    parts = [(part, list(of_part)) for part, of_part in groupby(numbered, lambda s: s[1].part)]
    return render("page.html", page=page, parts=parts, drawn=drawn)


def render(name: str, **values: Any) -> str:
    """A template of this room with these values, which are text and no markup."""
    html = name.endswith(".html")
    environment = Environment(
        loader=PackageLoader("giw.pages"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_unbroken if html else None,
    )
    template = environment.get_template(name)
    return visible(template.render(markup=Markup, version=giw.__version__, **values))


def _unbroken(value: Any) -> Any:
    """Text in which a number and its unit stay on one line."""
    if type(value) is not str:  # what is markup already is left alone, such as code
        return value
    return re.sub(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] )|(?<=\bp [=<]) ", "\u00a0", value)


def write_page(page: Page, path: str | Path) -> Path:
    """Write the page as UTF-8; folders on the way are made."""
    return write_html(render_page(page), path)


def write_html(html: str, path: str | Path) -> Path:
    """Write what was rendered; folders on the way are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, html)
    return path


def inline_svg(svg: bytes, *, alt: str, prefix: str) -> Markup:
    """An SVG file as an element that can stand in a page beside others.

    Identifiers get a prefix, since a page may hold each only once; the file's own style sheet goes,
    since it would apply to the whole page; ink and grid take the colours of the page.
    """
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                value = prefix + value
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                value = f"#{prefix}{value[1:]}"
            else:
                value = value.replace("url(#", f"url(#{prefix}")
                value = value.replace(INK, "currentColor").replace(LINE, "var(--grid)")
                if key == "d":  # a hundredth of a point is finer than any screen
                    value = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", value)
                    value = " ".join(value.split())
            element.set(key, value)
    for parent in list(root.iter()):
        for tag in ("style", "metadata"):
            for child in parent.findall(f"{{{SVG}}}{tag}"):
                parent.remove(child)
    kept = {key: value for key, value in root.attrib.items() if key not in ("width", "height")}
    root.attrib = kept | {"role": "img", "aria-label": alt}
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return Markup(ElementTree.tostring(root, encoding="unicode"))
