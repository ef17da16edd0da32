"""What is fuzzed: for each reader, files to spoil and how they are read."""

import gzip
import hashlib
import importlib.util
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from tests.soak.mutations import changed_json, changed_zip, lying_npz, spoiled

import giw
from giw.estimators.saving import INDEX, _hashed, _index_checksum, load_with_notes, save
from giw.nets.training.checkpoint import read_tensors, write_tensors
from giw.paper.plan import Run
from giw.paper.report import paper_sheets
from giw.paper.rows import Result, Store, encode
from giw.tables import read_table, sample_file


@dataclass(frozen=True)
class Target:
    """A reader under attack.

    Parameters
    ----------
    name : str
    cases : strategy
        Contents to read.
    read : callable
        From a content and an empty folder to whatever comes out.
    share : int
        How many of the cases it gets, in proportion to the others.
    """

    name: str
    cases: Any
    read: Callable[[Any, Path], Any]
    share: int = 1


def file_target(name, file, cases, read, share=1):
    def write_and_read(content, folder):
        (folder / file).write_bytes(content)
        return read(folder / file)

    return Target(name, cases, write_and_read, share)


# ---------------------------------------------------------------------- tables


def read_in_batches(path):
    """Read a table as `giw diagnose` reads one that does not fit, a few rows at a time."""
    return sample_file(path, 3, label="y", block_bytes=80)


def table_targets():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "x": [0.5, -1.0, np.nan, 2e9],
            "town": ["Rome", None, "Oslo", "α"],
            "day": pd.to_datetime(["2024-01-01", None, "1969-12-31", "2262-01-01"]),
            "flag": [True, False, True, True],
            "y": [0, 1, 1, 0],
        }
    )
    text = frame.to_csv(index=False)
    texts = [text, text.replace(",", ";"), 'a,b\n"1,2",3\n', "day\n2024-01-01\n9999-12-31\n"]
    csv = [one.encode() for one in texts]
    yield file_target("csv", "t.csv", spoiled(csv), read_table, 3)
    yield file_target("csv.gz", "t.csv.gz", spoiled([gzip.compress(csv[0])]), read_table)
    yield file_target("csv in batches", "t.csv", spoiled(csv), read_in_batches, 2)
    parquets = []
    for compression in ("snappy", None):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, compression=compression)
        parquets.append(buffer.getvalue())
    yield file_target("parquet", "t.parquet", spoiled(parquets), read_table, 3)
    yield file_target("parquet in batches", "t.parquet", spoiled(parquets), read_in_batches, 2)
    buffer = io.BytesIO()
    np.savez(buffer, X=np.eye(3), y=np.arange(3), name=np.array(["a", "b", "c"]))
    npz = buffer.getvalue()
    cases = spoiled([npz]) | changed_zip(npz) | lying_npz(["X", "y"])
    yield file_target("npz", "t.npz", cases, read_table, 3)


# ---------------------------------------------------------------------- saved models


