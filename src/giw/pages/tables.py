"""Tables: from accuracies per trial to marked cells, and cells as text, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from giw.pages.style import name_of, styles_of

# Cells --------------------------------------------------------------------------------------------

WIDE = 8  # columns; a LaTeX table with more is shrunk to the width of the text
STAR = "*"  # plain text has no bold letters


@dataclass(frozen=True)
class Entry:
    """One cell: what it says, whether it is set in bold, and whether it is there at all.

    ``drawn`` is SVG that stands before the text where the table is part of a page.
    """

    text: str
    bold: bool = False
    missing: bool = False
    drawn: str = ""


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


def entries(*texts: str) -> list[Entry]:
    """Plain cells."""
    return [Entry(text) for text in texts]


def text_sheet(sheet: Sheet) -> str:
    """The table in plain text; a star marks what other formats set in bold."""
    columns = range(len(sheet.head))
    stars = [any(row[c].bold for row in sheet.rows) for c in columns]
    inset = "  " * any(group.label for group in sheet.groups)

    # Where bold cells have a star, the others keep its place free, so that numbers line up
    def shown(column: int, entry: Entry) -> str:
        return entry.text + (f" {STAR}" if entry.bold else "  " * (stars[column] and column > 0))

    head = [shown(c, Entry(name)) for c, name in enumerate(sheet.head)]
    lines = [[inset * (c == 0) + shown(c, row[c]) for c in columns] for row in sheet.rows]
    widths = [max(len(line[c]) for line in [head, *lines]) for c in columns]

    def laid(cells: Sequence[str]) -> str:
        sides = zip(cells, widths, sheet.align, strict=True)
        return "  ".join(f"{c:{'>' if side == 'r' else '<'}{w}}" for c, w, side in sides).rstrip()

    body: list[str] = []
    remaining = iter(lines)
    for group in sheet.groups:
        body += [group.label] if group.label else []
        body += [laid(next(remaining)) for _ in group.rows]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    notes = [f"{STAR} set in bold elsewhere."] * any(stars) + [*sheet.notes]
    title = [sheet.title] if sheet.title else []
    return "\n".join([*title, rule, laid(head), rule, *body, rule, *notes]) + "\n"


def markdown_sheet(sheet: Sheet, level: int = 3) -> str:
    """The table in Markdown with its title as a heading and its notes beneath."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def shown(entry: Entry) -> str:
        sign = "**" if entry.bold else "*" if entry.missing else ""
        return f"{sign}{escape(entry.text, MARKDOWN)}{sign}"

    lines = [f"{'#' * level} {escape(sheet.title, MARKDOWN)}", ""] if sheet.title else []
    lines += [line(escape(head, MARKDOWN) for head in sheet.head)]
    lines += [line("---:" if side == "r" else "---" for side in sheet.align)]
    for group in sheet.groups:
        if group.label:
            label = f"*{escape(group.label, MARKDOWN)}*"
            lines += [line([label, *[""] * (len(sheet.head) - 1)])]
        lines += [line(map(shown, row)) for row in group.rows]
    for note in sheet.notes:
        lines += ["", escape(note, MARKDOWN)]
    return "\n".join(lines) + "\n"


def latex_sheet(sheet: Sheet) -> str:
    """The table in LaTeX, a floating one with caption and label (packages booktabs, graphicx)."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    def shown(entry: Entry) -> str:
        style = "textbf" if entry.bold else "textit" if entry.missing else ""
        text = escape(entry.text, LATEX)
        return rf"\{style}{{{text}}}" if style else text

    lines: list[str] = []
    if sheet.title:
        caption = ". ".join(text.rstrip(".") for text in (sheet.title, *sheet.notes))
        lines += [r"\begin{table}", r"\centering\footnotesize"]
        lines += [rf"\caption{{{escape(caption, LATEX)}.}}", rf"\label{{tab:{sheet.name}}}"]
    shrunk = len(sheet.head) > WIDE
    lines += [r"\resizebox{\textwidth}{!}{%"] * shrunk
    lines += [rf"\begin{{tabular}}{{{sheet.align}}}", r"\toprule"]
    lines += [line(escape(head, LATEX) for head in sheet.head)]
    for group in sheet.groups:
        lines += [r"\midrule"]
        if group.label:
            label = rf"\textit{{{escape(group.label, LATEX)}}}"
            lines += [line([rf"\multicolumn{{{len(sheet.head)}}}{{l}}{{{label}}}"])]
        lines += [line(map(shown, row)) for row in group.rows]
    lines += [r"\bottomrule", r"\end{tabular}" + "}" * shrunk]
    return "\n".join([*lines, *[r"\end{table}"] * bool(sheet.title)]) + "\n"


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
        digits = 3 if self.p_value < 0.1 else 2  # two would blur a small one, or the level itself
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.{digits}f}"
        return f"tied, {p}" if self.tied else p


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
    trials = {method: np.asarray(values, dtype=np.float64) for method, values in accuracy.items()}
    shapes = {values.shape for values in trials.values()}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 1 or shape == (0,):
        got = {method: values.shape for method, values in trials.items()}
        raise ValueError(f"need one accuracy per trial, as many for every method; got shapes {got}")
    if not all(((values >= 0) & (values <= 1)).all() for values in trials.values()):
        raise ValueError("accuracies must lie between 0 and 1; divide percentages by 100")
    best = max(trials, key=lambda method: float(trials[method].mean()))
    rows = []
    for method, values in trials.items():
        p_value = None if method == best else paired_p_value(trials[best], values)
        std = float(values.std(ddof=1)) if len(values) > 1 else None
        tied = p_value is not None and p_value >= LEVEL
        mean = float(values.mean())
        rows.append(Row(method, mean, std, len(values), method == best, tied, p_value))
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


def in_one_sentence(rows: Sequence[Row], method: str = "giw") -> str:
    """What the table says about one method, whether or not it comes out well."""
    by_method = {row.method: row for row in rows}
    row, best = by_method[method], next(other for other in rows if other.best)
    right = f"{row.name} gets {100 * row.mean:.1f} % of the test set right"
    gap = f"{100 * (best.mean - row.mean):.1f} points less than {best.name}"
    if row.n == 1:
        place = "the most of all methods" if row.best else gap
        return f"{right}, {place}; a single trial cannot say whether that is chance."
    tied = [other.name for other in rows if other.tied]
    if row.best and tied:
        names = " and ".join(filter(None, [", ".join(tied[:-1]), tied[-1]]))
        place = f"the most of all methods, though not told apart from {names}"
    elif row.best:
        place = "significantly more than every other method"
    else:
        place = gap + (", though not told apart from it" * row.tied or ", a significant difference")
    return f"{right}, on average over {row.n} trials: {place}."


def rows_sheet(rows: Sequence[Row], *, title: str = "") -> Sheet:
    """The table of methods, best and tied accuracies in bold, in the colours of the figures."""
    styles = styles_of(row.method for row in rows)
    dot = '<svg viewBox="0 0 12 12" width="12" height="12"><circle cx="6" cy="6" r="6" fill="{}"/>'
    lines = [
        [
            Entry(row.name, drawn=dot.format(styles[row.method].color) + "</svg>"),
            Entry(row.accuracy(), bold=row.marked),
            Entry(row.verdict),
        ]
        for row in rows
    ]
    head = ("method", "test accuracy (%)", "against the best")
    return Sheet("", title, head, [Group("", lines)], align="lrl")


def text_table(rows: Sequence[Row], *, title: str = "") -> str:
    """The table of methods in plain text, for a file or a log; a star marks what is bold."""
    return text_sheet(rows_sheet(rows, title=title))
