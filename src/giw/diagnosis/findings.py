"""One difference between two tables, counted or tested, and numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FEWEST = 8  # rows of either side below which nothing is tested
FACTS = (
    "missing column", "type", "date format", "unit", "timestamp", "new class", "new category",
    "newly missing", "constant", "range", "duplicates", "identifier",
)  # fmt: skip
REPAIR = FACTS[:4]  # to be seen to before anything else is compared
UNSEEN = FACTS[5:9]
QUESTIONS = {
    "outside": "Do rows lie outside the training data?",
    "covariate": "Do the features look different?",
    "class prior": "Do class shares differ?",
    "within class": "Do the features look different within a class?",
    "label": "Do equal features get other labels?",
}
WEIGHTS = {"outside": 0.5}  # of the joint error: rows outside show in the features too


@dataclass(frozen=True)
class Finding:
    """A fact, which is counted, or the answer of a test.

    Attributes
    ----------
    kind : str
        Of a fact: "missing column", "type", "date format", "unit", "timestamp", "new class",
        "new category", "newly missing", "constant", "range", "duplicates" or "identifier". Of a
        test: "outside", "covariate", "class prior", "label" or "within class".
    column : str or None
        The column it is about; None for the label, for whole rows and for tests.
    text : str
        One sentence.
    p_value : float
        How often random parts of one table show as much; 0 where chance has no say.
    found : bool
        Of a fact: whether chance explains it in fewer than 1 % of tables. Of a test: whether it is
        below 3 % after Holm's correction for all questions (within a class, which tells kinds
        apart: below 1 %).
    effect : float
        Share of validation rows that show it; of a test of features, class shares or labels, at
        least about this share would have to be exchanged or relabelled.
    interval : tuple of two floats
        95 % interval of ``effect`` of a test.
    rows : tuple of int
        The validation rows of a fact, from 0.
    factor : float
        By which validation is larger, of another unit.
    aside : bool
        Whether the column is left out of the comparison.
    """

    kind: str
    column: str | None = None
    text: str = ""
    p_value: float = 0.0
    found: bool = False
    effect: float = 0.0
    interval: tuple[float, float] = (0.0, 1.0)
    rows: tuple[int, ...] = ()
    factor: float = 1.0
    aside: bool = False

    @property
    def is_fact(self) -> bool:
        """Whether it was counted and not tested."""
        return self.kind in FACTS

    @property
    def is_news(self) -> bool:
        """Whether its rows have something that training never has, beyond chance."""
        return self.found and self.kind in UNSEEN and not self.aside

    @property
    def to_repair(self) -> bool:
        """Whether the column needs care before tables are compared or a model is fitted."""
        if self.kind in ("timestamp", "constant"):
            return self.aside and bool(self.rows)
        return self.kind in REPAIR


@dataclass(frozen=True)
class ListedRow:
    """A validation row outside the training support, or a training row likely to be mislabelled.

    Attributes
    ----------
    table : {"validation", "training"}
    row, line : int
        Its place in the table, from 0, and as a spreadsheet counts it: names are in line 1.
    p_value : float or None
        Of a row outside: how often a training row is as far from the others as this one.
    column, value : str
        What did it, and what stands there.
    label, likely : str or None
        Its label, and the likelier one where that label is likely wrong.
    probability : float or None
        Of the likelier label.
    text : str
        Why it is listed.
    columns : tuple of str
        All columns that did it, the strongest first.
    """

    table: str
    row: int
    line: int
    p_value: float | None
    column: str
    value: str
    label: str | None
    likely: str | None
    probability: float | None
    text: str
    columns: tuple[str, ...] = ()


def a_test(
    kind: str, p_value: float, effect: float, error: float = 0.0,
    interval: tuple[float, float] | None = None,
) -> Finding:  # fmt: skip
    """The answer of a test with a normal interval, unless one is given, between 0 and 1."""
    bounds = interval or (effect - 1.96 * error, effect + 1.96 * error)
    p, effect, low, high = (float(np.clip(v, 0, 1)) for v in (p_value, effect, *bounds))
    return Finding(kind, p_value=p, effect=effect, interval=(low, high))


def holm(tests: Sequence[Finding]) -> list[float]:
    """P-values corrected for the number of questions (Holm's step-down procedure, weighted)."""
    weight = np.array([WEIGHTS.get(test.kind, 1.0) for test in tests])
    alone = np.array([test.p_value for test in tests]) / weight
    order = np.argsort(alone, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]  # of this question and all after it
    corrected = np.empty(len(tests))
    corrected[order] = np.minimum(np.maximum.accumulate(alone[order] * left), 1)
    return corrected.tolist()


def answered(test: Finding, found: bool) -> Finding:
    """The test with its answer in words."""
    least, (low, high) = "at least " * (test.kind != "outside"), test.interval
    size = f"Yes, {least}{percent(test.effect)} of rows ({percent(low)} to {percent(high)})"
    if test.kind == "outside" and not test.effect:
        size = f"Yes, up to {percent(high)} of rows"
    text = f"{QUESTIONS[test.kind]} {size if found else 'Not shown'}, {p_in_words(test.p_value)}."
    return replace(test, found=found, text=text)


def p_in_words(p_value: float) -> str:
    """``p = 0.03`` or ``p < 0.001``."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def percent(share: float) -> str:
    """``12 %``; a share that rounds to nothing is still told from none."""
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def short(value: float) -> str:
    """Three digits, and no powers of ten where a person would not write them."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def counted(many: int, noun: str) -> str:
    """``1 row`` or ``1,204 rows``."""
    return f"{many:,} {noun}{'s' * (many != 1)}"


def some(lines: Iterable[str], most: int = 12) -> list[str]:
    """The first lines, and how many are left."""
    every = list(lines)
    return every[:most] + [f"And {len(every) - most} more."] * (len(every) > most)
