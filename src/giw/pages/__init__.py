"""Pages, figures and tables that a person opens; what draws is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giw.pages.figures import save, split_histogram
    from giw.pages.page import Page, Picture, Section, render_page, write_page
    from giw.pages.tables import in_one_sentence, summarize, text_table

FILE_OF = {
    **dict.fromkeys(("save", "split_histogram"), "figures"),
    **dict.fromkeys(("Page", "Picture", "Section", "render_page", "write_page"), "page"),
    **dict.fromkeys(("in_one_sentence", "summarize", "text_table"), "tables"),
}
__all__ = [
    "Page",
    "Picture",
    "Section",
    "in_one_sentence",
    "render_page",
    "save",
    "split_histogram",
    "summarize",
    "text_table",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name not in FILE_OF:
        raise AttributeError(f"module 'giw.pages' has no attribute {name!r}")
    return getattr(import_module(f"giw.pages.{FILE_OF[name]}"), name)
