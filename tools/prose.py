"""Words that pages, docstrings, comments and messages do not use, and what they use instead.

    python tools/prose.py

Prints every place, and exits with 1 if there is one. The words are those that an earlier version
had of its own; docs/glossary.md has what they are called now. Strings without a space are left
alone: they are keys of files and seeds, and renaming one would change results.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTEAD = {
    r"(in|from|of) the world|the world": "test data, the test distribution",
    r"strangers?": "outside point",
    r"vicinity": "label noise",
    r"relian(ce|t)": "weight",
    r"trusts?|trustworthy|distrusts?|doubt(s|ed|ful)?": "membership, or what is uncertain",
    r"wary|lean(s|ed|ing)?": "weight of a candidate",
    r"hand(s|ed)?[- ]?overs?": "weight",
    r"virtual (step|gradient)s?": "look-ahead step, meta-gradient",
    r"tells? the truth": "what is right, in figures",
    r"magic(al|ally)?|of course|simply|obviously": "nothing",
    r"state[- ]of[- ]the[- ]art|cutting[- ]edge|seamless(ly)?|leverag(e|es|ing)": "nothing",
}  # fmt: skip
WORDS = {re.compile(rf"\b({words})\b", re.IGNORECASE): new for words, new in INSTEAD.items()}
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")
PROGRAMS = ("src/giw/**/*.py", "examples/*.py", "benchmarks/*.py", "tools/**/*.py")
TEMPLATES = ("src/giw/**/*.html",)


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and prose: whole lines of a page; comments and strings of a program."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from enumerate((re.sub("<svg.*</svg>", "", line) for line in text.splitlines()), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        string = token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        if token.type == tokenize.COMMENT or (string and " " in token.string):
            yield from enumerate(token.string.splitlines(), token.start[0])


def complaints(path: Path) -> list[str]:
    """A line for every word that has another name."""
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return [
        f"{name}:{number}: {found[0]!r}; instead: {new}"
        for number, line in words_of(path)
        for pattern, new in WORDS.items()
        for found in pattern.finditer(line)
    ]


def files() -> list[Path]:
    """All pages, programs and templates, without this one."""
    every = (path for pattern in (*PAGES, *PROGRAMS, *TEMPLATES) for path in ROOT.glob(pattern))
    return sorted(path for path in every if path != Path(__file__).resolve())


def main() -> int:
    """Print it all."""
    found = [line for path in files() for line in complaints(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
