"""Memory and time of `giw diagnose` and uLSIF on more rows than one wants in memory.

    python benchmarks/streaming.py                         # 5 million rows × 20 columns
    python benchmarks/streaming.py --rows 500000
    python benchmarks/streaming.py --only csv              # diagnose, of csv files

Makes a training and a validation file in a temporary folder, a chunk at a time, and works on them
in processes of their own, whose largest resident memory is printed. A fifth of the validation rows
is moved by six standard deviations in column x7; columns x18 and x19 hold text and gaps.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PARTS = ("diagnose", "csv", "ulsif")
SPLIT_ROWS = 2_000  # validation rows that uLSIF sees
CHUNK = 250_000
DIAGNOSE = """
import sys
from giw.cli import app
app(["diagnose", sys.argv[1], sys.argv[2], "--label", "y", "--json"])
"""
CHUNKS = """
import sys, time
import numpy as np, pyarrow.parquet as pq, torch
import giw
train, val, what, columns, rows = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
torch.set_num_threads(1)
columns = [f"x{j}" for j in range(columns)]
walks = 0
def opened(path):
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
def chunks(path, dtype=np.float64):
    def pieces():
        global walks
        walks += 1
        for batch in opened(path).iter_batches(65_536, columns=columns, use_threads=False):
            yield np.stack([c.to_numpy() for c in batch.columns], axis=1).astype(dtype, copy=False)
    return pieces
val = np.concatenate(list(chunks(val)()))[:rows]
found = giw.ULSIF().fit(chunks(train), val)
print(f"effective sample size {giw.effective_sample_size(found.weight_):,.0f}")
"""


def write(path: Path, rows: int, columns: int, *, outside: float, seed: int) -> None:
    """A parquet or csv file, a chunk of rows at a time."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    kind = pq.ParquetWriter if path.suffix == ".parquet" else pyarrow.csv.CSVWriter
    writer = None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        x = rng.normal(size=(n, columns))
        y = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(np.int64)
        x[rng.random(n) < outside, 7] += 6
        table = {f"x{j}": x[:, j] for j in range(columns - 2)}
        table[f"x{columns - 2}"] = rng.choice(["red", "green", "blue"], n)
        table[f"x{columns - 1}"] = np.where(rng.random(n) < 0.1, np.nan, x[:, -1])
        part = pa.table({**table, "y": y})
        writer = writer or kind(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def measured(code: str, *arguments: str) -> tuple[str, float, float, float]:
    """Output, seconds, CPU seconds and largest resident memory in bytes of a Python program."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    # a process between, because the children's largest memory is over all of them
    wrapper = (
        "import resource, subprocess, sys\n"
        "call = [sys.executable, *sys.argv[1:]]\n"
        "done = subprocess.run(call, stdout=subprocess.PIPE, text=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "print(done.stdout, end='')\n"
        "sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapper, "-c", code, *arguments],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory, _, out = done.stdout.partition("\n")
    return out.strip(), time.perf_counter() - start, cpu, 1024 * float(memory)


def main() -> None:
    """Write, work, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--val-rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    for kind in ("parquet", "csv"):
        parts = [name for name in PARTS if (name == "csv") == (kind == "csv")]
        work([name for name in parts if options.only in (None, name)], kind, options)


def work(parts: list[str], kind: str, options: argparse.Namespace) -> None:
    """Write files of a kind, work on them, print."""
    if not parts:
        return
    with tempfile.TemporaryDirectory() as folder:
        train, val = Path(folder) / f"train.{kind}", Path(folder) / f"val.{kind}"
        write(train, options.rows, options.columns, outside=0.0, seed=0)
        write(val, options.val_rows, options.columns, outside=0.2, seed=1)
        files = (str(train), str(val))
        size = train.stat().st_size / 1e9
        print(
            f"{options.rows:,} × {options.columns} and label, {size:.2f} GB of {kind}", flush=True
        )
        for name in parts:
            if name in ("diagnose", "csv"):
                out, seconds, cpu, memory = measured(DIAGNOSE, *files)
                found = json.loads(out)
                low, high = found["outside_interval"]
                out = (
                    f"outside {found['outside']:.3f}, {low:.3f} to {high:.3f}; {found['notes'][0]}"
                )
            else:
                numbers = options.columns - 2
                told = (name, str(numbers), str(SPLIT_ROWS))
                out, seconds, cpu, memory = measured(CHUNKS, *files, *told)
            print(f"{name:<9} {memory / 1e9:5.2f} GB  {seconds:6.1f} s  {cpu:6.1f} CPU s  {out}")


if __name__ == "__main__":
    main()
