"""What a diagnosis says: as an object, as text, as plain values and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from giw.diagnosis.columns import ColumnDrift
from giw.diagnosis.findings import (
    QUESTIONS,
    Finding,
    ListedRow,
    counted,
    p_in_words,
    percent,
    some,
)
from giw.diagnosis.labels import Cost
from giw.diagnosis.share import CaseVerdict
from giw.diagnosis.verdict import Recommendation
from giw.support import SupportSplit

COUNTED = "Rows are counted as in a spreadsheet, where row 1 holds the names."
PARTS = {
    "covariate": "features that training has seen and that are harder",
    "class prior": "other class shares",
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
        style = "width: 100%; height: 48rem; border: 0"
        return f'<iframe sandbox="" style="{style}" srcdoc="{escape(self._page())}"></iframe>'

    def _page(self, title: str = "", command: str = "", next_command: str = "") -> str:
        """The page: the answer, what to do, and then the evidence piece by piece."""
        from giw.pages.page import Page
        from giw.pages.style import BLUE, GREY, VERMILION

        p_value, inside = np.asarray(self.split.p_value), np.asarray(self.split.inside)
        sides = p_value[inside], p_value[~inside]
        heights = np.stack([np.histogram(side, 20, (0, 1))[0] for side in sides], axis=1).tolist()
        page = Page(
            title=title or "Training and validation data",
            answer=self.recommendation.answer,
            kicker="giw diagnose",
            footer=[f"Made by `{command}`."] if command else [],
        )
        return self._rendered(
            "diagnosis.html", page=page, code=next_command or self.recommendation.code,
            heights=heights, colors=(GREY, BLUE, VERMILION), parts=PARTS,
            questions=QUESTIONS, rows_counted=COUNTED, p=_short,
        )  # fmt: skip

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
        listed = bool(self.outside_rows or self.suspects)
        return self._rendered("summary.txt", p=p_in_words, notes=(*self.notes, *[COUNTED] * listed))

    def _rendered(self, template: str, **values: Any) -> str:
        """A template with this diagnosis and the ways to put numbers into words."""
        from giw.pages.page import render

        return render(
            template, found=self, cost=cost_in_words(self.cost), counted=counted, percent=percent,
            some=some, **values,
        ).strip()  # fmt: skip

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
        from giw.pages.page import write_html

        return write_html(self._page(title, command, next_command), path)


def cost_in_words(cost: Cost | None) -> list[str]:
    """Error rates, the largest part of the difference, and all parts."""
    if cost is None:
        return []
    name, points, low, high = max(cost.parts, key=lambda part: part[1])
    told = f"{cost.model} is wrong in {percent(cost.train)} of training rows that it has not seen "
    told += f"and in {percent(cost.val)} of validation rows. "
    if points > 0 and low > 0:
        part = _points(points, low, high)
        told += f"The largest part of the loss is due to {PARTS[name]}: {part}."
    elif cost.val > cost.train:
        told += "No part of the loss is surely above nothing."
    else:
        told += "Nothing is lost."
    return [told, *(f"{PARTS[name]}: {_points(*part)}" for name, *part in cost.parts)]


def _points(value: float, low: float, high: float) -> str:
    """``3.1 points (1.0 to 5.2)`` of a hundred."""
    return f"{100 * value:.1f} points ({100 * low:.1f} to {100 * high:.1f})".replace("-", "−")


def _short(p_value: float) -> str:
    """A p-value below a head that says what it is."""
    return p_in_words(p_value).removeprefix("p ").removeprefix("= ").replace(" ", "\u00a0")
