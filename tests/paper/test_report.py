"""The whole report from made-up results in a folder."""

import pytest
from tests.pages.test_page import Reader
from tests.paper.made_up import made_up

from giw.paper.frame import gather
from giw.paper.plan import Run, plan
from giw.paper.report import in_one_sentence, paper_report
from giw.paper.rows import Store, encode, read_folder

METHODS = ["giw", "diw", "pooled", "val_only"]


def fill(folder):
    """A little of everything, with a trial missing here and there."""
    few = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["support", "label_noise_0.2"]}
    grid = plan(**few, methods=METHODS, trials=3, epochs=12)
    grid += plan(datasets=["color_mnist"], shifts=["support"], methods=METHODS, trials=2, epochs=12)
    noise = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["label_noise_0.2"], "epochs": 12}
    variants = [
        "oracle",
        "out_to_in_0.3",
        "soft",
        "osvm_code",
        "hidden",
        "n_val_10",
        "n_train_10000",
    ]
    for variant in variants:
        grid += plan(**noise, methods=["giw"], variants=[variant], trials=2)
    grid += plan(**noise, methods=["giw", "diw"], protocols=["published"], trials=2)
    grid += plan(**few, methods=["giw"], trials=1, epochs=20)
    lacking = ("diw", "support", 1)
    Store(folder).write(
        [made_up(run) for run in grid if (run.method, run.shift, run.trial) != lacking]
    )
    damaged = made_up(Run("mnist", "iii", "support", "giw", 9, epochs=12))
    (folder / f"{damaged.run.key}.jsonl").write_text(encode(damaged)[:200])
    (folder / "notes.jsonl").write_text("{}")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    fill(folder)
    return paper_report(*read_folder(folder))


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    report.write(out)
    return out


def test_everything_is_written(report, written):
    names = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    figures = {f"figures/{p.name}.{kind}" for p in report.pictures for kind in ("svg", "png")}
    assert names == {"report.html", "tables.txt", "tables.md", "tables.tex"} | figures
    kinds = {p.name.split("-e1")[0].split("-e2")[0] for p in report.pictures}
    assert kinds == {
        *("curves", "scores", "split-errors", "n-train", "n-val"),
        "support-cases",
    }


def test_the_page_is_whole_and_its_index_leads_to_every_section(report, written):
    reader = Reader((written / "report.html").read_text(encoding="utf-8"))
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    links = [v for k, v in reader.attributes if k == "href"]
    assert links == [f"#s{n}" for n in range(1, len(report.page.sections) + 1)]
    assert {link[1:] for link in links} <= set(reader.ids)
    assert not {"script", "link", "iframe"} & set(reader.tags)
    for sheet in report.sheets:
        assert sheet.title in reader.words


def test_damaged_files_are_named_and_the_rest_is_reported(report, written):
    page = Reader((written / "report.html").read_text(encoding="utf-8")).words
    assert "2 files are damaged or no result" in page
    for name in ("mnist-iii-support-giw-honest-e12-s0-t9.jsonl", "notes.jsonl"):
        assert name in page
    assert f"{report.n_results} results were read" in page


def test_experiments_stand_apart(report):
    parts = [section.part for section in report.page.sections]
    assert "12 epochs, seed 0" in parts
    assert "20 epochs, seed 0" in parts
    names = [sheet.name for sheet in report.sheets]
    assert len(names) == len(set(names))
    assert {"accuracy-e12-s0-honest", "accuracy-e20-s0-honest"} <= set(names)


def test_the_same_results_give_the_same_bytes_wherever_they_lie(written, tmp_path):
    fill(tmp_path / "elsewhere")
    paper_report(*read_folder(tmp_path / "elsewhere")).write(tmp_path / "again")
    for path in sorted(p for p in written.rglob("*") if p.is_file()):
        assert (tmp_path / "again" / path.relative_to(written)).read_bytes() == path.read_bytes()


def test_a_folder_without_good_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no results in .*: empty; run giw paper run first"):
        read_folder(tmp_path)
    (tmp_path / "a.jsonl").write_text("{")
    with pytest.raises(ValueError, match=r"none of its 1 files is whole: a\.jsonl"):
        read_folder(tmp_path)
    with pytest.raises(ValueError, match="is no folder of results"):
        read_folder(tmp_path / "nowhere")


def test_results_from_elsewhere_alone_are_refused():
    with pytest.raises(ValueError, match="none of the 1 results"):
        paper_report([made_up(Run("digits", "iii", "support", "giw", 0), 0.5)])


def sentence(**accuracy):
    runs = [
        made_up(Run("mnist", "iii", "support", method, trial, epochs=12), value)
        for method, values in accuracy.items()
        for trial, value in enumerate(values)
    ]
    return in_one_sentence(gather(runs)[0])


def test_the_answer_says_when_giw_wins_and_when_it_loses():
    won = sentence(giw=[0.96, 0.97], diw=[0.5, 0.51])
    lost = sentence(giw=[0.5, 0.51], diw=[0.96, 0.97])
    assert "in 1 of 1 setting (honest protocol, 12 epochs, seed 0)" in won
    assert "in 0 of 1 setting" in lost
    assert "GIW was compared with no other method" in sentence(diw=[0.5, 0.6])


def test_ablations_alone_make_a_report_too(tmp_path):
    runs = [Run("mnist", "iii", "support", "giw", t, variant="soft", epochs=12) for t in (0, 1)]
    report = paper_report([made_up(run) for run in runs])
    assert "GIW was compared with no other method" in report.page.answer
    assert "soft-e12-s0" in [sheet.name for sheet in report.sheets]
    assert report.write(tmp_path).exists()
