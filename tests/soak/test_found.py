"""Each defect that spoiled files have shown, as one exact case."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from tests.soak.mutations import lying_npy
from tests.soak.targets import sealed, some_results

from giw.estimators.sklearn_on_disk import from_skops, to_skops
from giw.paper.rows import Store, decode, encode
from giw.tables import read_table, sample_file


def npz_of(folder, array, packed=zipfile.ZIP_STORED):
    with zipfile.ZipFile(folder / "t.npz", "w", packed) as archive:
        archive.writestr("X.npy", array)
    return folder / "t.npz"


@pytest.mark.parametrize(
    "array",
    [
        lying_npy([2**40]),
        lying_npy([2**40], body=bytes(8)),
        lying_npy([-1, 3]),
        lying_npy([2**40], "<U0"),
        lying_npy([0, 2**31]),
        lying_npy([3, 0]),
    ],
    ids=["items", "some", "negative", "no bytes each", "no rows", "no columns"],
)
@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_that_claims_more_than_there_is_is_refused_at_once(array, packed, tmp_path):
    with pytest.raises(ValueError, match=r"t\.npz"):
        read_table(npz_of(tmp_path, array, packed))


def test_a_zip_directory_that_backs_the_lie_up_is_refused_too(tmp_path):
    path = npz_of(tmp_path, lying_npy([2**28], "|u1"))
    raw = bytearray(path.read_bytes())
    head = len(lying_npy([2**28], "|u1"))
    place = raw.find(b"PK\x01\x02")
    raw[place + 24 : place + 28] = (2**28 + head).to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"t\.npz is not a whole npz file"):
        read_table(path)


def test_a_file_that_is_no_zip_archive_is_not_handed_to_numpy(tmp_path):
    (tmp_path / "t.npz").write_bytes(lying_npy([2**40]))
    with pytest.raises(ValueError, match=r"t\.npz is not a whole npz file"):
        read_table(tmp_path / "t.npz")


def test_rows_without_columns_may_be_as_many_as_they_claim(tmp_path):
    with pytest.raises(ValueError, match=r"t\.npz holds no rows"):
        read_table(npz_of(tmp_path, lying_npy([2**61, 0], "|u1")))


def test_text_of_characters_that_there_are_not_is_refused(tmp_path):
    """numpy hands them out, and Python's text ends with a SystemError."""
    array = lying_npy([1], "<U1", body=b"\xff\xff\xff\x7f")
    with pytest.raises(ValueError, match=r"t\.npz .*'X' holds text of characters"):
        read_table(npz_of(tmp_path, array))


def test_a_label_that_no_row_has_is_told_where_rows_are_counted(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": pd.array([None] * 3, dtype="Int64")}).to_parquet(path)
    with pytest.raises(ValueError, match=r"t\.parquet: some of 3 rows have no label in column 'y'"):
        sample_file(path, 2, label="y", block_bytes=80)


def test_arrays_in_skops_files_cannot_claim_more_than_there_is():
    """The array of a saved estimator is exchanged for one that claims a terabyte."""
    whole = to_skops(StandardScaler().fit(np.eye(3)), "model.skops")
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as archive:
        for name in old.namelist():
            array = name.endswith(".npy")
            archive.writestr(name, lying_npy([2**40]) if array else old.read(name))
    with pytest.raises(ValueError, match=r"model\.skops cannot be read .* claims shape"):
        from_skops(buffer.getvalue(), "model.skops")


def test_skops_files_cannot_hold_more_than_their_size():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", " " * 10**6)
    with pytest.raises(ValueError, match=r"'schema\.json' is compressed"):
        from_skops(buffer.getvalue(), "model.skops")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("dataset", "../../outside"),
        ("dataset", "/outside"),
        ("variant", "a\nb"),
        ("trial", -1),
        ("trial", True),
        ("epochs", 2.5),
        ("method", ["giw"]),
    ],
)
def test_a_run_of_strange_names_is_refused_and_nothing_leaves_the_folder(part, value, tmp_path):
    body = json.loads(encode(some_results()[0]))
    body["run"][part] = value
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "r.jsonl").write_bytes(sealed(body))
    good, bad = Store(tmp_path / "store").read_all()
    assert good == []
    assert part in bad[0]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("seconds", "long"),
        ("seconds", 10**400),
        ("curve", [0.5, "high"]),
        ("curve", [float("nan")]),
        ("split", {"alpha": None}),
        ("about", {"device": 3}),
        ("extra", {"p_value": [[0.1]]}),
    ],
)
def test_a_result_of_wrong_types_is_refused_where_it_is_read(part, value):
    body = json.loads(encode(some_results()[0]))
    body[part] = value
    with pytest.raises(ValueError, match=r"^r\.json was altered, or lacks"):
        decode(sealed(body).decode(), "r.json")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}"])
def test_json_that_python_cannot_take_is_refused_by_name(text):
    with pytest.raises(ValueError, match=r"^r\.json cannot be read"):
        decode(text, "r.json")


@pytest.mark.parametrize("in_batches", [True, False])
def test_a_text_that_is_no_utf_8_in_a_parquet_file_names_the_file(tmp_path, in_batches):
    path = tmp_path / "t.parquet"
    towns = pd.DataFrame({"x": [1.0, 2.0, 3.0], "town": ["Roma", "Oslo", "Roma"]})
    towns.to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"Roma", b"\xd2oma"))
    with pytest.raises(ValueError, match=r"t\.parquet is not UTF-8 text; save it as UTF-8"):
        (sample_file if in_batches else read_table)(path)


def test_times_without_a_unit_name_the_file(tmp_path):
    array = io.BytesIO()
    np.save(array, np.arange(3).view("<m8"))
    with pytest.raises(ValueError, match=r"t\.npz is not a whole npz file: "):
        read_table(npz_of(tmp_path, array.getvalue()))


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_npz_file_is_stored_or_deflated_as_numpy_does(tmp_path, packed):
    array = io.BytesIO()
    np.save(array, np.arange(3.0))
    with pytest.raises(ValueError, match=r"t\.npz .*numpy\.savez does not have"):
        read_table(npz_of(tmp_path, array.getvalue(), packed))


def test_numbers_in_place_of_names_are_told_in_one_line(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"3\x0b,4\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.csv: the first line must name .*\(3 ?, 4, …\)"):
        read_table(tmp_path / "t.csv")
