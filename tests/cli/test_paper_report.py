import pytest
from tests.cli.tables import run
from tests.paper.made_up import made_up

from giw.paper.plan import Run
from giw.paper.rows import Store


@pytest.fixture
def results(tmp_path):
    store = Store(tmp_path / "results")
    runs = [Run("mnist", "iii", "support", m, t, epochs=12) for m in ("giw", "diw") for t in (0, 1)]
    store.write([made_up(run) for run in runs])
    return store


def test_the_report_is_written_and_its_page_named(results, tmp_path):
    done = run("paper", "report", results.folder, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "4 results" in done.output
    assert (tmp_path / "out" / "report.html").exists()
    for suffix in ("txt", "md", "tex"):
        assert "GIW" in (tmp_path / "out" / f"tables.{suffix}").read_text(encoding="utf-8")


def test_without_a_folder_named_it_lies_among_the_results_and_can_be_made_again(results):
    for _ in range(2):
        done = run("paper", "report", results.folder)
        assert done.exit_code == 0, done.output
        assert "4 results" in done.output
    assert (results.folder / "report" / "report.html").exists()


def test_a_damaged_file_is_named_and_the_rest_reported(results, tmp_path):
    path = results.path(Run("mnist", "iii", "support", "diw", 1, epochs=12))
    path.write_text(path.read_text().replace('"seconds":', '"seconds":1', 1))
    done = run("paper", "report", results.folder, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert f"not used: {path.name}, line 1, was altered" in done.output
    assert "3 results" in done.output
    assert path.exists()  # a report changes nothing


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_results_is_one_line_and_exit_code_two(name, tmp_path):
    (tmp_path / "empty").mkdir()
    done = run("paper", "report", tmp_path / name, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1
    assert "run giw paper run first" in done.output
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line_too(results, tmp_path):
    (tmp_path / "taken").write_text("a file")
    done = run("paper", "report", results.folder, "-o", tmp_path / "taken")
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1


def test_tables_alone_are_those_of_the_report_and_nothing_is_written(results, tmp_path):
    done = run("paper", "report", results.folder, "--tables")
    assert done.exit_code == 0, done.output
    assert not (results.folder / "report").exists()
    run("paper", "report", results.folder, "-o", tmp_path / "out")
    assert done.output.strip() == (tmp_path / "out" / "tables.txt").read_text("utf-8").strip()
