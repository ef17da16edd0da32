"""``giw.diagnose``: from two samples to an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator
from giw.diagnosis.case import which_case
from giw.diagnosis.columns import compare_columns
from giw.diagnosis.data import Data, read, rows_of
from giw.diagnosis.findings import Finding, holm, in_words
from giw.diagnosis.labels import (
    Cost,
    ListedRow,
    cost_of_shift,
    cross_fit,
    expected_of,
    label_test,
    suspects_among,
    unexplained,
    wrong_by,
)  # fmt: skip
from giw.diagnosis.membership import odds_of_membership
from giw.diagnosis.outside import explain_outside
from giw.diagnosis.result import Diagnosis, GroupResult, Sizes
from giw.diagnosis.share import outside_list, support_share
from giw.diagnosis.shift_tests import (
    FEWEST,
    class_count_test,
    features_test,
    outside_test,
    single_p_values,
)  # fmt: skip
from giw.diagnosis.verdict import python_code, recommend
from giw.estimators.inputs import MOST_SPLIT, rows_to_split, usual_splitter
from giw.support import SupportSplit, SupportSplitter
from giw.support.scores import row_key, rows_repeat_by_nature
from giw.support.split import LABEL
from giw.tables import TableSample
from giw.weights import effective_sample_size

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
    groups: Any = None,
    groups_val: Any = None,
    model: Any = None,
    max_train: int = MOST_SPLIT,
    max_val: int = 5_000,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    on_step: OnStep | None = None,
) -> Diagnosis:
    """What has shifted between training and validation data, how much, where, and what to do.

    Larger data are sampled, and the result says so: shares and tests gain little from further
    rows. What is said of single rows is said of the sampled ones.

    Parameters
    ----------
    X : array of shape (n, d), data frame, Table or TableSample
        Training points. Text and missing values of data frames and tables are encoded. Of a sample
        of a larger file, rows are told by their number in the file, and class shares are those of
        the whole file.
    y : array of shape (n,) or None
        Training labels, of any type. Without them only features are compared.
    X_val : array of shape (m, d), data frame, Table or TableSample
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
    generator = as_generator(random_state)
    step(STEPS[0])
    of_train, of_val = _groups(groups, X, "groups"), _groups(groups_val, X_val, "groups_val")
    data = read(X, y, X_val, y_val, feature_names, (of_train, of_val))
    n, m = len(data.z_train), len(data.z_val)
    if n < FEWEST_TRAINING_ROWS:
        raise ValueError(
            f"need at least {FEWEST_TRAINING_ROWS} training rows to tell inside from outside, "
            f"got {n}"
        )
    samples = [side if isinstance(side, TableSample) else None for side in (X, X_val)]
    n_all, m_all = (k if s is None else s.total for k, s in zip((n, m), samples, strict=True))
    place, place_val = (
        np.arange(k) if s is None else s.rows for k, s in zip((n, m), samples, strict=True)
    )  # rows as the user counts them
    labels, known = data.labels, data.facts
    train = rows_to_split(n, labels.train, max_train)
    if of_train is not None:
        train = _sample(n, max_train, generator, of_train)
    val = _sample(m, max_val, generator, of_val)

    step(STEPS[1])
    splitter, split, conformal = _split(data, train, val)
    # rows of unseen classes and categories lie outside for certain; all else is asked of the rest
    news = np.array([row for f in known if f.is_news for row in f.rows], dtype=int)
    sure = np.isin(val, news)
    judged = replace(split, p_value=np.where(sure, 0.0, conformal))
    verdict = which_case(judged, data.z_train[train], data.z_val[val])
    share_inside, (low, high) = support_share(judged)
    interval = (1 - high, 1 - low)
    others = replace(judged, p_value=conformal[~sure])
    listed = np.flatnonzero(~sure)[outside_list(others)]
    tests: list[Finding | None] = []
    if not sure.all():
        low, high = support_share(others).interval
        bounds = (1 - high, 1 - low)
        tests.append(outside_test(others.p_value, splitter.n_held_out_, bounds, len(listed)))

    step(STEPS[2])
    # a copy is no new evidence, and a model that has seen one is not surprised by the other
    once, once_val = _once(data.z_train[train]), _once(data.z_val[val])
    few, asked_val = train[once][:MOST_TESTED], val[once_val][:MOST_TESTED]
    z, z_asked, columns = data.together(few, asked_val)
    single = single_p_values(z, z_asked, generator)
    rest = ~np.isin(asked_val, news)
    few_val, z_val = asked_val[rest], z_asked[rest]
    tests.append(features_test(z, z_val, generator, single=single if rest.all() else None))
    prior = None
    if labels.train is not None and labels.val is not None:
        counts = np.stack([labels.train_counts, labels.val_counts])
        if of_train is not None or of_val is not None:  # one row of each group
            each = (labels.train[train], labels.val[val])
            counts = np.stack([np.bincount(side, minlength=len(labels.names)) for side in each])
        there = np.bincount(labels.train, minlength=len(labels.names)) > 0
        prior = class_count_test(counts[0, there], counts[1, there], generator)
    tests.append(prior)

    step(STEPS[3])
    inside = rest & np.isin(asked_val, val[np.asarray(split.inside)])
    odds = odds_of_membership(z, z_asked[inside], generator)
    share = effective_sample_size(odds[0] / odds[0].mean()) / len(z) if inside.any() else 0.0

    step(STEPS[4])
    user = None if model is None else (model, X, y, X_val, y_val)
    asked = _labels(data, (z, z_asked), (few, asked_val), inside, odds, place, user, generator)
    tests.append(asked.test)
    shifts = holm([test for test in tests if test is not None])
    if labels.train is not None and labels.val is not None and any(t.found for t in shifts):
        # which kind of shift is it?
        strata = labels.train[few], labels.val[few_val]
        more, more_val = asked.surprise
        both = np.column_stack([z, *more]), np.column_stack([z_val, *(s[rest] for s in more_val)])
        within = features_test(*both, generator, strata=strata)
        if within is not None:
            shifts.append(replace(within, found=within.p_value <= FOLLOW_UP))
    findings = (*known, *map(in_words, shifts))

    step(STEPS[5])
    beyond = listed if any(t.kind == "outside" and t.found for t in shifts) else listed[:0]
    listed = np.union1d(beyond, np.flatnonzero(sure))
    p_value = judged.p_value
    listed = listed[np.argsort(p_value[listed], kind="stable")]
    rows, blamed = explain_outside(
        data,
        train_rows=train,
        val_rows=val[listed],
        p_value=p_value[listed],
        label_unseen=np.asarray(split.p_values.get(LABEL, np.ones(len(val))))[listed] == 0,
        numbers=place_val,
        generator=generator,
    )
    told = recommend(
        findings, case=verdict, outside=1 - share_inside, n_outside_rows=len(rows),
        n_new_rows=int(sure.sum()), effective_share=share,
    )  # fmt: skip
    frame = hasattr(X, "columns") or isinstance(X, TableSample)
    text = any(c.dtype == object or k in data.train.dates for k, c in data.train.columns.items())
    code = python_code(
        told.remedy, text=text, labels=labels.train is not None,
        val_labels=labels.val is not None, frame=frame, facts=known,
        names=data.names,
    )  # fmt: skip
    sizes = Sizes(
        n_all, m_all, len(dict.fromkeys(data.columns)), data.z_train.shape[1],
        len(train), len(val), len(few), len(few_val),
    )  # fmt: skip
    of_columns: dict[str, float] = {}
    for name, p in () if single is None else zip(columns, single.tolist(), strict=True):
        of_columns[name] = min(p, of_columns.get(name, 1.0))
    return Diagnosis(
        findings=tuple(replace(f, rows=tuple(place_val[list(f.rows)].tolist())) for f in findings),
        recommendation=replace(told, code=code),
        verdict=verdict,
        outside=1 - share_inside,
        outside_interval=interval,
        effective_sample_size=share * n_all,
        effective_share=share,
        columns=compare_columns(
            rows_of(data.train, train), rows_of(data.val, val), of_columns, dict(blamed),
            (labels.shares(), prior.p_value if prior else None),
        ),
        outside_rows=rows,
        outside_columns=blamed,
        suspects=asked.suspects,
        cost=asked.cost,
        groups=_by_group(data, splitter, of_val, max_val),
        class_shares=labels.shares(),
        split=split,
        val_rows=tuple(place_val[val].tolist()),
        sizes=sizes,
        notes=(*data.notes, *_notes(samples, sizes, len(train) - len(once), groups_val)),
    )  # fmt: skip


