import numpy as np
import pytest
from tests.paper.bench.test_runner import SAMPLES

from giw.nets.methods import GIWPlus, PooledPlus
from giw.paper.bench.development import development_samples
from giw.paper.bench.plan import Run
from giw.paper.bench.runner import Runner, make_problem
from giw.paper.bench.variants import make_method


def rows(sample):
    return {x.tobytes() for x in sample.x}


def test_no_test_image_is_in_a_development_problem():
    pool, held_out = development_samples(SAMPLES[0])
    assert len(pool) + len(held_out) == len(SAMPLES[0])
    assert len(held_out) == 50
    run = Run("mnist", "iii", "support", "giw", 0, "development")
    problem, _ = make_problem(run, Runner(SAMPLES)._samples("development"))
    seen = rows(problem.train) | rows(problem.val) | rows(problem.test)
    assert not seen & rows(SAMPLES[1])
    assert rows(problem.test) <= rows(held_out)
    assert not rows(problem.test) & (rows(problem.train) | rows(problem.val))


def test_other_protocols_are_tested_on_test_images():
    assert Runner(SAMPLES)._samples("honest") is SAMPLES


def test_a_development_run_is_a_run_like_any_other():
    from giw.paper.bench.plan import group, plan

    (job,) = group(
        plan(datasets=["mnist"], cases=["iii"], shifts=["support"], methods=["giw_plus"],
             protocols=["development"], trials=2, epochs=1)
    )  # fmt: skip
    first, second = Runner(SAMPLES).run(job)
    assert "development" in first.run.key
    assert np.isfinite([first.accuracy, second.accuracy]).all()


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("", GIWPlus()),
        ("plus_hard+no_align", GIWPlus(soft=False, align=0.0)),
        ("plus_align_0.3", GIWPlus(align=0.3)),
        ("plus_copies_2", GIWPlus(copies=2)),
    ],
)
def test_variants_of_giw_plus_go_by_name(variant, expected):
    assert make_method("giw_plus", variant, {}, splits=True) == expected


def test_unknown_variants_are_refused():
    with pytest.raises(ValueError, match="plus_NAME_X"):
        make_method("giw_plus", "plus_magic_2", {}, splits=True)
    with pytest.raises(ValueError, match="is one of giw_plus"):
        make_method("giw", "plus_hard", {}, splits=True)


def test_pooled_with_the_same_help_is_a_method():
    assert make_method("pooled_plus", "", {}, splits=True) == PooledPlus()
