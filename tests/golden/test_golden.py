"""Answers of earlier versions: they guard what is moved, see ``python -m tests.golden``.

A change that is meant to change an answer replaces its golden in the same commit, with a reason.
"""

import pytest
from tests.golden.__main__ import main
from tests.golden.cases import CASES
from tests.golden.files import FOLDER, differences, plain, read, versions, write


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_golden_one(name):
    golden, history = read(name)
    made_with = {package: history[-1][package] for package in versions()}
    if made_with != versions():
        pytest.skip(f"a golden guards our code, not that of others: made with {made_with}")
    case = CASES[name]

    apart = differences(plain(case.answer(), case.digits), golden, case.tolerance)

    assert not apart, (
        f"{name} is not as giw {history[-1]['giw']} had it ({history[-1]['reason']}):\n  "
        + "\n  ".join(apart)
        + f'\nIf that is meant: python -m tests.golden {name} --reason "..."'
    )


def test_every_golden_on_disk_is_compared():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)


def test_goldens_are_small():
    size = sum(path.stat().st_size for path in FOLDER.parent.rglob("*") if path.is_file())
    assert size < 1_000_000


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"w": [1.0, 2.1], "k": "a"}, r".w: 1 of 2 numbers differ, most at [1]: 2.1, the golden 2"),
        ({"w": [1.0], "k": "a"}, ".w has 1 entries, the golden 2"),
        ({"w": [1.0, float("nan")], "k": "a"}, "no number"),
        ({"w": [1.0, 2.0], "k": "b"}, ".k is 'b', the golden 'a'"),
        ({"w": [1.0, 2.0]}, ".k is gone"),
        ({"w": [1.0, 2.0], "k": "a", "new": 1}, ".new is new"),
    ],
)
def test_a_difference_says_where_it_is(found, message):
    (line,) = differences(found, {"w": [1.0, 2.0], "k": "a"}, 1e-6)

    assert message in line


def test_what_is_nearer_than_the_tolerance_is_no_difference():
    assert not differences({"w": [1.0 + 1e-7, 2]}, {"w": [1.0, 2]}, 1e-6)


def test_a_golden_is_not_replaced_without_a_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.golden.files.FOLDER", tmp_path)
    monkeypatch.setattr("tests.golden.__main__.FOLDER", tmp_path)
    write("objective", {"risk": 1.0}, [{"giw": "0.1.0", "reason": "first"}])

    with pytest.raises(SystemExit):
        main(["objective"])
    assert 'replace with --reason "..."' in capsys.readouterr().err
    assert read("objective")[0] == {"risk": 1.0}

    main(["objective", "--reason", "the ridge is another"])
    values, history = read("objective")
    assert values["risk"] != 1.0
    assert [line["reason"] for line in history] == ["first", "the ridge is another"]
