"""Pages, figures and tables that a person opens."""

from giw.pages.figures import learning_curves, save, split_histogram, trial_dots
from giw.pages.page import Listing, Page, Picture, Section, render_page, write_page
from giw.pages.tables import (
    Row,
    in_one_sentence,
    latex_table,
    markdown_table,
    rich_table,
    summarize,
    text_table,
)

__all__ = [
    "Listing",
    "Page",
    "Picture",
    "Row",
    "Section",
    "in_one_sentence",
    "latex_table",
    "learning_curves",
    "markdown_table",
    "render_page",
    "rich_table",
    "save",
    "split_histogram",
    "summarize",
    "text_table",
    "trial_dots",
    "write_page",
]
