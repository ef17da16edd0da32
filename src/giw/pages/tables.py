"""Tables: from accuracies per trial to marked cells, and cells as text, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.table import Table
from rich.text import Text
from scipy import stats

from giw.checks import as_array
from giw.pages.style import name_of

# Cells --------------------------------------------------------------------------------------------

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
    align : str
        ``l`` or ``r`` for each column; names at the left and numbers at the right if empty.
    pinned : int, default=1
        Columns that stay in sight, 1 or 2, where the table is wider than a page and is pushed.

    Without a title Markdown has no heading, and LaTeX no float around the table.
    """

    name: str
    title: str
    head: Sequence[str]
    groups: Sequence[Group]
    notes: Sequence[str] = ()
    align: str = ""
    pinned: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "align", self.align or "l" + "r" * (len(self.head) - 1))
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
        sides = zip(cells, widths, sheet.align, strict=True)
        laid = (c.rjust(w) if side == "r" else c.ljust(w) for c, w, side in sides)
        return "  ".join(laid).rstrip()

    body: list[str] = []
    remaining = iter(lines)
    for group in sheet.groups:
        body += [group.label] if group.label else []
        body += [laid(next(remaining)) for _ in group.rows]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    notes = [*([f"{STAR} set in bold elsewhere."] if sheet.has_bold else []), *sheet.notes]
    title = [sheet.title] if sheet.title else []
    return "\n".join([*title, rule, laid(heads), rule, *body, rule, *notes]) + "\n"


def markdown_sheet(sheet: Sheet, level: int = 3) -> str:
    """The table in Markdown with its title as a heading and its notes beneath."""

    def shown(entry: Entry) -> str:
        text = escape(entry.text, MARKDOWN)
        return f"**{text}**" if entry.bold else f"*{text}*" if entry.missing else text

    lines = [f"{'#' * level} {escape(sheet.title, MARKDOWN)}", ""] if sheet.title else []
    lines += [_bars(escape(head, MARKDOWN) for head in sheet.head)]
    lines += [_bars("---:" if side == "r" else "---" for side in sheet.align)]
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
    lines: list[str] = []
    if sheet.title:
        lines += [r"\begin{table}", r"\centering\footnotesize"]
        lines += [rf"\caption{{{escape(caption, LATEX)}.}}", rf"\label{{tab:{sheet.name}}}"]
    shrunk = len(sheet.head) > WIDE
    lines += [r"\resizebox{\textwidth}{!}{%"] if shrunk else []
    lines += [rf"\begin{{tabular}}{{{sheet.align}}}", r"\toprule"]
    lines += [_ampersands(escape(head, LATEX) for head in sheet.head)]
    for group in sheet.groups:
        lines += [r"\midrule"]
        if group.label:
            label = escape(group.label, LATEX)
            lines += [rf"\multicolumn{{{len(sheet.head)}}}{{l}}{{\textit{{{label}}}}} \\"]
        lines += [_ampersands(map(shown, row)) for row in group.rows]
    lines += [r"\bottomrule", r"\end{tabular}" + ("}" if shrunk else "")]
    lines += [r"\end{table}"] if sheet.title else []
    return "\n".join(lines) + "\n"


def _ampersands(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


MARKDOWN = {c: f"\\{c}" for c in "\\`*_{}[]<>#|~"} | {"\n": " ", "\r": " "}
LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "→": r"$\to$",
    "×": r"$\times$",
    "α": r"$\alpha$",
    "“": "``",
    "”": "''",
    "\u00a0": "~",
    "\n": " ",
    "\r": " ",
}


def escape(text: str, signs: Mapping[str, str]) -> str:
    """One pass, so that a backslash put in is not escaped again."""
    return "".join(signs.get(sign, sign) for sign in text)


# Methods, paired by trial -------------------------------------------------------------------------