class OfLabels(NamedTuple):
    """What labels say: how surprising each is, and what follows from it."""

    test: Finding | None = None
    surprise: tuple[list[Floats], list[Floats]] = ([], [])
    suspects: tuple[ListedRow, ...] = ()
    cost: Cost | None = None


def _labels(
    data: Data,
    z: tuple[Floats, Floats],
    rows: tuple[Ints, Ints],
    inside: NDArray[np.bool_],
    odds: tuple[Floats, Floats],
    place: Ints,
    user: tuple[Any, Any, Any, Any, Any] | None,
    generator: np.random.Generator,
) -> OfLabels:
    """Cross-fit labels of training rows and ask all that can be asked of them."""
    labels = data.labels
    if labels.train is None or labels.val is None:
        return OfLabels()
    old, new = labels.train[rows[0]], labels.val[rows[1]]
    if len(np.unique(old)) < 2:
        return OfLabels()
    fitted = cross_fit(z[0], old, z[1], classes=len(labels.names), generator=generator)
    surprise, wrong = fitted.surprise(old, new), fitted.wrong(old, new)
    loss = wrong if user is None else wrong_by(*user, rows, fitted.fold)
    suspects = suspects_among(fitted, old, names=labels.names, row_numbers=place[rows[0]])
    test, cost = None, None
    if inside.sum() >= FEWEST:
        n = len(old)

        def both(pair: tuple[Floats, Floats]) -> Floats:
            """Training rows and validation rows inside."""
            return np.concatenate([pair[0], pair[1][inside]])

        f = np.column_stack([both(wrong), both(loss)])
        hoped = expected_of(both(z), f, generator, np.arange(len(f)) < n)
        left = unexplained(both(z), both(fitted.sureness()), both(surprise), generator)
        left = np.column_stack([left, f[:, 0] - hoped[:, 0]])
        test = label_test(odds, (left[:n], left[n:]), generator)
        name = "A forest" if user is None else type(user[0]).__name__
        last = hoped[:n, 1], hoped[n:, 1]
        cost = cost_of_shift(loss, last, odds[0], inside, generator, model=name)
    return OfLabels(test, ([surprise[0]], [surprise[1]]), suspects, cost)


