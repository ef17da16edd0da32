"""Variants are methods with one thing changed."""

from giw.bench.variants import make_method
from giw.methods import method_named


def test_split_giw_splits_where_the_papers_giw_does_not():
    assert make_method("giw", "", {}, splits=False).name == "giw_unsplit"
    assert make_method("giw_split", "", {}, splits=False) == method_named("giw")


def test_the_split_differs_in_one_thing_only():
    assert make_method("giw", "soft", {}, splits=True) == method_named("giw", soft=True)
    by_level = make_method("giw", "level_0.1", {}, splits=True)
    assert by_level == method_named("giw", level=0.1, least_posterior=0.0)