LEVEL = 0.05
MEANING = (
    "Accuracy on the test set, mean ± standard deviation over the trials. Best: the highest mean. "
    "Tied: a two-sided paired t-test over the trials (every method meets the same data in a trial) "
    "finds no difference from the best at the 5\u00a0% level. With few trials that says “not told "
    "apart”, which is less than “equal”; p-values are not corrected for their number."
)


@dataclass(frozen=True)
class Row:
    """One method's line of the table.

    ``std`` (with n - 1 in the denominator) is None for a single trial, ``p_value`` is None for the
    best itself and wherever a single trial allows no test. ``shared`` counts the trials that it
    was tested on where methods differ in their trials; None means all of them.
    """

    method: str
    mean: float
    std: float | None
    n: int
    best: bool
    tied: bool
    p_value: float | None
    shared: int | None = None

    @property
    def name(self) -> str:
        """The name that people read."""
        return name_of(self.method)

    @property
    def marked(self) -> bool:
        """Best or tied with it: what is set in bold."""
        return self.best or self.tied

    def accuracy(self, digits: int = 1) -> str:
        """Mean and standard deviation in percent, such as ``91.7 ± 2.1``."""
        spread = "" if self.std is None else f" ± {100 * self.std:.{digits}f}"
        return f"{100 * self.mean:.{digits}f}{spread}"

    @property
    def verdict(self) -> str:
        """How it stands to the best, in words."""
        if self.best:
            return "best"
        if self.p_value is None:
            return "not tested"
        p = (
            "p < 0.001"
            if self.p_value < 0.001
            else f"p = {self.p_value:.{_decimals(self.p_value)}f}"
        )
        return f"tied, {p}" if self.tied else p


def _decimals(p_value: float) -> int:
    """Two decimals, or three where two would blur a small p-value or the level itself."""
    return 3 if p_value < 0.1 else 2


def summarize(accuracy: Mapping[str, ArrayLike]) -> list[Row]:
    """Mean and spread of each method, and which ones cannot be told from the best.

    The best is the highest mean (of equal means the first one given). Another method is *tied*
    when a two-sided paired t-test over the trials does not tell it from the best at the 5 % level.

    Parameters
    ----------
    accuracy : mapping from method to one accuracy per trial, each between 0 and 1
        Trial t must stand at the same position for every method, on the same data: the test is
        paired. More trials tell smaller differences apart.

    Returns
    -------
    list of Row
        In the order given. A single trial has no spread and no test; differences that are the same
        in every trial need none: p is 1 where they are all zero and 0 elsewhere.
    """
    trials = as_paired(accuracy)
    best = max(trials, key=lambda method: float(trials[method].mean()))
    rows = []
    for method, values in trials.items():
        p_value = None if method == best else paired_p_value(trials[best], values)
        rows.append(
            Row(
                method=method,
                mean=float(values.mean()),
                std=float(values.std(ddof=1)) if len(values) > 1 else None,
                n=len(values),
                best=method == best,
                tied=p_value is not None and p_value >= LEVEL,
                p_value=p_value,
            )
        )
    return rows


