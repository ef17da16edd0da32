"""From accuracies per trial to a table that marks the best and the ones tied with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy import stats

from giw.pages.accuracies import as_paired
from giw.pages.style import name_of

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


HEAD = ("method", "test accuracy (%)", "against the best")


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


def _cells(row: Row, digits: int) -> tuple[str, str, str]:
    return row.name, row.accuracy(digits), row.verdict


def text_table(rows: Sequence[Row], *, title: str | None = None, digits: int = 1) -> str:
    """The same table in plain text, for a file or a log."""
    out = StringIO()
    console = Console(file=out, width=120, color_system=None, force_terminal=False)
    console.print(rich_table(rows, title=title, digits=digits))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def markdown_table(rows: Sequence[Row], *, digits: int = 1) -> str:
    """The table in Markdown, best and tied accuracies in bold."""
    lines = [f"| {' | '.join(HEAD)} |", "| --- | ---: | --- |"]
    for row in rows:
        name, accuracy, verdict = _cells(row, digits)
        accuracy = f"**{accuracy}**" if row.marked else accuracy
        lines.append(f"| {escape(name, MARKDOWN)} | {accuracy} | {verdict} |")
    return "\n".join(lines) + "\n"


def latex_table(rows: Sequence[Row], *, digits: int = 1) -> str:
    r"""The table in LaTeX (package booktabs), best and tied accuracies in bold."""
    lines = [r"\begin{tabular}{lrl}", r"\toprule"]
    lines += [" & ".join(escape(head, LATEX) for head in HEAD) + r" \\", r"\midrule"]
    for row in rows:
        name, accuracy, verdict = _cells(row, digits)
        number = accuracy.replace("±", r"$\pm$")
        number = rf"\textbf{{{number}}}" if row.marked else number
        test = verdict.replace("p <", "$p$ $<$").replace("p =", "$p$ =")
        lines.append(rf"{escape(name, LATEX)} & {number} & {test} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


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
