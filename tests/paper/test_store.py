import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.paper.plan import Run
from giw.paper.rows import Result, Store

RUN = Run("mnist", "iii", "support", "giw", 0)
RUNS = [replace(RUN, shift=s, trial=t) for s in ("class_prior_10", "support") for t in (0, 1)]


def result(run=RUN, **changes):
    values = {"curve": np.linspace(0.5, 0.9, 20), "seconds": 1.5, "split": {"alpha": 0.4}}
    return Result(run, **(values | changes))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    store.write([result(run) for run in RUNS])
    return store


def test_results_come_back_as_they_went_from_a_file_for_each_setting(store):
    assert [p.name for p in store.files()] == [
        *("mnist-iii-class_prior_10.jsonl", "mnist-iii-support.jsonl")
    ]
    good, bad = Store(store.folder).read_all()
    assert bad == []
    assert [r.run for r in good] == RUNS
    for r in good:
        assert r.split == {"alpha": 0.4}
        np.testing.assert_allclose(r.curve, result().curve, atol=1e-6)
        assert r.accuracy == pytest.approx(np.mean(np.linspace(0.5, 0.9, 20)[-10:]), abs=1e-6)


def test_what_is_written_is_done_whoever_wrote_it(store):
    more = replace(RUN, trial=7)
    assert all(store.has(run) for run in RUNS)
    assert not store.has(more)
    Store(store.folder).write([result(more)])  # another process
    assert store.has(more)


def test_writing_again_adds_replaces_and_changes_no_other_byte(store):
    path = store.path(RUN)
    whole = path.read_bytes()
    store.write([result(run) for run in reversed(RUNS)])
    assert path.read_bytes() == whole
    store.write([result(RUN, seconds=99.0)])
    seconds = [json.loads(line)["seconds"] for line in path.read_text().splitlines()]
    assert seconds == [99.0, 1.5]


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_no_damage_is_read_as_a_result(tmp_path_factory, data):
    """Cut the file anywhere, or replace any byte: it is refused, or it is the same result."""
    store = Store(tmp_path_factory.mktemp("store"))
    (path,) = store.write([result()])
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


def test_a_damaged_row_is_named_with_its_line_set_aside_and_done_again(store):
    path = store.path(RUNS[0])
    first, second = path.read_text().splitlines()
    path.write_text(first.replace("1.5", "1.6") + "\n" + second + "\n")
    stranger = store.folder / "stranger.jsonl"
    stranger.write_text("{}")
    good, bad = store.read_all()
    assert len(good) == 3
    assert len(bad) == 2
    assert f"{path.name}, line 1, was altered" in bad[0]
    assert "stranger.jsonl, line 1, is no result" in bad[1]
    store.write([result(RUN)])  # what is damaged stays until it is set aside
    assert sorted(store.set_damaged_aside()) == sorted(bad)
    assert not stranger.exists()
    assert [run for run in RUNS if not store.has(run)] == [RUNS[0]]
    aside = {p.name: p.read_text() for p in (store.folder / "set_aside").iterdir()}
    assert aside == {path.name: first.replace("1.5", "1.6") + "\n", "stranger.jsonl": "{}\n"}
    assert store.set_damaged_aside() == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 1}', '{"format": 2, "crc32": 0}', "nul"])
def test_other_files_are_named_and_the_rest_is_read(store, text):
    (store.folder / "stranger.jsonl").write_text(text)
    good, bad = store.read_all()
    assert len(good) == len(RUNS)
    assert len(bad) == 1
    assert "stranger.jsonl" in bad[0]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="run giw paper run first"):
        Store(tmp_path / "nowhere").read_all()


def test_nan_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Store(tmp_path).write([result(split={"alpha": float("nan")})])
    assert Store(tmp_path).files() == []