def paired_p_value(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Two-sided paired t-test; None for a single trial, which allows no test."""
    if len(left) < 2:
        return None
    difference = left - right
    # Accuracies are at most one, so differences that agree to 1e-12 agree up to rounding. The
    # t statistic would be 0 / 0 or infinite: the limits are known, the warnings are not needed.
    if np.ptp(difference) <= 1e-12:
        return 1.0 if abs(float(difference.mean())) <= 1e-12 else 0.0
    return float(stats.ttest_rel(left, right).pvalue)


def in_one_sentence(rows: Sequence[Row], method: str = "giw", digits: int = 1) -> str:
    """What the table says about one method, whether or not it comes out well."""
    by_method = {row.method: row for row in rows}
    if method not in by_method:
        raise ValueError(f"no method {method!r} in the table, which holds {sorted(by_method)}")
    row = by_method[method]
    best = next(other for other in rows if other.best)
    right = f"{row.name} gets {100 * row.mean:.{digits}f} % of the test set right"
    if row.n == 1:
        place = "the most of all methods" if row.best else _gap(row, best, digits)
        return f"{right}, {place}; a single trial cannot say whether that is chance."
    right = f"{right}, on average over {row.n} trials"
    if row.best:
        tied = [other.name for other in rows if other.tied]
        if tied:
            return f"{right}: the most of all methods, though not told apart from {_listed(tied)}."
        return f"{right}: significantly more than every other method."
    if row.tied:
        return f"{right}: {_gap(row, best, digits)}, though not told apart from it."
    return f"{right}: {_gap(row, best, digits)}, a significant difference."


def _gap(row: Row, best: Row, digits: int) -> str:
    return f"{100 * (best.mean - row.mean):.{digits}f} points less than {best.name}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


SHAPES = {1: "one number per trial", 2: "shape (trials, epochs); one trial has shape (1, epochs)"}


def as_accuracies(value: ArrayLike, name: str, *, ndim: int) -> NDArray[np.float64]:
    """Accuracies as fractions between 0 and 1, one per trial or one per trial and epoch."""
    array = as_array(value, name).astype(np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must hold {SHAPES[ndim]}; got shape {array.shape}")
    if array.min() < 0 or array.max() > 1:
        raise ValueError(
            f"{name} must lie between 0 and 1, got {array.min():.3g} to {array.max():.3g}; "
            "divide percentages by 100"
        )
    return array


def as_paired(accuracy: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    """One accuracy per trial for each method, as many for one method as for the other."""
    if not accuracy:
        raise ValueError("accuracy is empty: pass at least one method")
    trials = {
        method: as_accuracies(values, f"accuracy[{method!r}]", ndim=1)
        for method, values in accuracy.items()
    }
    sizes = {method: len(values) for method, values in trials.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"trials are paired, so every method needs as many: got {sizes}; "
            "drop the trials that some method lacks"
        )
    return trials


HEAD = ("method", "test accuracy (%)", "against the best")


def _cells(row: Row, digits: int) -> tuple[str, str, str]:
    return row.name, row.accuracy(digits), row.verdict


def rich_table(rows: Sequence[Row], *, title: str | None = None, digits: int = 1) -> Table:
    """The table for a terminal, best and tied ones in bold."""
    # Text, not str: a method called "[red]" is a name and no markup
    table = Table(title=None if title is None else Text(title), title_justify="left")
    table.add_column(HEAD[0])
    table.add_column(HEAD[1], justify="right")
    table.add_column(HEAD[2])
    for row in rows:
        style = "bold" if row.marked else ""
        table.add_row(*(Text(cell, style=style) for cell in _cells(row, digits)))
    return table


def rows_sheet(rows: Sequence[Row], *, title: str = "", digits: int = 1) -> Sheet:
    """The table of methods, best and tied accuracies in bold."""
    lines = []
    for row in rows:
        name, accuracy, verdict = _cells(row, digits)
        lines.append([Entry(name), Entry(accuracy, bold=row.marked), Entry(verdict)])
    return Sheet("", title, HEAD, [Group("", lines)], align="lrl")


def text_table(rows: Sequence[Row], *, title: str | None = None, digits: int = 1) -> str:
    """The table of methods in plain text, for a file or a log; a star marks what is bold."""
    return text_sheet(rows_sheet(rows, title=title or "", digits=digits))


def markdown_table(rows: Sequence[Row], *, digits: int = 1) -> str:
    """The table of methods in Markdown, best and tied accuracies in bold."""
    return markdown_sheet(rows_sheet(rows, digits=digits))


def latex_table(rows: Sequence[Row], *, digits: int = 1) -> str:
    """The table of methods in LaTeX (package booktabs), best and tied accuracies in bold."""
    return latex_sheet(rows_sheet(rows, digits=digits))
