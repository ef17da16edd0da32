"""Variants are methods with one thing changed."""

import pytest

from giw.nets.methods import method_named
from giw.paper.bench.variants import make_method


def test_split_giw_splits_where_the_papers_giw_does_not():
    assert make_method("giw", "", {}, splits=False).name == "giw_unsplit"
    assert make_method("giw_split", "", {}, splits=False) == method_named("giw")


def test_the_split_differs_in_one_thing_only():
    assert make_method("giw", "soft", {}, splits=True) == method_named("giw", soft=True)
    by_level = make_method("giw", "level_0.1", {}, splits=True)
    assert by_level == method_named("giw", level=0.1, least_posterior=0.0)


def test_weights_of_mean_one_are_for_mw_net():
    made = make_method("mw_net", "mean_one", {}, splits=True)
    assert made == method_named("mw_net", mean_one=True)
    with pytest.raises(ValueError, match="mw_net, not of diw"):
        make_method("diw", "mean_one", {}, splits=True)


def test_parts_of_giw_plus_by_name():
    two = make_method("giw_plus", "plus_copies_2+align_1+hard", {}, splits=True)
    assert two == method_named("giw_plus", copies=2, align=1.0, soft=False)
    pooled = make_method("pooled_plus", "plus_no_align", {}, splits=True)
    assert pooled == method_named("pooled_plus", align=0.0)
    with pytest.raises(ValueError, match="giw_plus and pooled_plus, not of giw"):
        make_method("giw", "plus_no_align", {}, splits=True)