def model_folders(folder):
    """Contents of the saved folders of a net, a linear model and boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    data = {"X_val": X[:8] + 1, "y_val": y[:8]}
    trees = HistGradientBoostingClassifier(max_iter=2, random_state=0)
    for model in (
        giw.GIWClassifier(max_epochs=1, pretrain_epochs=1, random_state=0),
        giw.ReweightedClassifier(LogisticRegression(), random_state=0),
        giw.ReweightedClassifier(trees, random_state=0),
    ):
        save(model.fit(X, y, **data), folder, notes={"label": "y"})
        yield {path.name: path.read_bytes() for path in folder.iterdir()}
        shutil.rmtree(folder)


@st.composite
def spoiled_model(draw, models):
    """One file of a folder is spoiled; half of the time all checksums are made to fit again."""
    files = dict(draw(st.sampled_from(models)))
    name = draw(st.sampled_from(sorted(files)))
    if draw(st.booleans()):
        files[name] = draw(spoiled([files[name]]))
        return files
    index = json.loads(files.pop(INDEX))
    if name == INDEX:
        index = draw(changed_json(index))
    else:
        old = files.pop(name)
        zipped = name.endswith(".skops")
        content = draw(changed_zip(old, [zipfile.ZIP_STORED]) if zipped else spoiled([old]))
        new = _hashed(name.partition("-")[0] + "." + name.rpartition(".")[2], content)
        files[new] = content
        index = json.loads(json.dumps(index).replace(name, new))
        digest = hashlib.sha256(content).hexdigest()
        index["files"][new] = {"sha256": digest, "bytes": len(content)}
    index["sha256"] = _index_checksum(index)
    files[INDEX] = json.dumps(index).encode()
    return files


def load_model(files, folder):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    load_with_notes(folder)


def model_targets(folder):
    net, *others = model_folders(folder / "model")
    yield Target("saved net", spoiled_model([net]), load_model, 3)
    yield Target("saved scikit-learn model", spoiled_model(others), load_model, 3)


def checkpoint_targets(folder):
    path = folder / "run"
    tensors = {"params/a": torch.ones(3, 2), "random/cpu": torch.arange(4)}
    write_tensors(path, tensors, {"format": "giw-checkpoint-2", "epoch": 1})
    raw = path.read_bytes()
    path.unlink()
    yield file_target("checkpoint", "run", spoiled([raw]), read_tensors, 2)


# ---------------------------------------------------------------------- results


def some_results():
    run = Run("mnist", "iii", "support", "giw", 0, epochs=2)
    other = Run("mnist", "iii", "support", "pooled", 1, variant="soft", epochs=2)
    extra = {"p_value": [0.1, 0.9], "inside": [1.0, 0.0]}
    about = {"giw": "0.1.0", "device": "cpu"}
    split = {"alpha": 0.4, "true_alpha": 0.4}
    return [
        Result(run, np.array([0.5, 0.75]), 1.5, split, {"effective_share": 0.3}, about, extra),
        Result(other, np.array([0.25, 1.0]), 0.5),
    ]


def sealed(body):
    """A result with a checksum that fits, whatever is in it."""
    values = {name: value for name, value in body.items() if name not in ("format", "crc32")}
    crc = zlib.crc32(json.dumps(values, sort_keys=True).encode())
    return json.dumps({"format": body.get("format"), "crc32": crc, **values}).encode()


def read_results(content, folder):
    """Everything is read, damaged lines are told, and what is good can be packed and shown."""
    files, packed = content
    store = folder / "store"
    store.mkdir()
    for number, raw in enumerate(files):
        (store / f"r{number}.jsonl").write_bytes(raw)
    (store / "mnist-iii-support.jsonl").write_bytes(b"\n".join(packed))
    good, bad = Store(store).read_all()
    for line in bad:
        if len(line.splitlines()) != 1:
            raise AssertionError(f"not one line: {line!r}")
    Store(folder / "packed").write(good)
    found = {path.name for path in folder.iterdir()}
    if not found <= {"store", "packed"}:
        raise AssertionError(f"{found} were written outside their folder")
    paper_sheets(good)
    if not good:
        raise ValueError(f"{store}: nothing to use")


def result_targets():
    lines = [encode(result).encode() for result in some_results()]
    sealed_lies = st.one_of(*[changed_json(json.loads(line)).map(sealed) for line in lines])
    one = spoiled(lines) | sealed_lies | st.sampled_from(lines)
    cases = st.tuples(st.lists(one, max_size=2), st.lists(one, max_size=2))
    yield Target("result store and packs", cases, read_results, 3)


def all_targets(folder: Path, only: Sequence[str] = ()) -> list[Target]:
    """All readers, or those with one of these words in their names; files are made in ``folder``.

    Tables are left out where pyarrow is not installed.
    """
    tables = table_targets() if importlib.util.find_spec("pyarrow") else ()
    every = [*tables, *model_targets(folder), *checkpoint_targets(folder), *result_targets()]
    return [one for one in every if not only or any(word in one.name for word in only)]
