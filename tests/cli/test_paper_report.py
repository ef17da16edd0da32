import pytest
from tests.paper.made_up import made_up
from typer.testing import CliRunner

from giw.cli import app
from giw.paper.plan import Run
from giw.paper.rows import Store

runner = CliRunner()


@pytest.fixture
def results(tmp_path):
    store = Store(tmp_path / "results")
    runs = [Run("mnist", "iii", "support", m, t, epochs=12) for m in ("giw", "diw") for t in (0, 1)]
    store.write([made_up(run) for run in runs])
    return store


def test_the_report_is_written_and_its_page_named(results, tmp_path):
    done = runner.invoke(app, ["paper", "report", str(results.folder), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "4 results" in done.output
    assert (tmp_path / "out" / "report.html").exists()
    for suffix in ("txt", "md", "tex"):
        assert "GIW" in (tmp_path / "out" / f"tables.{suffix}").read_text(encoding="utf-8")


def test_without_a_folder_named_it_lies_among_the_results_and_can_be_made_again(results):
    for _ in range(2):
        done = runner.invoke(app, ["paper", "report", str(results.folder)])
        assert done.exit_code == 0, done.output
        assert "4 results" in done.output
    assert (results.folder / "report" / "report.html").exists()


def test_a_damaged_file_is_named_and_the_rest_reported(results, tmp_path):
    path = results.path(Run("mnist", "iii", "support", "diw", 1, epochs=12))
    path.write_text(path.read_text().replace('"seconds":', '"seconds":1', 1))
    done = runner.invoke(app, ["paper", "report", str(results.folder), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0
    assert f"not used: {path.name}, line 1, was altered" in done.output
    assert "3 results" in done.output
    assert path.exists()  # a report changes nothing


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_results_is_one_line_and_exit_code_two(name, tmp_path):
    (tmp_path / "empty").mkdir()
    done = runner.invoke(
        app, ["paper", "report", str(tmp_path / name), "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1
    assert "run giw paper run first" in done.output
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line_too(results, tmp_path):
    (tmp_path / "taken").write_text("a file")
    done = runner.invoke(
        app, ["paper", "report", str(results.folder), "-o", str(tmp_path / "taken")]
    )
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1


def test_tables_alone_are_those_of_the_report_and_nothing_is_written(results, tmp_path):
    done = runner.invoke(app, ["paper", "report", str(results.folder), "--tables"])
    assert done.exit_code == 0, done.output
    assert not (results.folder / "report").exists()
    runner.invoke(app, ["paper", "report", str(results.folder), "-o", str(tmp_path / "out")])
    assert done.output.strip() == (tmp_path / "out" / "tables.txt").read_text("utf-8").strip()
