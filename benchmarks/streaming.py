"""Memory and time of `giw diagnose`, uLSIF and the split on more rows than one wants in memory.

    python benchmarks/streaming.py                         # 5 million rows × 20 columns
    python benchmarks/streaming.py --rows 500000

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

CHUNK = 250_000
DIAGNOSE = """
import sys
from giw.cli import app
app(["diagnose", sys.argv[1], sys.argv[2], "--label", "y", "--json"])
"""
CHUNKS = """
import sys, time
import numpy as np, pyarrow.parquet as pq
import giw
columns = [f"x{j}" for j in range(18)]
def opened(path):
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
def chunks(path):
    def pieces():
        for batch in opened(path).iter_batches(65_536, columns=columns, use_threads=False):
            yield np.stack([c.to_numpy() for c in batch.columns], axis=1)
    return pieces
val = np.concatenate(list(chunks(sys.argv[2])()))[:2_000]
if sys.argv[3] == "ulsif":
    found = giw.ULSIF().fit(chunks(sys.argv[1]), val)
    print(f"effective sample size {giw.effective_sample_size(found.weight_):,.0f}")
else:
    found = giw.SupportSplitter(cells="none", random_state=0).fit(chunks(sys.argv[1])).split(val)
    low, high = found.support_share_interval
    print(f"support share {found.support_share:.3f}, {low:.3f} to {high:.3f}")
"""


def write(path: Path, rows: int, columns: int, *, outside: float, seed: int) -> None:
    """A parquet file, a chunk of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
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
        writer = writer or pq.ParquetWriter(path, part.schema)
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
    parser.add_argument("--only", choices=["diagnose", "ulsif", "split"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train, val = Path(folder) / "train.parquet", Path(folder) / "val.parquet"
        write(train, options.rows, options.columns, outside=0.0, seed=0)
        write(val, options.val_rows, options.columns, outside=0.2, seed=1)
        files = (str(train), str(val))
        size = train.stat().st_size / 1e9
        print(f"{options.rows:,} × {options.columns} and label, {size:.2f} GB on disk")
        for name in [options.only] if options.only else ["diagnose", "ulsif", "split"]:
            if name == "diagnose":
                out, seconds, cpu, memory = measured(DIAGNOSE, *files)
                told = json.loads(out)
                low, high = told["outside_interval"]
                out = f"outside {told['outside']:.3f}, {low:.3f} to {high:.3f}; {told['notes'][0]}"
            else:
                out, seconds, cpu, memory = measured(CHUNKS, *files, name)
            print(f"{name:<9} {memory / 1e9:5.2f} GB  {seconds:6.1f} s  {cpu:6.1f} CPU s  {out}")


if __name__ == "__main__":
    main()
