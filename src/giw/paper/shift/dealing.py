"""How validation points are dealt, and how likely that made each of them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Draw = Literal["stratified", "iid"]
Protocol = Literal["honest", "published", "published_resampled"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
Indices = NDArray[np.int64]

PUBLISHED_SEED = 0  # the published protocol has one validation draw for all trials


def check_draw_and_protocol(draw: str, protocol: str) -> None:
    """Refuse names that are not offered."""
    for value, allowed, name in (
        (draw, ("stratified", "iid"), "draw"),
        (protocol, PROTOCOLS, "protocol"),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def equal_counts(groups: Indices, n: int) -> dict[int, int]:
    """``n`` points over groups as equally as can be, the lowest-numbered first."""
    each, rest = divmod(n, len(groups))
    return {int(g): each + (position < rest) for position, g in enumerate(groups)}


def deal(rows: Indices, group: Indices, n: int, counts: dict[int, int] | None) -> Indices:
    """Validation rows from the front of ``rows``, by group where counts are given."""
    if n < 1:
        raise ValueError(f"n_val must be at least 1, got {n}")
    if counts is None:
        if n > len(rows):
            raise ValueError(f"n_val={n} asks for more than the {len(rows)} points there are")
        return rows[:n]
    parts = {g: rows[group[rows] == g][:count] for g, count in counts.items()}
    for g, count in counts.items():
        if len(parts[g]) < count:
            raise ValueError(
                f"n_val={n} asks for {count} points of group {g}, which has {len(parts[g])} left; "
                "lower n_val or test_share"
            )
    return np.concatenate(list(parts.values()))


def density_by_group(
    group: Indices, wanted: Indices, counts: dict[int, int] | None
) -> NDArray[np.float64]:  # (largest group + 1,)
    """How likely validation draws one point of each group, up to one constant."""
    density = np.zeros(int(group.max()) + 1)
    for g in wanted:
        density[g] = 1.0 if counts is None else counts[int(g)] / np.sum(group == g)
    return density
