"""``giw.diagnose``: from two samples to an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator
from giw.diagnosis.code import python_code
from giw.diagnosis.facts import BY_CHANCE, UNSEEN
from giw.diagnosis.features import Features, Labels, as_classes, as_features, label_values
from giw.diagnosis.label_noise import cross_fit, look_for_noise
from giw.diagnosis.label_shift import label_test
from giw.diagnosis.membership import odds_of_membership
from giw.diagnosis.outside import explain_outside
from giw.diagnosis.recommendation import news_among, recommend
from giw.diagnosis.result import Diagnosis, Sizes
from giw.diagnosis.share import outside_list, support_share
from giw.diagnosis.shift_tests import (
    ShiftTest,
    class_count_test,
    features_test,
    holm,
    outside_test,
    unseen_test,
)
from giw.diagnosis.verdict import which_case
from giw.support import SupportSplit, SupportSplitter
from giw.support.neighbours import row_key, rows_repeat_by_nature
from giw.support.split import LABEL
from giw.tables import Table, TableSample, as_table
from giw.weights import effective_sample_size

MOST_TRAIN, MOST_VAL = 20_000, 5_000  # rows in which neighbours are searched
FEWEST_TRAINING_ROWS = 20  # one in twenty is the least p-value that the split needs
MOST_TESTED = 4_000  # rows of either side from which a model learns to tell them apart
FOLLOW_UP = 0.01  # level of the test within classes: it says which shift it is, not whether
STEPS = ("features", "support", "tests", "weights", "labels", "outside rows")
OnStep = Callable[[str], None]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def diagnose(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    most_rows: int = 50,
    max_train: int = MOST_TRAIN,
    max_val: int = MOST_VAL,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    on_step: OnStep | None = None,
) -> Diagnosis:
    """What has shifted between training and validation data, how much, where, and what to do.

    Larger data are sampled, and the result says so: shares and tests gain little from further
    rows. What is said of single rows is said of the sampled ones.

    Parameters
    ----------
    X : array of shape (n, d), data frame, Table or TableSample
        Training points. Text and missing values of data frames and tables are encoded.
    y : array of shape (n,) or None
        Training labels, of any type. Without them only features are compared.
    X_val : array of shape (m, d), data frame, Table or TableSample
        Of a sample of a larger file, rows are told by their number in the file, and class shares
        are those of the whole file.
        Validation points from the distribution that the model will meet.
    y_val : array of shape (m,), optional
        Their labels.
    feature_names : sequence of str, optional
        Names for the columns of arrays.
    most_rows : int, default=50
        Outside rows to explain.
    max_train, max_val : int
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
    generator = as_generator(random_state)
    step(STEPS[0])
    drawn, drawn_val = (x if isinstance(x, TableSample) else None for x in (X, X_val))
    X = as_table(X, "X", column_names=feature_names)
    X_val = as_table(X_val, "X_val", column_names=feature_names)
    values = label_values(y, y_val, len(X), len(X_val))
    features = as_features(X, X_val, *values)
    n, m = len(features.z_train), len(features.z_val)
    if n < FEWEST_TRAINING_ROWS:
        raise ValueError(
            f"need at least {FEWEST_TRAINING_ROWS} training rows to tell inside from outside, "
            f"got {n}"
        )
    known = features.facts
    labels = as_classes(*values, (drawn, drawn_val))
    place = np.arange(n) if drawn is None else drawn.rows  # rows as the user counts them
    place_val = np.arange(m) if drawn_val is None else drawn_val.rows
    train = _sample(n, max_train, generator, labels.train)
    val = _sample(m, max_val, generator)

    step(STEPS[1])
    split, conformal, n_held_out = _split(features, labels, train, val, generator)
    verdict = which_case(split, features.z_train[train], features.z_val[val])
    share_inside, (low, high) = support_share(split)
    outside, interval = 1 - share_inside, (1 - high, 1 - low)
    listed = outside_list(replace(split, p_value=conformal))
    text = [c for c in features.train.columns.values() if c.dtype == object]
    tests = [
        outside_test(conformal, n_held_out, interval=interval, listed=len(listed)),
        unseen_test(known, m, len(text) + labels.both),
    ]

    step(STEPS[2])
    # a copy is no new evidence, and a model that has seen one is not surprised by the other
    once, once_val = _once(features.z_train[train]), _once(features.z_val[val])
    few_train, few_val = train[once][:MOST_TESTED], val[once_val]
    news = [row for f in known if f.kind in UNSEEN and f.p_value <= BY_CHANCE for row in f.rows]
    few_val = few_val[~np.isin(few_val, news)][:MOST_TESTED]  # these are told apart already
    z, z_val, _ = features.together(few_train, few_val)
    tests += _feature_tests(z, z_val, labels, few_train, few_val, generator)

    step(STEPS[3])
    inside = np.isin(few_val, val[np.asarray(split.inside)])
    z_inside = z_val[inside]
    odds = np.ones(len(z)), np.ones(len(z_inside))
    if len(z_inside) >= 2:
        odds = odds_of_membership(z, z_inside, generator)
    share = effective_sample_size(odds[0] / odds[0].mean()) / len(z)

    step(STEPS[4])
    noise = None
    told: list[list[Floats]] = [[], []]  # how surprising each row's label is, on both sides
    if labels.train is not None and labels.val is not None:
        codes, codes_inside = labels.train[few_train], labels.val[few_val[inside]]
        if len(np.unique(codes)) > 1:
            fitted = cross_fit(z, codes, z_val, classes=len(labels.names), generator=generator)
            all_codes = labels.val[few_val]
            told = [[side] for side in fitted.surprise(codes, all_codes)]
            fitted = replace(fitted, val=fitted.val[:, inside])
            surprise = fitted.surprise(codes, codes_inside)
            wrong = fitted.wrong(codes, codes_inside)
            noise = look_for_noise(
                fitted, codes, codes_inside, names=labels.names, row_numbers=place[few_train]
            )
            label_shift = label_test(z, z_inside, odds, surprise, wrong, generator)
            tests += [label_shift] if label_shift is not None else []

    shifts = holm(tests)
    classes, classes_val = labels.train, labels.val
    if classes is not None and classes_val is not None and any(test.found for test in shifts):
        # which kind of shift is it?
        strata = {"stratum_train": classes[few_train], "stratum_val": classes_val[few_val]}
        within = features_test(
            np.column_stack([z, *told[0]]), np.column_stack([z_val, *told[1]]), generator, **strata
        )
        shifts += () if within is None else (replace(within, found=within.p_value <= FOLLOW_UP),)

    step(STEPS[5])
    sure = sorted({row for fact in news_among(known, shifts) for row in fact.rows})
    beyond = listed if any(t.kind == "outside" and t.found for t in shifts) else listed[:0]
    listed = np.union1d(beyond, np.flatnonzero(np.isin(val, sure)))
    p_value = np.where(np.isin(val, sure), 0.0, conformal)
    listed = listed[np.argsort(p_value[listed], kind="stable")]
    rows, columns = explain_outside(
        features,
        train_rows=train,
        val_rows=val[listed],
        p_value=p_value[listed],
        label=None if labels.val is None else [labels.names[c] for c in labels.val[val[listed]]],
        label_unseen=np.asarray(split.p_values.get(LABEL, np.ones(len(val))))[listed] == 0,
        most=most_rows,
        generator=generator,
    )
    rows = tuple(replace(row, row=int(place_val[row.row])) for row in rows)
    recommendation = recommend(
        verdict=verdict,
        outside=outside,
        outside_interval=interval,
        tests=shifts,
        effective_share=share if len(z_inside) >= 2 else None,
        noise=noise,
        n_outside_rows=len(listed),
        facts=known,
    )
    by_name = hasattr(X, "columns") or isinstance(X, TableSample)
    code = python_code(
        recommendation.remedy,
        _text_columns(features.train, by_name=by_name),
        labels=labels.train is not None,
        val_labels=labels.val is not None,
        frame=by_name,
    )
    n_columns = len(dict.fromkeys(features.columns))
    n_all, m_all = (k if s is None else s.total for k, s in ((n, drawn), (m, drawn_val)))
    sizes = Sizes(
        n_all, m_all, n_columns, features.z_train.shape[1],
        len(train), len(val), len(few_train), len(few_val),
    )  # fmt: skip
    return Diagnosis(
        facts=tuple(replace(f, rows=tuple(place_val[list(f.rows)].tolist())) for f in known),
        recommendation=replace(recommendation, code=code),
        verdict=verdict,
        outside=outside,
        outside_interval=interval,
        shifts=shifts,
        effective_sample_size=share * n_all,
        effective_share=share,
        outside_rows=rows,
        n_outside_rows=len(listed),
        outside_columns=columns,
        label_noise=noise,
        class_shares=labels.shares(),
        split=split,
        val_rows=tuple(place_val[val].tolist()),
        sizes=sizes,
        notes=(
            *features.notes,
            *_reading_notes(drawn, drawn_val),
            *_sampling_notes(sizes),
            *_copy_notes(len(train) - len(once)),
        ),
    )


