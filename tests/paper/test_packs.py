"""Results packed for keeping: one line each, one file for each setting."""

import json

import numpy as np
import pytest
from tests.paper.test_store import RUN, replace, result

from giw.paper.plan import Run
from giw.paper.rows import Store, for_figures

RUNS = [
    replace(RUN, shift=shift, trial=trial)
    for shift in ("support", "class_prior_10")
    for trial in (0, 1)
]


@pytest.fixture
def packed(tmp_path):
    store = Store(tmp_path)
    store.pack([result(run) for run in RUNS])
    return store


def test_packed_results_come_back_as_they_went(packed):
    names = [path.name for path in packed.packs()]
    assert names == ["mnist-iii-class_prior_10.jsonl", "mnist-iii-support.jsonl"]
    good, bad = packed.read_all()
    assert bad == []
    assert {r.run for r in good} == set(RUNS)
    for r in good:
        np.testing.assert_allclose(r.curve, result().curve, atol=1e-6)


def test_what_is_packed_is_done(packed):
    assert all(packed.has(run) for run in RUNS)
    more = replace(RUN, trial=7)
    assert not packed.has(more)
    Store(packed.folder).pack([result(more)])  # another process
    assert packed.has(more)


def test_packing_again_adds_replaces_and_changes_no_other_byte(packed):
    whole = packed.packs()[1].read_bytes()
    packed.pack([result(run) for run in reversed(RUNS)])
    assert packed.packs()[1].read_bytes() == whole
    packed.pack([result(RUN, seconds=99.0)])
    seconds = [json.loads(line)["seconds"] for line in packed.packs()[1].read_text().splitlines()]
    assert sorted(seconds) == [1.5, 99.0]


def test_a_file_of_its_own_comes_before_the_packed_row(packed):
    packed.write(result(RUN, seconds=7.0))
    good, _ = packed.read_all()
    assert [r.seconds for r in good if r.run == RUN] == [7.0]


def test_a_damaged_row_is_named_with_its_line_and_the_others_are_read(packed):
    path = packed.packs()[0]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace("0.9", "0.8"), lines[1]]) + "\n")
    good, bad = packed.read_all()
    assert len(good) == 3
    assert len(bad) == 1
    assert f"{path.name}, line 1," in bad[0]
    assert "altered" in bad[0]


def test_damaged_rows_and_files_are_set_aside_and_done_again(packed):
    path = packed.packs()[0]
    first, second = path.read_text().splitlines()
    path.write_text(first[:50] + "\n" + second + "\n")
    more = replace(RUN, trial=9)
    packed.write(result(more)).write_text("{")
    moved = packed.set_damaged_aside([*RUNS, more])
    assert len(moved) == 2
    assert packed.read_all()[1] == []
    assert len(packed.read_all()[0]) == 3
    assert [run for run in [*RUNS, more] if not packed.has(run)] == [RUNS[2], more]
    aside = {p.name: p.read_text() for p in (packed.folder / "set_aside").iterdir()}
    assert aside == {path.name: first[:50] + "\n", f"{more.key}.json": "{"}
    assert packed.set_damaged_aside([*RUNS, more]) == []


def test_only_arrays_that_a_figure_needs_are_kept():
    names = ("kernels", "kernels_shape", "train_images", "p_value", "score", "inside", "other")
    extra = {name: [1.0] for name in names}

    def kept(*run, **more):
        return set(for_figures(Run(*run, **more), extra))

    scores = {"p_value", "score", "inside"}
    kernels = {"kernels", "kernels_shape"}
    assert kept("color_mnist", "iii", "support", "giw", 0) == scores | kernels | {"train_images"}
    assert kept("color_mnist", "iii", "support", "giw", 1) == scores
    assert kept("color_mnist", "iii", "label_noise_0.2", "dann", 0) == kernels
    assert kept("color_mnist", "iii", "label_noise_0.4", "dann", 0) == set()
    assert kept("mnist", "iii", "support", "giw", 0, "published") == scores
    assert kept("mnist", "iii", "support", "giw", 0, variant="oracle") == set()


def test_whole_numbers_are_stored_short(tmp_path):
    images = {"train_images": [0.0, 255.0, 0.5]}
    path = Store(tmp_path).write(result(Run("mnist", "iii", "support", "giw", 0), extra=images))
    assert '"train_images":[0,255,0.5]' in path.read_text()
