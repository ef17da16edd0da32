"""The faults that measure how strong the tests are."""

import pytest
from tools.mutants import Mutant, in_order, mutants_of, spoiled


@pytest.mark.parametrize(
    ("line", "spoiled_lines"),
    [
        ("a < b", ["a <= b"]),
        ("a + b * c", ["a - b * c", "a + b / c"]),
        ("a and b", ["a or b"]),
        ("not a", ["not not a"]),
        ("-a", ["+a"]),
        ("a if b else c", ["a if not b else c"]),
        ("f(3, 0.5, 0.0, True)", ["4", "1.0", "1.0", "False"]),
        ("'words' 'are' f'no {1 + 1}'", []),
        ("raise ValueError(1 + 1)", []),
        ("def f(a: 'int' = 2) -> Literal[3]: pass", ["a: 'int'=3"]),
    ],
)
def test_each_fault_is_one_change(tmp_path, line, spoiled_lines):
    path = tmp_path / "lines.py"
    path.write_text(line)

    mutants = mutants_of(path, "lines.py")

    assert len(mutants) == len(spoiled_lines)
    for mutant, expected in zip(mutants, spoiled_lines, strict=True):
        assert expected in spoiled(line, mutant.place)


def test_the_file_that_mirrors_the_mutants_own_is_tried_first():
    mutant = Mutant("src/giw/weights/kmm.py", 0, 1, "")
    names = {"", "tests/weights/test_basis.py::test_a", "tests/weights/test_kmm.py::test_b"}

    ordered = in_order(mutant, names, ["tests/weights"])

    assert ordered == ["tests/weights/test_kmm.py::test_b", "tests/weights/test_basis.py::test_a"]