def _groups(groups: Any, rows: Any, name: str) -> NDArray[Any] | None:
    """Names of groups, checked."""
    if groups is None:
        return None
    names, n = np.asarray(groups).astype(str), len(rows)
    if names.shape != (n,):
        raise ValueError(f"need one group per row, got shape {names.shape} for {n} rows in {name}")
    return names


def _sample(n: int, most: int, generator: np.random.Generator, groups: NDArray[Any] | None) -> Ints:
    """Rows in random order, so that any beginning of them is a sample too; one of each group."""
    rows = generator.permutation(n)
    if groups is not None:
        rows = rows[np.sort(np.unique(groups[rows], return_index=True)[1])]
    return rows[:most]


def _once(z: Floats) -> Ints:
    """The rows without copies of earlier ones; all of them where rows repeat by nature."""
    if rows_repeat_by_nature(z):
        return np.arange(len(z))
    return np.sort(np.unique(row_key(z), return_index=True)[1])


def _split(data: Data, train: Ints, val: Ints) -> tuple[SupportSplitter, SupportSplit, Floats]:
    """The splitter, the split as fits have it, and its p-values without labels."""
    splitter = usual_splitter(len(train))
    labels = data.labels
    numbers = data.z_train[train].astype(np.float32)
    splitter.fit(
        {"numbers": numbers, "levels": data.levels_train[train]},
        None if labels.train is None else labels.train[train],
    )
    rows = _both(data, val)
    split = splitter.split(rows)
    p_value = np.asarray(split.p_value)
    if labels.train is not None and labels.val is not None:
        split = splitter.split(rows, labels.val[val])
    return splitter, split, p_value


def _both(data: Data, val: Ints) -> dict[str, NDArray[Any]]:
    """Validation rows as the splitter sees them."""
    return {"numbers": data.z_val[val].astype(np.float32), "levels": data.levels_val[val]}


def _by_group(
    data: Data, splitter: SupportSplitter, groups: NDArray[Any] | None, most: int
) -> tuple[GroupResult, ...]:
    """Groups of validation rows, the strangest first."""
    if groups is None:
        return ()
    rows = np.arange(min(len(groups), most))
    split = splitter.split(_both(data, rows))
    p_value, outside = np.asarray(split.p_value), ~np.asarray(split.inside)
    found = []
    for name in np.unique(groups[rows]):
        own = groups[rows] == name
        p = min(1.0, 2 * float(np.median(p_value[own])))
        found.append(GroupResult(str(name), int(own.sum()), int(outside[own].sum()), p))
    return tuple(sorted(found, key=lambda g: (g.p_value, -g.outside / g.rows)))


def _notes(
    samples: Sequence[TableSample | None], sizes: Sizes, copies: int, groups: Any
) -> list[str]:
    """What was left out or sampled."""
    names = ("training", "validation")
    notes = [
        f"The {name} file was too large for the memory allowed: a random sample of "
        f"{len(side.rows):,} of its {side.total:,} rows was read, among them one of every rare "
        "category. Class shares are counted over all rows, everything else is said of the sample."
        for name, side in zip(names, samples, strict=True)
        if side is not None
    ]
    used = (sizes.n_train, sizes.used_train), (sizes.n_val, sizes.used_val)
    for name, (total, some) in zip(names, used, strict=True):
        if some < total:
            why = "one row of each group" if groups is not None else "a random sample"
            notes.append(f"Neighbours were searched in {why}: {some:,} of {total:,} {name} rows.")
    if sizes.tested_train < sizes.used_train or sizes.tested_val < sizes.used_val:
        notes.append(
            f"Tests and label hints use {sizes.tested_train:,} training and {sizes.tested_val:,} "
            "validation rows of these."
        )
    if copies:
        notes.append(f"{copies:,} training rows are copies of others and take no part in tests.")
    return notes