def _sample(n: int, most: int, generator: np.random.Generator, label: Ints | None = None) -> Ints:
    """Rows in random order, so that any beginning of them is a sample too.

    With labels, the first row of every class that was not drawn comes last: a class so rare must
    not look as if it were not there.
    """
    rows = generator.permutation(n)[:most]
    if label is None or len(rows) == n:
        return rows
    value, first = np.unique(label, return_index=True)
    return np.concatenate([rows, first[~np.isin(value, label[rows])]])


def _once(z: NDArray[np.float64]) -> Ints:
    """The rows without copies of earlier ones; all of them where rows repeat by nature."""
    if rows_repeat_by_nature(z):
        return np.arange(len(z))
    return np.sort(np.unique(row_key(z), return_index=True)[1])


def _split(
    features: Features, labels: Labels, train: Ints, val: Ints, generator: np.random.Generator
) -> tuple[SupportSplit, Floats, int]:
    """The split as fits have it, its p-values without labels, and the rows that they rank among."""
    splitter = SupportSplitter(random_state=int(generator.integers(2**31)))
    z, z_val = (a.astype(np.float32) for a in (features.z_train[train], features.z_val[val]))
    splitter.fit(
        {"numbers": z, "levels": features.levels_train[train]},
        None if labels.train is None else labels.train[train],
    )
    rows = {"numbers": z_val, "levels": features.levels_val[val]}
    split = splitter.split(rows)
    p_value = np.asarray(split.p_value)
    if labels.train is not None and labels.val is not None:
        split = splitter.split(rows, labels.val[val])
    return split, p_value, splitter.n_held_out_


