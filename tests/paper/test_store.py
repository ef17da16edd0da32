import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.paper.plan import Run
from giw.paper.rows import Result, Store

RUN = Run("mnist", "iii", "support", "giw", 0)


def result(run=RUN, **changes):
    values = {"curve": np.linspace(0.5, 0.9, 20), "seconds": 1.5, "split": {"alpha": 0.4}}
    return Result(run, **(values | changes))


def test_a_result_comes_back_as_it_went(tmp_path):
    store = Store(tmp_path)
    assert not store.has(RUN)
    back = store.read(store.write(result()))
    assert store.has(RUN)
    assert back.run == RUN
    assert back.split == {"alpha": 0.4}
    np.testing.assert_allclose(back.curve, result().curve, atol=1e-6)
    assert back.accuracy == pytest.approx(np.mean(np.linspace(0.5, 0.9, 20)[-10:]), abs=1e-6)


def test_the_checksum_notices_one_changed_digit(tmp_path):
    store = Store(tmp_path)
    path = store.write(result())
    path.write_text(path.read_text().replace('"seconds":1.5', '"seconds":1.6'))
    with pytest.raises(ValueError, match=f"{path.name} was altered"):
        store.read(path)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_no_damage_is_read_as_a_result(tmp_path_factory, data):
    """Cut the file anywhere, or replace any byte: it is refused, or it is the same result."""
    store = Store(tmp_path_factory.mktemp("store"))
    path = store.write(result())
    whole = path.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        path.write_bytes(whole[:position])
    else:
        byte = data.draw(st.integers(0, 255))
        path.write_bytes(whole[:position] + bytes([byte]) + whole[position + 1 :])
    good, bad = store.read_all()
    if good:
        np.testing.assert_allclose(good[0].curve, result().curve, atol=1e-6)
        assert good[0].run == RUN
    else:
        assert path.name in bad[0]


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 1}', '{"format": 2, "crc32": 0}', "nul"])
def test_other_files_are_named_and_the_rest_is_read(tmp_path, text):
    store = Store(tmp_path)
    store.write(result())
    (tmp_path / "stranger.json").write_text(text)
    good, bad = store.read_all()
    assert [r.run for r in good] == [RUN]
    assert len(bad) == 1
    assert "stranger.json" in bad[0]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="run giw paper run first"):
        Store(tmp_path / "nowhere").read_all()


def test_nan_is_not_written(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        store.write(result(split={"alpha": float("nan")}))
    assert not store.has(RUN)
    assert [p for p in tmp_path.iterdir() if p.is_file()] == []


def test_no_file_of_a_job_has_its_name_before_all_are_on_the_disk(tmp_path, monkeypatch):
    runs = [replace(RUN, trial=trial) for trial in range(3)]
    named = []

    def flush(_):
        named.append(len(list(tmp_path.glob("*.json"))))

    monkeypatch.setattr(os, "fsync", flush)
    Store(tmp_path).write_all([result(run) for run in runs])
    assert named[:3] == [0, 0, 0]
    assert len(Store(tmp_path).read_all()[0]) == 3


def test_the_file_is_plain_json(tmp_path):
    path = Store(tmp_path).write(result())
    assert json.loads(path.read_text())["run"]["method"] == "giw"
