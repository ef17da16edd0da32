"""``make soak``: much bad luck in a short time; counts are printed, losses are exit code 1.

With ``--minutes`` it goes on with new seeds until then, and ``--record`` adds what was counted to
``tests/soak/counts.csv``; ``--only-sum`` prints what that file adds up to.
"""

import argparse
import csv
import datetime
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import giw

COUNTS = Path(__file__).with_name("counts.csv")
WHAT = ("kills", "writes on a full disk", "disks after a power cut", "spoiled files")
COLUMNS = ("date", "giw", "minutes", *(word for what in WHAT for word in (what, f"{what}: losses")))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--cases", type=int, default=20_000, help="spoiled files to read")
    parser.add_argument("--kills", type=int, default=60, help="processes to kill")
    parser.add_argument("--processes", type=int, default=2, help="readers fuzzed side by side")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="work and readers with this word in their names; repeatable",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0, help="go on until then")
    parser.add_argument(
        "--record",
        nargs="?",
        type=Path,
        const=COUNTS,
        help=f"add the counts to this file ({COUNTS.name})",
    )
    parser.add_argument("--only-sum", action="store_true", help=f"what {COUNTS.name} adds up to")
    chosen = parser.parse_args()
    if chosen.only_sum:
        print(told_sum(recorded()))
        return 0
    from tests.soak import killing

    killing.prepare()
    counts, started, seed = Counter(), time.monotonic(), chosen.seed
    while True:
        if chosen.kills:
            counts += kill(chosen.kills, seed, chosen.only)
            counts += fill_disks()
            counts += cut_power()
        if chosen.cases:
            counts += fuzz(chosen.cases, seed, chosen.processes, chosen.only)
        minutes = (time.monotonic() - started) / 60
        losses = sum(counts[f"{what}: losses"] for what in WHAT)
        print(f"{losses} losses in {60 * minutes:.0f} s", flush=True)
        if minutes >= chosen.minutes:
            break
        seed += 1_000_000  # seeds of targets lie 1,000 apart
    if chosen.record:
        record(counts, minutes, chosen.record)
        print(told_sum(recorded(chosen.record)))
    return int(losses > 0)


def record(counts: Counter, minutes: float, path: Path) -> None:
    """One row more."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        today = datetime.datetime.now(datetime.UTC).date()
        about = {"date": today, "giw": giw.__version__, "minutes": f"{minutes:.0f}"}
        writer.writerow({name: counts[name] for name in COLUMNS} | about)


def recorded(path: Path = COUNTS) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told_sum(rows: list[dict[str, str]]) -> str:
    """What all rows add up to, as it stands in docs/reliability.md."""
    lines = [f"{'tried':<26}{'times':>9}{'losses':>8}"]
    for what in WHAT:
        tries, losses = (sum(int(row[name]) for row in rows) for name in (what, f"{what}: losses"))
        lines.append(f"{what:<26}{tries:>9,}{losses:>8}")
    dates = sorted(row["date"] for row in rows)
    return "\n".join([*lines, f"{len(rows)} runs, {dates[0]} to {dates[-1]}"])


def kill(kills: int, seed: int, only: list[str]) -> Counter:
    from tests.soak import killing
    from tests.soak.works import WORKS

    works = [work for work in WORKS if not only or any(word in work.name for word in only)]
    total = killing.Killed("all")
    print(killing.HEADER, flush=True)
    with tempfile.TemporaryDirectory() as place:
        for work in works:
            count = round(kills * work.share / sum(other.share for other in works))
            found = killing.kill_often(work, Path(place), count, seed)
            print(found.line(), found.said and f"  {found.said}", flush=True)
            total.phases += found.phases
            total.rounds += found.rounds
            total.losses += found.losses
    print(total.line() + "\n", flush=True)
    return counted("kills", total.kills, total.losses)


def fill_disks() -> Counter:
    from tests.soak import full_disk

    tries = losses = 0
    print(full_disk.HEADER, flush=True)
    with tempfile.TemporaryDirectory() as place:
        for found in full_disk.fill_all(Path(place), step=1):
            print(found.line(), flush=True)
            tries, losses = tries + found.tries, losses + found.losses
    print(flush=True)
    return counted("writes on a full disk", tries, losses)


def cut_power() -> Counter:
    from tests.soak import power_cut

    tries = losses = 0
    print(power_cut.HEADER, flush=True)
    with tempfile.TemporaryDirectory() as place:
        for found in power_cut.cut_all(Path(place)):
            print(found.line(), flush=True)
            tries, losses = tries + found.disks, losses + found.losses
    print(flush=True)
    return counted("disks after a power cut", tries, losses)


def fuzz(cases: int, seed: int, processes: int, only: list[str]) -> Counter:
    from tests.soak import fuzzing

    total = fuzzing.Fuzzed("all")
    print(fuzzing.HEADER, flush=True)
    for found in fuzzing.fuzz_side_by_side(cases, seed, processes, only):
        print(found.line(), flush=True)
        for said, count in found.losses.most_common(10):
            print(f"  {count} × {said}", flush=True)
        total.cases += found.cases
        total.read += found.read
        total.refused += found.refused
        total.largest = max(total.largest, found.largest)
        total.losses += found.losses
    print(total.line() + "\n", flush=True)
    return counted("spoiled files", total.cases, total.losses.total())


def counted(what: str, tries: int, losses: int) -> Counter:
    return Counter({what: tries, f"{what}: losses": losses})


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