def _text_columns(table: Table, *, by_name: bool) -> list[str | int]:
    """Columns that hold text, by name or, in an array, by position."""
    text = [table.columns[name].dtype == object for name in table.names]
    return [name if by_name else j for j, name in enumerate(table.names) if text[j]]


def _feature_tests(
    z: Floats,
    z_val: Floats,
    labels: Labels,
    train: Ints,
    val: Ints,
    generator: np.random.Generator,
) -> list[ShiftTest]:
    found = [features_test(z, z_val, generator)]
    if labels.train is not None and labels.val is not None:
        known = np.bincount(labels.train, minlength=len(labels.names)) > 0
        counts = [labels.train_counts * known, labels.val_counts * known]
        found.append(class_count_test(counts[0], counts[1], generator))
    return [test for test in found if test is not None]


def _reading_notes(*sides: TableSample | None) -> list[str]:
    return [
        f"The {name} file was too large for the memory allowed: a random sample of "
        f"{len(side.rows):,} of its {side.total:,} rows was read, among them one of every rare "
        "category. Class shares are counted over all rows, everything else is said of the sample."
        for name, side in zip(("training", "validation"), sides, strict=True)
        if side is not None
    ]


def _copy_notes(copies: int) -> list[str]:
    if not copies:
        return []
    return [f"{copies:,} training rows are copies of others and take no part in tests."]


def _sampling_notes(sizes: Sizes) -> list[str]:
    notes = []
    for side, total, used in (
        ("training", sizes.n_train, sizes.used_train),
        ("validation", sizes.n_val, sizes.used_val),
    ):
        if used < total:
            notes.append(
                f"Neighbours were searched in a random sample of {used:,} of {total:,} {side} rows."
            )
    if sizes.tested_train < sizes.used_train or sizes.tested_val < sizes.used_val:
        notes.append(
            f"Tests and label hints use {sizes.tested_train:,} training and {sizes.tested_val:,} "
            "validation rows of these."
        )
    return notes
