"""Tables, figures and pages that a person opens."""

from giw.report.bench_page import Report, bench_report, report_folder
from giw.report.demo import demo_page
from giw.report.figures import learning_curves, save, split_histogram, trial_dots
from giw.report.page import Listing, Page, Picture, Section, render_page, write_page
from giw.report.tables import (
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
    "Report",
    "Row",
    "Section",
    "bench_report",
    "demo_page",
    "in_one_sentence",
    "latex_table",
    "learning_curves",
    "markdown_table",
    "render_page",
    "report_folder",
    "rich_table",
    "save",
    "split_histogram",
    "summarize",
    "text_table",
    "trial_dots",
    "write_page",
]
