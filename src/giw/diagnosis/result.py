"""What a diagnosis says: as an object, as text, as plain values and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from giw.diagnosis.case import CaseVerdict
from giw.diagnosis.columns import ColumnDrift
from giw.diagnosis.findings import Finding, ListedRow, counted, p_in_words, percent, some
from giw.diagnosis.labels import Cost
from giw.diagnosis.verdict import Recommendation
from giw.support import SupportSplit

COUNTED = "Rows are counted as in a spreadsheet, where row 1 holds the names."
PARTS = {
    "covariate": "features that training has seen and that are harder",
    "concept": "labels that differ at equal features",
    "outside": "rows outside the training data",
}


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


@dataclass(frozen=True)
class GroupResult:
    """One group of validation rows.

    Attributes
    ----------
    group : str
    rows, outside : int
        Its rows that were looked at, and those called outside.
    p_value : float
        Of "these rows are like training rows": twice the median over its rows, which holds however
        they depend on each other.
    """

    group: str
    rows: int
    outside: int
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What kind of shift this is, how large, where, and what to do.

    Attributes
    ----------
    findings : tuple of Finding
        Facts, the gravest first, and then tests; ``facts`` and ``shifts`` are the two parts.
    recommendation : Recommendation
        The answer and what to do.
    verdict : CaseVerdict
        Which of the cases (i) to (iv), with its bounds.
    outside : float
        Estimated share of the test distribution outside the training support.
    outside_interval : tuple of two floats
        Its 95 % interval.
    effective_sample_size, effective_share : float
        How many equally weighted training rows the weighted ones are worth, and what share.
    columns : tuple of ColumnDrift
        Every column, the most surely and strongly shifted first; the label leads.
    outside_rows : tuple of ListedRow
        Validation rows outside the training support with their reasons, the strangest first; at
        most a tenth of them lies inside, on average.
    outside_columns : tuple of (str, float)
        Columns by their mean share in the reasons.
    suspects : tuple of ListedRow
        Training rows whose label is contradicted, the clearest first.
    cost : Cost or None
        What the shift costs a model, in parts; None without labels on both sides.
    groups : tuple of GroupResult
        Groups of validation rows, the strangest first, where groups were named.
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

    findings: tuple[Finding, ...]
    recommendation: Recommendation
    verdict: CaseVerdict
    outside: float
    outside_interval: tuple[float, float]
    effective_sample_size: float
    effective_share: float
    columns: tuple[ColumnDrift, ...]
    outside_rows: tuple[ListedRow, ...]
    outside_columns: tuple[tuple[str, float], ...]
    suspects: tuple[ListedRow, ...]
    cost: Cost | None
    groups: tuple[GroupResult, ...]
    class_shares: tuple[tuple[str, float, float], ...]
    split: SupportSplit
    val_rows: tuple[int, ...]
    sizes: Sizes
    notes: tuple[str, ...]

    @property
    def facts(self) -> tuple[Finding, ...]:
        """What was counted."""
        return tuple(f for f in self.findings if f.is_fact)

    @property
    def shifts(self) -> tuple[Finding, ...]:
        """What was tested."""
        return tuple(f for f in self.findings if not f.is_fact)

    @property
    def n_outside_rows(self) -> int:
        """Number of rows listed as outside."""
        return len(self.outside_rows)

    def __repr__(self) -> str:
        """The answer, the remedy and the sizes, in one line."""
        told, sizes = self.recommendation, self.sizes
        return (
            f"Diagnosis({told.answer!r}, remedy={told.remedy!r}, "
            f"{len(self.facts)} facts, {self.n_outside_rows:,} rows listed as outside, "
            f"{sizes.n_train:,} training and {sizes.n_val:,} validation rows)"
        )

    def _repr_html_(self) -> str:
        """The page, in a frame of its own that runs no scripts."""
        from giw.diagnosis.page import diagnosis_page

        style = "width: 100%; height: 48rem; border: 0"
        page = escape(diagnosis_page(self))
        return f'<iframe sandbox="" style="{style}" srcdoc="{page}"></iframe>'

    def to_frame(self, of: str = "columns") -> pd.DataFrame:
        """One of the lists as a data frame.

        Parameters
        ----------
        of : {"columns", "findings", "rows", "groups"}, default="columns"
            Every column with its distance, p-value and histograms; facts and tests; rows outside
            and suspect labels, which ``giw diagnose --rows`` writes; groups of validation rows.
        """
        lists: dict[str, tuple[Any, tuple[Any, ...]]] = {
            "columns": (ColumnDrift, self.columns),
            "findings": (Finding, self.findings),
            "rows": (ListedRow, self.outside_rows + self.suspects),
            "groups": (GroupResult, self.groups),
        }
        if of not in lists:
            raise ValueError(f"of must be one of {', '.join(map(repr, lists))}, got {of!r}")
        kind, entries = lists[of]
        return pd.DataFrame(map(asdict, entries), columns=[field.name for field in fields(kind)])

    def summary(self) -> str:
        """The diagnosis in plain text."""
        told, (low, high) = self.recommendation, self.outside_interval
        few = self.verdict.train_outside
        evidence = [
            f"Outside the training data lie {percent(self.outside)} of the test distribution, "
            f"between {percent(low)} and {percent(high)} with 95 % confidence: "
            f"{' or '.join(f'case ({case})' for case in self.verdict.possible)}.",
            *(test.text for test in self.shifts),
            f"Training rows that validation never visits: {percent(few[0])} to {percent(few[1])} "
            "of training (bounded, never proved).",
            f"Weighted training rows are worth {self.effective_sample_size:,.0f} of "
            f"{self.sizes.n_train:,} ({percent(self.effective_share)}).",
        ]
        drifted = [c for c in self.columns if c.p_value is not None and c.p_value <= 0.05]
        lists = {
            "Facts": some(fact.text for fact in self.facts),
            "Evidence": evidence,
            "Columns that shifted most": [
                f"{c.column}: distance {c.distance:.2f}, {p_in_words(c.p_value or 0.0)}"
                for c in drifted[:5]
            ],
            "What it costs a model": cost_in_words(self.cost),
            f"{counted(self.n_outside_rows, 'validation row')} listed as outside": [
                f"row {r.line} ({p_in_words(r.p_value or 0.0)}): {r.text}"
                for r in self.outside_rows[:5]
            ],
            f"{counted(len(self.suspects), 'training label')} contradicted": [
                f"row {r.line}: {r.text}" for r in self.suspects[:5]
            ],
            "Groups outside": [
                f"{g.group}: {g.outside} of {g.rows} rows" for g in self.groups[:5] if g.outside
            ],
            "Code": told.code.splitlines(),
            "Next": told.next_steps,
            "Notes": (*self.notes, *[COUNTED] * bool(self.outside_rows or self.suspects)),
        }
        lines = [told.answer, told.action]
        for title, entries in lists.items():
            lines += ["", title, *(f"  {entry}" for entry in entries)] if len(entries) else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the split's arrays are left out."""
        apart = "split", "val_rows"
        return {name: value for name, value in asdict(self).items() if name not in apart}

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
        from giw.pages.page import write_html

        page = diagnosis_page(self, title=title, command=command, next_command=next_command)
        return write_html(page, path)


def cost_in_words(cost: Cost | None) -> list[str]:
    """Error rates, the largest part of the difference, and all parts."""
    if cost is None:
        return []
    name, points, low, high = max(cost.parts, key=lambda part: part[1])
    told = f"{cost.model} is wrong in {percent(cost.train)} of training rows that it has not seen "
    told += f"and in {percent(cost.val)} of validation rows. "
    if points > 0 and low > 0:
        told += f"Most of the loss is due to {PARTS[name]}: {_points(points, low, high)}."
    elif cost.val > cost.train:
        told += "No part of the loss is surely above nothing."
    else:
        told += "Nothing is lost."
    return [told, *(f"{PARTS[name]}: {_points(*part)}" for name, *part in cost.parts)]


def _points(value: float, low: float, high: float) -> str:
    """``3.1 points (1.0 to 5.2)`` of a hundred."""
    return f"{100 * value:.1f} points ({100 * low:.1f} to {100 * high:.1f})".replace("-", "−")
