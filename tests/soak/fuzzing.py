"""Read spoiled files and count what comes out: a value, a documented error, or a loss."""

import pickle
import resource
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.soak.killing import start
from tests.soak.targets import Target, all_targets

DOCUMENTED = (ValueError, OSError)
# a reader may hold a few copies of a small file and what libraries need, and no more
MOST_BYTES = 64 * 2**20


@dataclass
class Fuzzed:
    """What became of the cases of one target."""

    name: str
    cases: int = 0
    read: int = 0
    refused: int = 0
    largest: int = 0  # bytes at the peak of one reading
    losses: Counter = field(default_factory=Counter)

    def line(self) -> str:
        return (
            f"{self.name:<26}{self.cases:>7}{self.read:>8}{self.refused:>9}"
            f"{self.largest / 2**20:>9.1f}{sum(self.losses.values()):>8}"
        )


HEADER = f"{'reader':<26}{'cases':>7}{'read':>8}{'refused':>9}{'MB most':>9}{'losses':>8}"


def judged(target: Target, content, folder: Path) -> tuple[str, int]:
    """One case: ``"read"``, ``"refused"`` or what was lost, and the bytes it took."""
    before = peak_bytes()
    outcome = "read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(content, folder)
    except DOCUMENTED as error:
        outcome = complaint(error, folder) or "refused"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"[:200]
    taken = peak_bytes() - before  # by how much this case raised the peak
    if taken > MOST_BYTES:
        outcome = f"took {taken / 2**20:.0f} MB"
    return outcome, taken


def complaint(error: BaseException, folder: Path) -> str:
    """What is wrong with an error: not one line, names no file, or comes from asking for memory."""
    text, cause = str(error), error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return f"asked for memory: {cause}"
        cause = cause.__cause__ or cause.__context__
    if len(text.splitlines()) != 1:
        return f"not one line: {text!r}"[:300]
    if folder.name not in text:
        return f"names no file: {type(error).__name__}: {text}"[:300]
    return ""


def fuzz(target: Target, cases: int, first_seed: int) -> Fuzzed:
    """So many cases of one target, the same for the same seed."""
    found = Fuzzed(target.name)

    def run(content):
        folder = Path(tempfile.mkdtemp(prefix="giw-fuzz-"))
        try:
            outcome, taken = judged(target, content, folder)
        finally:
            shutil.rmtree(folder)
        found.cases += 1
        found.largest = max(found.largest, taken)
        if outcome in ("read", "refused"):
            setattr(found, outcome, getattr(found, outcome) + 1)
        else:
            found.losses[outcome] += 1

    while found.cases < cases:  # hypothesis stops early where it has seen all that there is
        before = found.cases
        chosen = settings(
            max_examples=cases - before,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hypothesis does not like to print large files
            seed(first_seed)(chosen(given(target.cases)(run)))()
        first_seed += 1
        if found.cases == before:
            break
    return found


def shares(total: int, targets: list[Target]) -> dict[str, int]:
    """How many of all cases each target gets, by name."""
    whole = sum(target.share for target in targets)
    return {target.name: -(-total * target.share // whole) for target in targets}


def fuzz_all(total: int, first_seed: int = 0) -> Iterator[Fuzzed]:
    """Share so many cases among all targets, one after the other in this process."""
    with tempfile.TemporaryDirectory() as place:
        targets = all_targets(Path(place))
        counts = shares(total, targets)
        for number, target in enumerate(targets):
            yield fuzz(target, counts[target.name], first_seed + 1000 * number)


def fuzz_in_child(
    number: int, total: int, first_seed: int, only: Sequence[str], answer: Path
) -> None:
    """One target in a process of its own, which may die of it."""
    with tempfile.TemporaryDirectory() as place:
        targets = all_targets(Path(place), only)
        cases = shares(total, targets)[targets[number].name]
        limit_memory()
        found = fuzz(targets[number], cases, first_seed + 1000 * number)
    answer.write_bytes(pickle.dumps(found))


def fuzz_side_by_side(
    total: int, first_seed: int, processes: int, only: Sequence[str] = ()
) -> Iterator[Fuzzed]:
    """The same cases as :func:`fuzz_all`; a reader that ends its process is a loss, too."""
    with tempfile.TemporaryDirectory() as place:
        names = [target.name for target in all_targets(Path(place), only)]
        waiting, running = list(range(len(names))), {}
        while waiting or running:
            while waiting and len(running) < processes:
                number = waiting.pop(0)
                answer = Path(place) / f"answer-{number}"
                call = number, total, first_seed, only, answer
                running[number] = start(fuzz_in_child, *call), answer
            time.sleep(0.1)
            for number, (process, answer) in list(running.items()):
                if process.is_alive():
                    continue
                del running[number]
                if process.exitcode == 0:
                    yield pickle.loads(answer.read_bytes())
                else:
                    died = f"the process ended with {process.exitcode}"
                    yield Fuzzed(names[number], losses=Counter([died]))


def peak_bytes() -> int:
    """The most memory that this process has used so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def limit_memory(more: int = 2**30) -> None:
    """Let this process reserve so many bytes more and no more: whoever tries gets a MemoryError."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + more, resource.RLIM_INFINITY))
