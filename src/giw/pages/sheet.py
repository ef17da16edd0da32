"""A table of words: the same cells as text, Markdown, LaTeX and, through a page, HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from giw.pages.tables import LATEX, MARKDOWN, escape

WIDE = 8  # columns; a LaTeX table with more is shrunk to the width of the text
STAR = "*"  # plain text has no bold letters


@dataclass(frozen=True)
class Entry:
    """One cell: what it says, whether it is set in bold, and whether it is there at all."""

    text: str
    bold: bool = False
    missing: bool = False


MISSING = Entry("missing", missing=True)
NONE = Entry("–")


@dataclass(frozen=True)
class Group:
    """Rows that belong together; the label stands above them, an empty one is left out."""

    label: str
    rows: Sequence[Sequence[Entry]]


@dataclass(frozen=True)
class Sheet:
    """A table.

    Parameters
    ----------
    name : str
        A word for labels and links.
    title : str
    head : sequence of str
        One name per column; the first column holds the names of the rows.
    groups : sequence of Group
    notes : sequence of str
        What a reader must know to read the cells.
    """

    name: str
    title: str
    head: Sequence[str]
    groups: Sequence[Group]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(
                    f"{self.name} has {len(self.head)} columns, a row has {len(row)} cells"
                )

    @property
    def rows(self) -> list[Sequence[Entry]]:
        """All rows, whatever their group."""
        return [row for group in self.groups for row in group.rows]

    @property
    def has_bold(self) -> bool:
        """Whether any cell is set in bold."""
        return any(entry.bold for row in self.rows for entry in row)


def entries(*texts: str) -> list[Entry]:
    """Plain cells."""
    return [Entry(text) for text in texts]


def text_sheet(sheet: Sheet) -> str:
    """The table in plain text; a star marks what other formats set in bold."""

    def shown(entry: Entry) -> str:
        return entry.text + (f" {STAR}" if entry.bold else "")

    # Where bold cells have a star, the others keep its place free, so that numbers line up
    def padded(column: int, entry: Entry) -> str:
        return shown(entry) + ("  " if stars[column] and not entry.bold else "")

    columns = range(len(sheet.head))
    stars = [any(row[c].bold for row in sheet.rows) for c in columns]
    inset = "  " if any(group.label for group in sheet.groups) else ""
    lines = [[inset + row[0].text, *(padded(c, row[c]) for c in columns[1:])] for row in sheet.rows]
    heads = [
        sheet.head[0],
        *(h + ("  " if stars[c + 1] else "") for c, h in enumerate(sheet.head[1:])),
    ]
    widths = [max(len(line[c]) for line in [heads, *lines]) for c in columns]

    def laid(cells: Sequence[str]) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *numbers]).rstrip()

    body: list[str] = []
    remaining = iter(lines)
    for group in sheet.groups:
        body += [group.label] if group.label else []
        body += [laid(next(remaining)) for _ in group.rows]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    notes = [*([f"{STAR} set in bold elsewhere."] if sheet.has_bold else []), *sheet.notes]
    return "\n".join([sheet.title, rule, laid(heads), rule, *body, rule, *notes]) + "\n"


def markdown_sheet(sheet: Sheet, level: int = 3) -> str:
    """The table in Markdown with its title as a heading and its notes beneath."""

    def shown(entry: Entry) -> str:
        text = escape(entry.text, MARKDOWN)
        return f"**{text}**" if entry.bold else f"*{text}*" if entry.missing else text

    lines = [f"{'#' * level} {escape(sheet.title, MARKDOWN)}", ""]
    lines += [_bars(escape(head, MARKDOWN) for head in sheet.head)]
    lines += [_bars(["---", *["---:"] * (len(sheet.head) - 1)])]
    for group in sheet.groups:
        if group.label:
            label = f"*{escape(group.label, MARKDOWN)}*"
            lines += [_bars([label, *[""] * (len(sheet.head) - 1)])]
        lines += [_bars(map(shown, row)) for row in group.rows]
    for note in sheet.notes:
        lines += ["", escape(note, MARKDOWN)]
    return "\n".join(lines) + "\n"


def _bars(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def latex_sheet(sheet: Sheet) -> str:
    """The table in LaTeX, a floating one with caption and label (packages booktabs, graphicx)."""

    def shown(entry: Entry) -> str:
        text = escape(entry.text, LATEX)
        if entry.bold:
            return rf"\textbf{{{text}}}"
        return rf"\textit{{{text}}}" if entry.missing else text

    caption = ". ".join([sheet.title.rstrip("."), *(note.rstrip(".") for note in sheet.notes)])
    lines = [r"\begin{table}", r"\centering\footnotesize"]
    lines += [rf"\caption{{{escape(caption, LATEX)}.}}", rf"\label{{tab:{sheet.name}}}"]
    shrunk = len(sheet.head) > WIDE
    lines += [r"\resizebox{\textwidth}{!}{%"] if shrunk else []
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(sheet.head) - 1)}}}", r"\toprule"]
    lines += [_ampersands(escape(head, LATEX) for head in sheet.head)]
    for group in sheet.groups:
        lines += [r"\midrule"]
        if group.label:
            label = escape(group.label, LATEX)
            lines += [rf"\multicolumn{{{len(sheet.head)}}}{{l}}{{\textit{{{label}}}}} \\"]
        lines += [_ampersands(map(shown, row)) for row in group.rows]
    lines += [r"\bottomrule", r"\end{tabular}" + ("}" if shrunk else ""), r"\end{table}"]
    return "\n".join(lines) + "\n"


def _ampersands(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
