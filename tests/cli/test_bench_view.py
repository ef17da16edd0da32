import io

import pytest
from rich.console import Console

from giw.cli.bench_view import GridView, follow
from giw.paper.bench.engines import Done
from giw.paper.bench.plan import group, plan

RUNS = plan(datasets=["mnist"], cases=["iii"], methods=["giw", "diw"], trials=2)


def view_of(runs=RUNS, finished=None, **more):
    finished = finished or {}
    jobs = group(run for run in runs if run.key not in finished)
    return GridView(runs, jobs, lambda run: 60.0, finished, **more)


def shown(view, height=40):
    console = Console(file=io.StringIO(), width=120, height=height)
    console.print(view)
    return console.file.getvalue()


def test_cells_fill_with_mean_accuracies_and_say_what_is_at_work():
    view = view_of(finished={RUNS[0].key: 0.5, RUNS[1].key: 0.6})
    view.add(Done(view.jobs[0], 2, accuracy=(0.70, 0.71)))
    table = shown(view)
    assert "55.0" in table  # done before
    assert "70.5" in table  # done now
    assert table.count("…") == 1
    assert table.count("·") == 10 - 2 - 1
    assert "1 of 9 jobs" in table


def test_time_left_shrinks_with_the_jobs(monkeypatch):
    view = view_of()
    monkeypatch.setattr("time.perf_counter", lambda: view.started)
    assert view.left() == "20 min"
    monkeypatch.setattr("time.perf_counter", lambda: view.started + 60)
    assert "9 min left" in view.add(Done(view.jobs[0], 2, accuracy=(0.7, 0.7)))


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ({"written": 2, "accuracy": (0.70, 0.72)}, "71.0 ± 1.4 %"),
        ({"written": 0}, "left to another process"),
        ({"written": 0, "error": "OSError: disk full"}, "disk full"),
    ],
)
def test_a_log_has_a_line_for_each_job(done, words):
    view = view_of(RUNS[:2])
    console = Console(file=io.StringIO(), width=40)
    follow(view, [Done(view.jobs[0], **done)], console, quiet=False)
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("1/1 mnist (iii) support: giw, honest: ")
    assert words in line
    assert view.failed == ("error" in done)


def test_quiet_says_nothing_but_failures():
    view = view_of()
    stream = [Done(view.jobs[0], 2), Done(view.jobs[1], 0, "OSError: disk full")]
    console = Console(file=io.StringIO(), width=200)
    follow(view, stream, console, quiet=True)
    assert len(console.file.getvalue().splitlines()) == 1
    assert "disk full" in console.file.getvalue()


def test_a_terminal_gets_a_live_table():
    view = view_of(RUNS[:2])
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    follow(view, [Done(view.jobs[0], 2, accuracy=(0.5, 0.5))], console, quiet=False)
    assert "50.0" in console.file.getvalue()
    assert "1 of 1 jobs" in console.file.getvalue()


def test_a_grid_taller_than_the_screen_shows_the_rows_at_work():
    runs = plan(methods=["giw"], trials=1)
    view = view_of(runs)
    for job in view.jobs[:15]:
        view.add(Done(job, 1, accuracy=(0.5,)))
    table = shown(view, height=12)
    assert len(table.splitlines()) <= 12
    assert "…" in table


def test_numbers_are_whole_in_a_narrow_window():
    view = view_of(plan(datasets=["mnist"], trials=1))
    for job in view.jobs[:10]:
        view.add(Done(job, 1, accuracy=(0.876,)))
    console = Console(file=io.StringIO(), width=80, height=40)
    console.print(view)
    text = console.file.getvalue()
    assert text.count("87.6") == 10
    assert max(map(len, text.splitlines())) <= 80
