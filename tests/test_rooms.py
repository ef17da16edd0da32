"""Data walks through the rooms one way."""

import ast
import re
from pathlib import Path

import pytest

import giw

ROOT = Path(giw.__file__).parent
ROOMS = ["checks", "threads", "writing", "pages", "tables", "weights", "support", "estimators"]
ROOMS += ["judging", "diagnosis", "objective", "nets", "paper", "cli"]
LEVEL = {room: max(position, 2) for position, room in enumerate(ROOMS)}  # files: one level


def room_of(module: str) -> str | None:
    """The room that ``giw.room.file`` belongs to, or None for anything outside the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "giw" else None


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports from, at any depth of the file, relative imports included."""
    package = ("giw", *path.relative_to(ROOT).parent.parts)
    found: set[str | None] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(room_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            if module == "giw":  # ``from giw import weights``
                found.update(room_of(f"giw.{alias.name}") for alias in node.names)
            else:
                found.add(room_of(module))
    return {room for room in found if room in LEVEL}


def wrong_way(path: Path) -> set[str]:
    """Rooms to the right of the file's own room from which it imports."""
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return {room for room in imported_rooms(path) if LEVEL[room] > LEVEL[own]}


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem in LEVEL]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_to_its_left(path):
    assert not wrong_way(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_paper_is_imported_by_its_commands_only(path):
    room, *rest = path.relative_to(ROOT).parts
    commands = {"paper.py"}
    assert "paper" not in imported_rooms(path) or room == "paper" or set(rest) <= commands


def test_every_file_belongs_to_a_room():
    strangers = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert strangers - set(ROOMS) <= {"__init__", "__main__"}


@pytest.mark.parametrize(
    "line",
    [
        "import giw.nets.methods.giw",
        "from giw.nets.methods import GIW",
        "from giw import nets",
        "from ..nets import GIW",
        "def late():\n    from giw.nets.methods.giw import GIW",
    ],
)
def test_an_import_from_the_right_is_noticed(tmp_path, monkeypatch, line):
    file = tmp_path / "weights" / "kmm.py"
    file.parent.mkdir()
    file.write_text(line)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)

    assert wrong_way(file) == {"nets"}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_tests_of_its_own(room):
    tests = Path(__file__).parent
    assert (tests / room).is_dir() or (tests / f"test_{room}.py").is_file()


def test_the_page_for_contributors_names_the_rooms_in_their_order():
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == ROOMS
