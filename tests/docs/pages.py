"""Pages as programs: what a reader can paste, in the order in which it stands there."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
# hidden set-up for the tests, Python, commands with what they print; anything else is no example
BLOCK = re.compile(r"<!-- run\n(.*?)-->|^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:GIW_DATA=\S+ )?(python (?:benchmarks|examples)/\S+.*|giw .*)$")

FUTURE = "from __future__ import annotations\n"
SHELL = '''
import re as _re, subprocess as _subprocess
def _shell(command, expected):
    """Run it and compare line by line; numbers may differ, and … stands for any lines."""
    done = _subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    blur = lambda line: _re.sub(r"[0-9][0-9.,]*(e-?[0-9]+)?", "#", line.rstrip())
    said = [blur(line) for line in (done.stdout + done.stderr).splitlines()]
    for line in map(blur, expected):
        assert line in ("…", "") or line in said, (command, line, said)
'''


def program(text: str) -> str:
    """All examples of a page as one Python program; empty if there are none."""
    parts = []
    for hidden, kind, body in BLOCK.findall(text):
        if hidden or kind == "python":
            parts.append(hidden or body)
        elif kind == "console":
            parts += [f"_shell({command!r}, {said!r})" for command, said in console(body)]
    code = "\n".join([SHELL, *parts]).replace(FUTURE, "")
    return FUTURE + code if parts else ""  # it must come first


def console(body: str) -> list[tuple[str, list[str]]]:
    """Commands that follow a $, each with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def quoted_commands(text: str) -> list[list[str]]:
    """Commands that a page names without showing what they print, as words."""
    bodies = [body.replace("\\\n", " ") for _, kind, body in BLOCK.findall(text) if not kind]
    lines = [line for body in bodies for line in body.split("\n")]
    lines += re.findall(r"`([^`\n]+)`", text)
    found = (COMMAND.match(line.strip()) for line in lines)
    return [shlex.split(match[1].split("  #")[0]) for match in found if match]
