"""What a diagnosis says: as an object, as text, as plain values and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from giw.diagnosis.facts import Fact
from giw.diagnosis.label_noise import LabelNoise
from giw.diagnosis.outside import OutsideRow
from giw.diagnosis.recommendation import NBSP, Recommendation, p_in_words
from giw.diagnosis.shift_tests import ShiftTest
from giw.diagnosis.verdict import CaseVerdict
from giw.support import SupportSplit


@dataclass(frozen=True)
class Sizes:
    """How many rows there are, and how many of them were looked at."""

    n_train: int
    n_val: int
    n_columns: int
    n_features: int
    used_train: int
    used_val: int
    tested_train: int
    tested_val: int


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What kind of shift this is, how large, where, and what to do.

    Attributes
    ----------
    facts : tuple of Fact
        Differences that need no test, the gravest first; rows as the user counts them.
    recommendation : Recommendation
        The answer, what to do, and why.
    verdict : CaseVerdict
        Which of the cases (i) to (iv), with its bounds.
    outside : float
        Estimated share of the test distribution outside the training support.
    outside_interval : tuple of two floats
        Its 95 % interval.
    shifts : tuple of ShiftTest
        Features, class shares, features within classes, labels given features: what has shifted.
    effective_sample_size : float
        How many equally weighted training rows the weighted ones are worth.
    effective_share : float
        The same as a share of the training rows.
    outside_rows : tuple of OutsideRow
        Validation rows outside the training support with their reasons, the strangest first.
    n_outside_rows : int
        Length of the whole list; at most a tenth of it lies inside, on average.
    outside_columns : tuple of (str, float)
        Columns by their mean share in the reasons.
    label_noise : LabelNoise or None
        Hints at wrong training labels.
    class_shares : tuple of (str, float, float)
        Class, its share in training, its share in validation.
    split : SupportSplit
        Of the validation rows in use; ``val_rows`` says which.
    val_rows : tuple of int
        Numbers of the validation rows that were examined, all of them unless there are many.
    sizes : Sizes
        Numbers of rows and columns.
    notes : tuple of str
        What was left out or sampled.
    """

    facts: tuple[Fact, ...]
    recommendation: Recommendation
    verdict: CaseVerdict
    outside: float
    outside_interval: tuple[float, float]
    shifts: tuple[ShiftTest, ...]
    effective_sample_size: float
    effective_share: float
    outside_rows: tuple[OutsideRow, ...]
    n_outside_rows: int
    outside_columns: tuple[tuple[str, float], ...]
    label_noise: LabelNoise | None
    class_shares: tuple[tuple[str, float, float], ...]
    split: SupportSplit
    val_rows: tuple[int, ...]
    sizes: Sizes
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """The answer, the remedy and the sizes, in one line."""
        return (
            (
                f"Diagnosis({self.recommendation.answer!r}, remedy={self.recommendation.remedy!r}, "
                f"{len(self.facts)} facts, {self.n_outside_rows:,} rows listed as outside, "
                f"{self.sizes.n_train:,} training and {self.sizes.n_val:,} validation rows)"
            )
            .replace(NBSP, " ")
            .replace("\\xa0", " ")
        )

    def _repr_html_(self) -> str:
        """The page, in a frame of its own that runs no scripts."""
        from giw.diagnosis.page import diagnosis_page
        from giw.pages import render_page

        page = escape(render_page(diagnosis_page(self)))
        style = "width: 100%; height: 48rem; border: 0"
        return f'<iframe sandbox="" style="{style}" srcdoc="{page}"></iframe>'

    def to_frame(self) -> Any:
        """Facts and tests as a data frame, one row each: kind, column, text, rows and p-value."""
        import pandas as pd

        names = ["kind", "column", "text", "val_rows", "train_rows", "effect", "p_value", "found"]
        told: list[list[Any]] = [
            [f.kind, f.column, f.text, f.val_rows, f.train_rows, None, None, True]
            for f in self.facts
        ]
        lines = self.recommendation.evidence[1:]
        told += [
            [test.kind, None, line.replace(NBSP, " "), self.sizes.tested_val,
             self.sizes.tested_train, test.effect, test.p_value, test.found]
            for test, line in zip(self.shifts, lines, strict=True)
        ]  # fmt: skip
        return pd.DataFrame(told, columns=names)

    def summary(self) -> str:
        """The diagnosis in plain text."""
        told = self.recommendation
        lines = [told.answer, told.action]
        lines += ["", "Facts", *(f"  {fact.text}" for fact in self.facts)] if self.facts else []
        lines += ["", "Evidence"]
        lines += [f"  {line}" for line in told.evidence]
        low, high = self.verdict.train_outside
        lines.append(
            f"  Training rows that validation never visits: {100 * low:.0f} to {100 * high:.0f} % "
            "of training (bounded, never proved)."
        )
        lines.append(
            f"  Weighted training rows are worth {self.effective_sample_size:,.0f} of "
            f"{self.sizes.n_train:,} ({100 * self.effective_share:.0f} %)."
        )
        if self.n_outside_rows:
            columns = ", ".join(f"{name} {100 * s:.0f} %" for name, s in self.outside_columns[:5])
            lines += ["", f"{self.n_outside_rows:,} validation rows are listed as outside"]
            lines += [f"  columns behind it: {columns}"] * bool(columns)
            lines += [f"  {line}" for line in map(row_in_words, self.outside_rows[:5])]
        if self.label_noise is not None and self.label_noise.n_suspects:
            lines += ["", f"{self.label_noise.n_suspects:,} training labels are contradicted"]
            lines += [
                f"  row {s.row}: {s.label}, likelier {s.likely} ({100 * s.probability:.0f} %)"
                for s in self.label_noise.suspects[:5]
            ]
        if told.code:
            lines += ["", "Code", *(f"  {line}" for line in told.code.splitlines())]
        for title, items in (("Next", told.next_steps), ("Notes", self.notes)):
            if items:
                lines += ["", title, *(f"  {item}" for item in items)]
        return "\n".join(lines).replace(NBSP, " ")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the split's arrays are left out."""
        names = [name for name in self.__dataclass_fields__ if name not in ("split", "val_rows")]
        return {name: _plain(getattr(self, name)) for name in names}

    def to_html(
        self, path: str | Path, *, title: str = "", command: str = "", next_command: str = ""
    ) -> Path:
        """Write a page that stands alone, for people; folders on the way are made.

        Parameters
        ----------
        path : path
            Where the page is written.
        title : str, optional
            What stands above the answer.
        command : str, optional
            How the page was made, for its foot.
        next_command : str, optional
            What to run next, in the place of the Python code.
        """
        from giw.diagnosis.page import diagnosis_page
        from giw.pages import write_page

        page = diagnosis_page(self, title=title, command=command, next_command=next_command)
        return write_page(page, path)


def row_in_words(row: OutsideRow) -> str:
    """``row 12 (p = 0.0004): age 93 (usually 18 to 65)``."""
    return f"row {row.row} ({p_in_words(row.p_value)}): {reasons_in_words(row)}"


def reasons_in_words(row: OutsideRow) -> str:
    """Why the row is outside."""
    reasons = ["label not in training"] * row.label_unseen
    reasons += [reason.words for reason in row.reasons]
    return "; ".join(reasons) or "an unusual combination of ordinary values"


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.replace(NBSP, " ") if isinstance(value, str) else value
