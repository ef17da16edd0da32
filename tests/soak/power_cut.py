"""Let the machine die at each step of a writing: what was not on the disk yet is gone.

After a power cut a file holds what was last handed to ``fsync``, whatever was written since, and a
folder the names that it had at its own ``fsync``, plus none, all or only the last of those given
since: file systems differ in that. Each of these disks is laid out and read.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from tests.soak.full_disk import kinds

CALLS = ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir")
HEADER = f"{'file':<26}{'disks':>8}{'old':>8}{'new':>8}{'losses':>8}"


@dataclass
class Disk:
    """What the disk surely holds: bytes of files and names in folders, both by inode.

    Every file that was seen is held open, so that no inode is given to another one.
    """

    root: Path
    content: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, tuple[int, bool]]] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)

    def sync_all(self) -> None:
        for folder, _, files in os.walk(self.root):
            self.sync(folder)
            for name in files:
                self.sync(Path(folder) / name)

    def sync(self, path: str | Path) -> None:
        path = Path(path)
        if path.is_dir():
            self.names[self.known(path)] = self.live(path)
        else:
            self.content[self.known(path)] = path.read_bytes()

    def known(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self.held:
            self.held[inode] = os.open(path, os.O_RDONLY)
        return inode

    def live(self, folder: Path) -> dict[str, tuple[int, bool]]:
        return {p.name: (self.known(p), p.is_dir()) for p in folder.iterdir()}

    def after_a_cut(self, last: Path | None) -> Iterator[dict[str, bytes]]:
        """Files by their place, for each way in which names may have reached the disk."""
        early, late = {}, dict(self.names)
        for folder, _, _ in os.walk(self.root):
            early[self.known(Path(folder))] = self.live(Path(folder))
        yield from (self._files({**late, **early}), self._files(late))
        if last is not None and last.exists() and last.parent.exists():
            at = self.known(last.parent)
            of_last = {**late.get(at, {}), last.name: (self.known(last), last.is_dir())}
            yield self._files({**early, **late, at: of_last})

    def _files(self, names) -> dict[str, bytes]:
        found, open_ = {}, [("", self.known(self.root))]
        while open_:
            place, inode = open_.pop()
            for name, (child, is_folder) in names.get(inode, {}).items():
                if is_folder:
                    found[f"{place}{name}/"] = b""
                    open_.append((f"{place}{name}/", child))
                else:
                    found[place + name] = self.content.get(child, b"")
        return found

    def close(self) -> None:
        for handle in self.held.values():
            os.close(handle)


@contextmanager
def told_of_every_call(tell: Callable[[Path | None], None], disk: Disk) -> Iterator[None]:
    """``tell`` is called after each call that the disk may notice, with the newest name."""
    real = {name: getattr(os, name) for name in CALLS}

    def watched(name):
        def call(*arguments, **how):
            found = real[name](*arguments, **how)
            if name == "fsync":
                disk.sync(os.readlink(f"/proc/self/fd/{arguments[0]}"))
            tell(Path(arguments[1]) if name in ("replace", "rename") else None)
            return found

        return call

    with patch.multiple(os, **{name: watched(name) for name in CALLS}):
        yield


@dataclass
class Cut:
    """What became of one kind of file."""

    name: str
    old: int = 0
    new: int = 0
    losses: int = 0
    said: str = ""

    disks: int = 0

    def line(self) -> str:
        return (
            f"{self.name:<26}{self.disks:>7}{self.old:>8}{self.new:>8}{self.losses:>8}  {self.said}"
        )


def cut(name: str, root: Path, write: Callable[[int], None], read: Callable[[], int]) -> Cut:
    """Write the first version, then the second, with the power off after each call."""
    found = Cut(name)
    write(1)
    disk = Disk(root)
    disk.sync_all()
    disks: list[tuple[bool, dict[str, bytes]]] = []

    def tell(last: Path | None) -> None:
        disks.extend((False, files) for files in disk.after_a_cut(last))

    with told_of_every_call(tell, disk):
        write(2)
    disks.extend((True, files) for files in disk.after_a_cut(None))
    aside = root.with_name(root.name + ".aside")
    root.rename(aside)
    for done, files in disks:
        for place, content in sorted(files.items()):
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            if place.endswith("/"):
                (root / place).mkdir(exist_ok=True)
            else:
                (root / place).write_bytes(content)
        try:
            version = read()
        except Exception as error:  # whatever it is, something half-written was read
            version, found.said = 0, f"{type(error).__name__}: {error}"[:200]
        found.disks += 1
        found.old += version == 1 and not done
        found.new += version == 2
        found.losses += version not in (1, 2) or (done and version == 1)
        shutil.rmtree(root)
    aside.rename(root)
    disk.close()
    return found


def cut_all(place: Path) -> Iterator[Cut]:
    """Checkpoints, results, saved models and pages."""
    for name, folder, write, read, _ in kinds(place):
        yield cut(name, folder, write, read)
