"""``giw.diagnose``: from two samples to an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator, as_labels
from giw.diagnosis.code import python_code
from giw.diagnosis.facts import UNSEEN, Fact, facts
from giw.diagnosis.features import Features, as_features
from giw.diagnosis.label_noise import cross_fit, look_for_noise
from giw.diagnosis.label_shift import label_test
from giw.diagnosis.membership import odds_of_membership
from giw.diagnosis.outside import explain_outside
from giw.diagnosis.recommendation import recommend
from giw.diagnosis.result import Diagnosis, Sizes
from giw.diagnosis.share import outside_list, support_share
from giw.diagnosis.shift_tests import (
    ShiftTest,
    class_count_test,
    features_test,
    holm,
)
from giw.diagnosis.verdict import which_case
from giw.support import SupportSplit, SupportSplitter
from giw.support.matrices import row_key, rows_repeat_by_nature
from giw.support.split import LABEL
from giw.tables import Table, TableSample
from giw.weights import effective_sample_size

MOST_TRAIN, MOST_VAL = 20_000, 5_000  # rows in which neighbours are searched
FEWEST_TRAINING_ROWS = 20  # one in twenty is the least p-value that the split needs
MOST_TESTED = 4_000  # rows of either side from which a model learns to tell them apart
MOST_CLASSES, MOST_NUMBERS = 200, 20  # different labels that are classes whatever their share
STEPS = ("features", "support", "outside rows", "tests", "weights", "labels")
OnStep = Callable[[str], None]
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
    features = as_features(X, X_val, feature_names)
    n, m = len(features.z_train), len(features.z_val)
    if n < FEWEST_TRAINING_ROWS:
        raise ValueError(
            f"need at least {FEWEST_TRAINING_ROWS} training rows to tell inside from outside, "
            f"got {n}"
        )
    labels, names = _codes(y, y_val, n, m, drawn, drawn_val)
    place = np.arange(n) if drawn is None else drawn.rows  # rows as the user counts them
    place_val = np.arange(m) if drawn_val is None else drawn_val.rows
    train = _sample(n, max_train, generator, labels.train)
    val = _sample(m, max_val, generator)
    known = facts(features.train, features.val, *_values(y, y_val, n, m))

    step(STEPS[1])
    split = _surely_outside(_split(features, labels, train, val, generator), known, val)
    verdict = which_case(split, features.z_train[train], features.z_val[val])
    share_inside, (low, high) = support_share(split)
    outside, interval = 1 - share_inside, (1 - high, 1 - low)

    step(STEPS[2])
    listed = outside_list(split)
    rows, columns = explain_outside(
        features,
        train_rows=train,
        val_rows=val[listed],
        p_value=np.asarray(split.p_value)[listed],
        label=None if labels.val is None else [names[c] for c in labels.val[val[listed]]],
        label_unseen=np.asarray(split.p_values.get(LABEL, np.ones(len(val))))[listed] == 0,
        most=most_rows,
        generator=generator,
    )
    rows = tuple(replace(row, row=int(place_val[row.row])) for row in rows)

    step(STEPS[3])
    # a copy is no new evidence, and a model that has seen one is not surprised by the other
    once, once_val = _once(features.z_train[train]), _once(features.z_val[val])
    few_train, few_val = train[once][:MOST_TESTED], val[once_val][:MOST_TESTED]
    inside = few_val[np.asarray(split.inside)[once_val][:MOST_TESTED]]
    tests = _feature_tests(features, labels, few_train, few_val, generator)

    step(STEPS[4])
    z, z_inside = features.z_train[few_train], features.z_val[inside]
    odds = np.ones(len(z)), np.ones(len(inside))
    if len(inside) >= 2:
        odds = odds_of_membership(z, z_inside, generator)
    share = effective_sample_size(odds[0] / odds[0].mean()) / len(z)

    step(STEPS[5])
    noise = None
    if labels.train is not None and labels.val is not None:
        y, y_inside = labels.train[few_train], labels.val[inside]
        if len(np.unique(y)) > 1:
            fitted = cross_fit(z, y, z_inside, classes=len(names), generator=generator)
            noise = look_for_noise(fitted, y, y_inside, names=names, row_numbers=place[few_train])
            surprise, wrong = fitted.surprise(y, y_inside), fitted.wrong(y, y_inside)
            label_shift = label_test(z, z_inside, odds, surprise, wrong, generator)
            tests += [label_shift] if label_shift is not None else []

    shifts = holm(tests)
    recommendation = recommend(
        verdict=verdict,
        outside=outside,
        outside_interval=interval,
        tests=shifts,
        effective_share=share if len(inside) >= 2 else None,
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
        class_shares=_class_shares(labels, names),
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


@dataclass(frozen=True)
class _Labels:
    """Codes of both sides, None where there are no labels, and how often each class occurs."""

    train: Ints | None
    val: Ints | None
    train_counts: Ints
    val_counts: Ints


NOTHING = np.zeros(0, dtype=np.int64)


def _codes(
    y: Any, y_val: Any, n: int, m: int, drawn: TableSample | None, drawn_val: TableSample | None
) -> tuple[_Labels, list[str]]:
    if y is None:
        if y_val is not None:
            raise ValueError("y_val came without y; pass the training labels too")
        return _Labels(None, None, NOTHING, NOTHING), []
    train = as_labels(y, n, "y")
    val = None if y_val is None else as_labels(y_val, m, "y_val")
    if val is not None and (train.dtype.kind in "USO") != (val.dtype.kind in "USO"):
        raise ValueError(
            f"y holds {train.dtype} and y_val {val.dtype}: the same class must have the same label "
            "in both; convert one of them"
        )
    both = train if val is None else np.concatenate([train, val])
    classes, code = np.unique(both, return_inverse=True)
    most = MOST_NUMBERS if both.dtype.kind in "iuf" else MOST_CLASSES
    if len(classes) > max(most, 0.2 * len(both)):
        raise ValueError(
            f"the label has {len(classes)} different values in {len(both)} rows: that is a number "
            "and not a class; group it first, for example with pandas.cut"
        )
    code = code.reshape(-1).astype(np.int64)
    names = [str(value) for value in classes.tolist()]

    def counts(codes: Ints, sample: TableSample | None) -> Ints:
        if sample is None or sample.label_counts is None:
            return np.bincount(codes, minlength=len(names))
        return np.array([sample.label_counts.get(value, 0) for value in classes.tolist()])

    return _Labels(
        code[:n], None if val is None else code[n:],
        counts(code[:n], drawn), NOTHING if val is None else counts(code[n:], drawn_val),
    ), names  # fmt: skip


def _values(y: Any, y_val: Any, n: int, m: int) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Labels as they came, for facts to name."""
    sides = ((y, n, "y"), (y_val, m, "y_val"))
    train, val = (None if side is None else as_labels(side, k, name) for side, k, name in sides)
    return train, val


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
    features: Features, labels: _Labels, train: Ints, val: Ints, generator: np.random.Generator
) -> SupportSplit:
    splitter = SupportSplitter(random_state=int(generator.integers(2**31)))
    y = None if labels.train is None else labels.train[train]
    y_val = None if labels.val is None else labels.val[val]
    z, z_val = (a.astype(np.float32) for a in (features.z_train[train], features.z_val[val]))
    splitter.fit({"numbers": z, "levels": features.levels_train[train]}, y)
    return splitter.split({"numbers": z_val, "levels": features.levels_val[val]}, y_val)


