"""A golden on disk, and how far a later answer is from it."""

import json
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "made"
NUMBERS_FROM = ("numpy", "scipy", "scikit-learn", "torch")


def plain(value: Any, digits: int) -> Any:
    """Arrays, tensors, frozen results and numbers as what JSON holds, rounded to some digits."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def write(name: str, values: dict[str, Any], made: list[dict[str, str]]) -> None:
    """One line for each array, so that a change of one is seen in the history."""
    lines = [f'"made": {json.dumps(made, ensure_ascii=False)}']
    lines += [
        f"{json.dumps(key)}: {json.dumps(v, ensure_ascii=False)}" for key, v in values.items()
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(name: str) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The values, and the versions and reasons with which they were made, the last one last."""
    values = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return values, values.pop("made")


def versions() -> dict[str, str]:
    """Of what computes the numbers, down to the minor version."""
    return {name: ".".join(version(name).split(".")[:2]) for name in NUMBERS_FROM}


def differences(found: Any, golden: Any, tolerance: float, at: str = "") -> list[str]:
    """A line for each array, word or number that is not as it was."""
    if isinstance(golden, dict) and isinstance(found, dict):
        lines = [f"{at}.{name} is gone" for name in golden if name not in found]
        lines += [f"{at}.{name} is new" for name in found if name not in golden]
        for name in golden:
            if name in found:
                lines += differences(found[name], golden[name], tolerance, f"{at}.{name}")
        return lines
    if isinstance(golden, list) and isinstance(found, list):
        if len(found) != len(golden):
            return [f"{at} has {len(found)} entries, the golden {len(golden)}"]
        if _numeric(golden) and _numeric(found):
            return _far(np.array(found, float), np.array(golden, float), tolerance, at)
        pairs = enumerate(zip(found, golden, strict=True))
        return [d for i, (f, g) in pairs for d in differences(f, g, tolerance, f"{at}[{i}]")]
    if _number(golden) and _number(found):
        return _far(np.array([found], float), np.array([golden], float), tolerance, at)
    return [] if found == golden else [f"{at} is {found!r}, the golden {golden!r}"]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(values: list[Any]) -> bool:
    return bool(values) and all(map(_number, values))


def _far(found: np.ndarray, golden: np.ndarray, tolerance: float, at: str) -> list[str]:
    wrong = ~np.isclose(found, golden, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not wrong.any():
        return []
    gap = np.where(wrong, np.abs(found - golden), 0.0)
    worst = int(np.nanargmax(np.where(np.isnan(gap), np.inf, gap)))
    how = "no number" if isnan(gap[worst]) else f"{gap[worst]:.3g} apart"
    return [
        f"{at}: {int(wrong.sum())} of {len(wrong)} numbers differ, most at [{worst}]: "
        f"{found[worst]:.9g}, the golden {golden[worst]:.9g}, {how} (allowed {tolerance:g})"
    ]
