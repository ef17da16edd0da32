import numpy as np
from tests.paper.tiny_grid import SAMPLES

from giw.paper.plan import Run
from giw.paper.run import Runner, make_problem
from giw.paper.shifts import development_samples


def rows(sample):
    return {x.tobytes() for x in sample.x}


def test_no_test_image_is_in_a_development_problem():
    pool, held_out = development_samples(SAMPLES[0])
    assert len(pool) + len(held_out) == len(SAMPLES[0])
    assert len(held_out) == 50
    run = Run("mnist", "iii", "support", "giw", 0, "development")
    problem, _ = make_problem(run, (pool, held_out))
    seen = rows(problem.train) | rows(problem.val) | rows(problem.test)
    assert not seen & rows(SAMPLES[1])
    assert rows(problem.test) <= rows(held_out)
    assert not rows(problem.test) & (rows(problem.train) | rows(problem.val))


def test_a_development_run_is_a_run_like_any_other():
    from giw.paper.plan import group, plan

    (job,) = group(
        plan(datasets=["mnist"], cases=["iii"], shifts=["support"], methods=["giw_plus"],
             protocols=["development"], trials=2, epochs=1)
    )  # fmt: skip
    first, second = Runner(SAMPLES).run(job)
    assert "development" in first.run.key
    assert np.isfinite([first.accuracy, second.accuracy]).all()
