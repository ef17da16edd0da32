"""One difference between two tables, counted or tested, and numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

NBSP = "\u00a0"  # a number and its unit stay on one line
FACTS = (
    "missing column", "type", "date format", "unit", "timestamp", "new class", "new category",
    "newly missing", "constant", "range", "duplicates", "identifier",
)  # fmt: skip
REPAIR = FACTS[:4]  # to be seen to before anything else is compared
UNSEEN = FACTS[5:9]
QUESTIONS = {
    "outside": "do rows lie outside the training data?",
    "covariate": "do the features look different?",
    "class prior": "do class shares differ?",
    "within class": "do the features look different within a class?",
    "label": "do equal features get other labels?",
}
WEIGHTS = {"outside": 0.5}  # of the joint error: rows outside show in the features too
LEVEL = 0.03  # of the questions together; facts have the rest of 5 %


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
    val_rows, train_rows : int
        Rows of each side that show a fact, or were tested.
    rows : tuple of int
        The validation rows of a fact, from 0.
    expected : float
        Rows that chance puts there, of an unseen class or category.
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
    val_rows: int = 0
    train_rows: int = 0
    rows: tuple[int, ...] = ()
    expected: float = 0.0
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
            return self.aside and self.val_rows > 0
        return self.kind in REPAIR


def a_test(
    kind: str,
    effect: float,
    error: float,
    p_value: float,
    *,
    rows: tuple[int, int] = (0, 0),
    interval: tuple[float, float] | None = None,
) -> Finding:
    """The answer of a test with a normal interval, unless one is given, between 0 and 1."""
    bounds = interval or (effect - 1.96 * error, effect + 1.96 * error)
    effect, low, high, p = (float(np.clip(v, 0, 1)) for v in (effect, *bounds, p_value))
    n, m = rows
    return Finding(
        kind, p_value=p, effect=effect, interval=(low, high), val_rows=m, train_rows=n
    )  # fmt: skip


def holm(tests: Sequence[Finding], *, level: float = LEVEL) -> list[Finding]:
    """Mark what is found, at a joint error of ``level`` (Holm's step-down procedure, weighted)."""
    weight = np.array([WEIGHTS.get(test.kind, 1.0) for test in tests])
    left = weight.sum()
    result = list(tests)
    for j in np.argsort([test.p_value for test in tests] / weight, kind="stable"):
        if tests[j].p_value > level * weight[j] / left:
            break
        result[j] = replace(tests[j], found=True)
        left -= weight[j]
    return result


def in_words(test: Finding) -> Finding:
    """The test with its sentence."""
    question, (low, high) = QUESTIONS[test.kind], test.interval
    least = "at least " * (test.kind != "outside")
    size = f"Yes, {least}{percent(test.effect)} of rows ({percent(low)} to {percent(high)})"
    told = f"{question[0].upper()}{question[1:]} {size if test.found else 'Not shown'}"
    return replace(test, text=f"{told}, {p_in_words(test.p_value)}.")


def p_in_words(p_value: float) -> str:
    """``p = 0.03`` or ``p < 0.001``."""
    told = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    return told.replace(" ", NBSP)


def percent(share: float) -> str:
    """``12 %``; a share that rounds to nothing is still told from none."""
    return f"under 1{NBSP}%" if 0 < share < 0.01 else f"{100 * share:.0f}{NBSP}%"


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
