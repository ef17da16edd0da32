"""``giw.diagnose``: from two samples to an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from giw.checks import as_generator
from giw.diagnosis.columns import compare_columns
from giw.diagnosis.data import Data, Side, encoded_together, once, read
from giw.diagnosis.findings import FEWEST, Finding, Ints, answered, holm
from giw.diagnosis.labels import ask_of_labels
from giw.diagnosis.outside import explain_outside
from giw.diagnosis.result import Diagnosis, GroupResult, Sizes
from giw.diagnosis.share import outside_list, support_share, which_case
from giw.diagnosis.shift_tests import (
    class_count_test,
    features_test,
    largest_gaps,
    odds_of_membership,
    outside_test,
    together,
)
from giw.diagnosis.verdict import python_code, recommend
from giw.estimators.inputs import MOST_SPLIT, rows_to_split, usual_splitter
from giw.support import SupportSplitter
from giw.support.scores import row_key, rows_repeat_by_nature
from giw.support.split import LABEL
from giw.weights import effective_sample_size

STEPS = ("features", "support", "tests", "weights", "labels", "outside rows")


def diagnose(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
    groups_val: Any = None,
    model: Any = None,
    max_train: int = MOST_SPLIT,
    max_val: int = 5_000,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    on_step: Callable[[str], None] | None = None,
) -> Diagnosis:
    """What has shifted between training and validation data, how much, where, and what to do.

    Larger data are sampled, and the result says so: shares and tests gain little from further
    rows. What is said of single rows is said of the sampled ones.

    Parameters
    ----------
    X : array of shape (n, d), data frame or Table
        Training points. Text and missing values of data frames and tables are encoded. Of a sample
        of a larger file, rows are told by their number in the file, and class shares are those of
        the whole file.
    y : array of shape (n,) or None
        Training labels, of any type. Without them only features are compared.
    X_val : array of shape (m, d), data frame or Table
        Validation points from the distribution that the model will meet.
    y_val : array of shape (m,), optional
        Their labels.
    feature_names : sequence of str, optional
        Names for the columns of arrays.
    groups, groups_val : arrays of shape (n,) and (m,), optional
        Which rows belong together, such as those of one patient or day. Tests and intervals take
        one row of each group, because rows of a group are no independent evidence.
    model : classifier, optional
        Whose loss is taken apart: copies of it are fitted to ``X`` and ``y``, as they came, each
        without a fifth of the rows. If not given: a forest.
    max_train, max_val : int, default=10000 and 5000
        Rows in which neighbours are searched; more of them sharpen the split and take longer.
    random_state : int, numpy generator or None, default=0
        Seeds the random draws; None draws anew every time.
    on_step : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Diagnosis
        What shifted and what to do, as numbers, text and a page.

    Examples
    --------
    >>> import numpy as np, giw
    >>> rng = np.random.default_rng(0)
    >>> X, Xv = rng.normal(size=(400, 2)), rng.normal(size=(100, 2)) + [[6, 0]]
    >>> found = giw.diagnose(X, X[:, 1] > 0, Xv, Xv[:, 1] > 0)
    >>> found.recommendation.remedy, found.outside_columns[0][0]
    ('giw', 'x0')
    """
    step = on_step or (lambda name: None)
    generator, level = as_generator(random_state), 0.03  # of all tests; facts have 2 % more
    step(STEPS[0])
    data = read(X, y, X_val, y_val, feature_names, groups, groups_val)
    n, known = len(data.train), data.facts
    if n < 20:  # one in twenty is the least p-value that the split needs
        raise ValueError(f"need at least 20 training rows to tell inside from outside, got {n}")
    rows = rows_to_split(n, data.train.y, max_train)
    if groups is not None:
        rows = _sample(data.train, max_train, generator)
    train, val = data.train.at(rows), data.val.at(_sample(data.val, max_val, generator))

    step(STEPS[1])
    splitter = usual_splitter(len(train)).fit(train.split_by, train.y)
    split = splitter.split(val.split_by)
    conformal = np.asarray(split.p_value)
    if val.y is not None:
        split = splitter.split(val.split_by, val.y)
    # rows of unseen classes and categories lie outside for certain; all else is asked of the rest
    sure = np.isin(val.row, [row for fact in known if fact.is_news for row in fact.rows])
    judged = replace(split, p_value=np.where(sure, 0.0, conformal))
    others = replace(judged, p_value=conformal[~sure])
    listed = np.flatnonzero(~sure)[outside_list(others)]
    tests: list[Finding | None] = []
    if not sure.all():
        low, high = support_share(others).interval
        held_out = splitter.n_held_out_
        tests.append(outside_test(others.p_value, held_out, (1 - high, 1 - low), len(listed)))

    step(STEPS[2])
    # a copy is no new evidence, and a model that has seen one is not surprised by the other
    first, first_val = _without_copies(train), _without_copies(val)
    few, asked = train.at(first[:4_000]), first_val[:4_000]
    asked_val, rest = val.at(asked), ~sure[asked]
    z, z_val, columns = encoded_together(few.table, asked_val.table)
    single = None
    if min(len(z), len(z_val)) >= FEWEST:
        both, is_val = together(z, z_val)
        single = largest_gaps(both, is_val, np.zeros(len(both), dtype=np.int64), generator)
    every = single if rest.all() else None  # else features of the rest are compared anew
    tests.append(features_test(z, z_val[rest], generator, single=every))
    prior = None
    if train.y is not None and val.y is not None:
        counts, c = data.counts, len(data.classes)
        alone = (len(first), len(first_val)) == (len(train), len(val))
        if groups is not None or groups_val is not None or not alone:  # one row of each
            own = train.y[first], val.y[first_val]
            counts = np.stack([np.bincount(y, minlength=c) for y in own])
        there = np.unique(train.y)
        prior = class_count_test(counts[0, there], counts[1, there], generator)
    tests.append(prior)

    step(STEPS[3])
    inside = rest & np.asarray(split.inside)[asked]
    odds = odds_of_membership(z, z_val[inside], generator)
    share = effective_sample_size(odds[0] / odds[0].mean()) / len(z) if inside.any() else 0.0

    step(STEPS[4])
    user = None if model is None else (model, X, y, X_val, y_val)
    of_labels = ask_of_labels(
        few, asked_val, (z, z_val), inside, odds, data.classes, user, generator,
        mixed=prior is not None and prior.p_value <= level,
    )  # fmt: skip
    tests.append(of_labels.test)
    done = [test for test in tests if test is not None]
    shifts = [answered(t, p <= level) for t, p in zip(done, holm(done), strict=True)]
    if sure.any():  # these were not asked about
        shifts = [replace(t, text=t.text.replace("Do rows", "Do other rows")) for t in shifts]
    if few.y is not None and asked_val.y is not None and any(test.found for test in shifts):
        # which kind of shift is it?
        more, more_val = of_labels.surprise
        sides = np.hstack([z, more]), np.hstack([z_val, more_val])[rest]
        within = features_test(*sides, generator, strata=(few.y, asked_val.y[rest]))
        if within is not None:
            shifts.append(answered(within, within.p_value <= level / 3))

    step(STEPS[5])
    beyond = listed if any(t.kind == "outside" and t.found for t in shifts) else listed[:0]
    listed = np.union1d(beyond, np.flatnonzero(sure))
    listed = listed[np.argsort(judged.p_value[listed], kind="stable")]
    strange = np.asarray(split.p_values.get(LABEL, np.ones(len(val))))[listed] == 0
    outside_rows, blamed = explain_outside(
        data, train, val.at(listed), judged.p_value[listed], strange, generator
    )
    verdict, estimate = which_case(judged, train.z, val.z), support_share(judged)
    low, high = estimate.interval
    of_columns = {} if single is None else pd.Series(single, columns).groupby(level=0).min()
    classes: tuple[tuple[str, float, float], ...] = ()
    if val.y is not None:
        shares = (data.counts / data.counts.sum(axis=1, keepdims=True)).tolist()
        classes = tuple(zip(data.classes, *shares, strict=True))
    by_column = compare_columns(
        train.table, val.table, dict(of_columns), dict(blamed), classes,
        None if prior is None else prior.p_value,
    )  # fmt: skip
    # where some rows are outside for certain, columns differ by them, and tests ask of the others
    tested = by_column[bool(classes) :] if rest.all() else ()
    surely = (c.column for c in tested if (c.p_value or 1.0) <= level)
    told = recommend(
        (*known, *shifts), case=verdict, outside=1 - estimate.share,
        n_outside_rows=len(outside_rows), n_new_rows=int(sure.sum()), effective_share=share,
        label_p=of_labels.by_features, column=next(surely, ""),
    )  # fmt: skip
    if train.y is not None:
        told = replace(told, code=python_code(told.remedy, data, frame=hasattr(X, "columns")))
    sizes = Sizes(
        *data.total, len(set(data.encoder.feature_columns_)), data.train.z.shape[1],
        len(train), len(val), len(few), int(rest.sum()),
    )  # fmt: skip
    return Diagnosis(
        findings=(*known, *shifts),
        recommendation=told,
        verdict=verdict,
        outside=1 - estimate.share,
        outside_interval=(1 - high, 1 - low),
        effective_sample_size=share * data.total[0],
        effective_share=share,
        columns=by_column,
        outside_rows=outside_rows,
        outside_columns=blamed,
        suspects=of_labels.suspects,
        cost=of_labels.cost,
        groups=_by_group(data.val, splitter, max_val),
        class_shares=classes,
        split=split,
        val_rows=tuple(val.row.tolist()),
        sizes=sizes,
        notes=(*data.notes, *_notes(data, sizes, len(train) - len(first))),
    )  # fmt: skip


def _sample(side: Side, most: int, generator: np.random.Generator) -> Ints:
    """Rows in random order, so that any beginning of them is a sample too; one of each group."""
    rows = generator.permutation(len(side))
    return (rows if side.group is None else rows[once(side.group[rows])])[:most]


def _without_copies(side: Side) -> Ints:
    """The rows without copies of earlier ones; all of them where rows repeat by nature."""
    return once(np.arange(len(side)) if rows_repeat_by_nature(side.z) else row_key(side.z))


def _by_group(val: Side, splitter: SupportSplitter, most: int) -> tuple[GroupResult, ...]:
    """Groups of validation rows, the strangest first."""
    if val.group is None:
        return ()
    val = val.at(slice(most))
    split = splitter.split(val.split_by)
    rows = pd.DataFrame({"p": split.p_value, "outside": ~np.asarray(split.inside)})
    found = [
        GroupResult(str(name), len(own), int(own.outside.sum()), min(1.0, 2 * own.p.median()))
        for name, own in rows.groupby(np.asarray(val.group))
    ]
    return tuple(sorted(found, key=lambda g: (g.p_value, -g.outside / g.rows)))


def _notes(data: Data, sizes: Sizes, copies: int) -> list[str]:
    """What was left out or sampled."""
    sides = [("training", data.train, sizes.n_train, sizes.used_train),
             ("validation", data.val, sizes.n_val, sizes.used_val)]  # fmt: skip
    notes = [
        f"The {name} file was too large for the memory allowed: a random sample of "
        f"{len(side):,} of its {total:,} rows was read, among them one of every rare category. "
        "Class shares are counted over all rows, everything else is said of the sample."
        for name, side, total, _ in sides
        if len(side) < total
    ]
    for name, side, total, used in sides:
        if used < total:
            why = "a random sample" if side.group is None else "one row of each group"
            notes.append(f"Neighbours were searched in {why}: {used:,} of {total:,} {name} rows.")
    tested = sizes.tested_train, sizes.tested_val
    if tested != (sizes.used_train, sizes.used_val):
        told = "Tests and label hints use {:,} training and {:,} validation rows of these."
        notes.append(told.format(*tested))
    if copies:
        notes.append(f"{copies:,} training rows are copies of others and take no part in tests.")
    return notes
