"""``make soak``: much bad luck in a short time; counts are printed, losses are exit code 1."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.soak import full_disk, fuzzing, killing
from tests.soak.works import WORKS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="spoiled files to read")
    parser.add_argument("--kills", type=int, default=60, help="processes to kill")
    parser.add_argument("--processes", type=int, default=2, help="readers fuzzed side by side")
    parser.add_argument("--only", default="", help="work with this word in its name")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    killing.prepare()
    losses, started = 0, time.monotonic()
    if chosen.kills:
        losses += kill(chosen.kills, chosen.seed, chosen.only)
        losses += fill_disks()
    if chosen.cases:
        losses += fuzz(chosen.cases, chosen.seed, chosen.processes)
    print(f"{losses} losses in {time.monotonic() - started:.0f} s", flush=True)
    return int(losses > 0)


def kill(kills: int, seed: int, only: str) -> int:
    works = [work for work in WORKS if only in work.name]
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
    return total.losses


def fill_disks() -> int:
    total = 0
    print(full_disk.HEADER, flush=True)
    with tempfile.TemporaryDirectory() as place:
        for found in full_disk.fill_all(Path(place), step=1):
            print(found.line(), flush=True)
            total += found.losses
    print(flush=True)
    return total


def fuzz(cases: int, seed: int, processes: int) -> int:
    total = fuzzing.Fuzzed("all")
    print(fuzzing.HEADER, flush=True)
    for found in fuzzing.fuzz_side_by_side(cases, seed, processes):
        print(found.line(), flush=True)
        for said, count in found.losses.most_common(10):
            print(f"  {count} × {said}", flush=True)
        total.cases += found.cases
        total.read += found.read
        total.refused += found.refused
        total.largest = max(total.largest, found.largest)
        total.losses += found.losses
    print(total.line() + "\n", flush=True)
    return sum(total.losses.values())


if __name__ == "__main__":
    raise SystemExit(main())
