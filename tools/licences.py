"""Licences of everything that giw and its extras bring, as the installed packages state them.

    python tools/licences.py      # a table; exit code 1 where none is known, or one is not open

Packages are found by walking what ``giw`` requires, extras included, through all that these require
in turn. What is not installed here is named at the end.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OPEN = re.compile(
    r"MIT|BSD|Apache|ISC|Python Software Foundation|PSF|Mozilla|MPL|Unlicense|Zlib|HPND|GPL"
    r"|General Public License|Public Domain|0BSD|CC0",
    re.IGNORECASE,
)


def licence_of(found: Distribution) -> str:
    """The expression, else the classifiers, the first line of the field, or a name in the file."""
    about = found.metadata
    if about.get("License-Expression"):
        return about["License-Expression"]
    classes = [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    named = [c.rsplit(" :: ", 1)[1] for c in classes if not c.endswith("OSI Approved")]
    stated = "; ".join(named) or (about.get("License") or "").strip().partition("\n")[0]
    if OPEN.search(stated):
        return stated
    for path in found.files or ():
        text = path.locate() if "LICEN" in path.name.upper() and path.suffix != ".py" else None
        match = text and OPEN.search(text.read_text("utf-8", "replace"))
        if match:
            return f"{match[0]} ({path.name})"
    return stated


def required(found: Distribution, extras: set[str]) -> list[Requirement]:
    """What a package requires here, with these extras."""
    every = [Requirement(text) for text in found.requires or ()]
    environment = default_environment()
    return [
        one for one in every
        if one.marker is None
        or any(one.marker.evaluate({**environment, "extra": extra}) for extra in extras | {""})
    ]  # fmt: skip


def walk(name: str, extras: set[str]) -> tuple[dict[str, Distribution], set[str]]:
    """Every package below this one by its name, and names of those that are not installed."""
    there: dict[str, Distribution] = {}
    absent: set[str] = set()
    waiting, seen = [(name, frozenset(extras))], set()
    while waiting:
        key, wanted = waiting.pop()
        if (key, wanted) in seen:
            continue
        seen.add((key, wanted))
        try:
            there[key] = distribution(key)
        except PackageNotFoundError:
            absent.add(key)
            continue
        waiting += [
            (canonicalize_name(one.name), frozenset(one.extras))
            for one in required(there[key], set(wanted))
        ]
    return there, absent


def main() -> int:
    """Print the table."""
    try:
        extras = set(distribution("giw").metadata.get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        print(f"giw is not installed for {sys.executable}; run .venv/bin/python tools/licences.py")
        return 1
    there, absent = walk("giw", extras)
    unknown = 0
    for name, found in sorted(there.items()):
        licence = licence_of(found)
        told = licence if OPEN.search(licence) else f"{licence or 'none stated'}  ← look at it"
        unknown += told != licence
        print(f"{name:<28}{found.version:<14}{told}")
    print(f"{len(there)} packages, {unknown} to look at")
    if absent:
        print(f"not installed here: {', '.join(sorted(absent))}")
    return int(unknown > 0)


if __name__ == "__main__":
    sys.exit(main())