def _text_columns(table: Table, *, by_name: bool) -> list[str | int]:
    """Columns that hold text, by name or, in an array, by position."""
    text = [table.columns[name].dtype == object for name in table.names]
    return [name if by_name else j for j, name in enumerate(table.names) if text[j]]


def _surely_outside(split: SupportSplit, known: Sequence[Fact], val: Ints) -> SupportSplit:
    """The split with rows of an unseen class or category outside, whatever their p-values."""
    rows = sorted({row for fact in known if fact.kind in UNSEEN for row in fact.rows})
    sure = np.isin(val, rows)
    inside = np.asarray(split.inside) & ~sure
    p_value = np.where(sure, 0.0, np.asarray(split.p_value))
    return replace(split, inside=inside, p_value=p_value, alpha=float(inside.mean()))


def _feature_tests(
    features: Features, labels: _Labels, train: Ints, val: Ints, generator: np.random.Generator
) -> list[ShiftTest]:
    z, z_val = features.z_train[train], features.z_val[val]
    found = [features_test(z, z_val, generator)]
    if labels.train is not None and labels.val is not None:
        found.append(class_count_test(labels.train_counts, labels.val_counts, generator))
        found.append(
            features_test(
                z,
                z_val,
                generator,
                stratum_train=labels.train[train],
                stratum_val=labels.val[val],
            )
        )
    return [test for test in found if test is not None]


def _class_shares(labels: _Labels, names: list[str]) -> tuple[tuple[str, float, float], ...]:
    if labels.train is None or labels.val is None:
        return ()
    train, val = (side / side.sum() for side in (labels.train_counts, labels.val_counts))
    return tuple((name, float(p), float(q)) for name, p, q in zip(names, train, val, strict=True))


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
