"""Programs of the gallery print what their pages say; the pages hold the programs as they are."""

import re
import subprocess
import sys

import pytest
from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "tools" / "site"))
from gallery import GALLERY, PAGES, index, missing, page, parsed

# under five seconds of processor time
QUICK = {
    "class_mix", "another_hospital", "no_target_labels", "plain_pytorch_loop", "when_not_to_use",
}  # fmt: skip
SCORE = re.compile(r"(?<![\d.])\d\.\d{3}(?!\d)")


def program_of(name):
    return (ROOT / "examples" / f"{name}.py").read_text()


def scores(text):
    """Lines with a number below 10 of three digits: the words and the numbers, no times."""
    text = re.sub(r"[\d.]+ s\b", "", text)
    lines = [line for line in text.splitlines() if SCORE.search(line) and "%" not in line]
    return [(SCORE.sub("#", line).split(), list(map(float, SCORE.findall(line)))) for line in lines]


def printed(text):
    return "\n".join(re.findall(r"```\{\.text \.printed\}\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize("name", GALLERY)
def test_a_page_holds_its_program(name):
    """Else: make gallery."""
    text = (PAGES / f"{name}.md").read_text()
    words, cells = parsed(program_of(name))
    assert text.startswith(f"# {words.splitlines()[0]}\n")
    assert "<svg" in text
    for cell in cells:
        assert cell.text in text
        assert cell.code in text


def test_the_list_is_that_of_the_programs():
    assert (PAGES / "index.md").read_text() == index()
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *GALLERY}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in GALLERY],
)
def test_a_program_prints_the_scores_of_its_page(name, tmp_path):
    if missing(name):
        pytest.skip(f"not installed: pip install {' '.join(missing(name))}")
    done = subprocess.run(
        [sys.executable, ROOT / "tools/site/gallery.py", "--here", name, str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    now = scores(printed((tmp_path / f"{name}.md").read_text()))
    then = scores(printed((PAGES / f"{name}.md").read_text()))
    assert [words for words, _ in now] == [words for words, _ in then]
    for (words, found), (_, told) in zip(now, then, strict=True):
        assert found == pytest.approx(told, abs=0.1), words


def test_cells_are_text_code_and_what_they_print():
    words, cells = parsed(
        '"""Title\n\nWords."""\n# %%\n# Text\n# more.\nprint(1)\n\n# %%\n# End.\n'
    )
    assert words == "Title\n\nWords."
    assert [(c.text, c.code) for c in cells] == [("Text\nmore.", "print(1)"), ("End.", "")]
    cells[0].printed = "1"
    assert page("name", words, cells).endswith(
        "Text\nmore.\n\n```python\nprint(1)\n```\n\n```{.text .printed}\n1\n```\n\nEnd.\n"
    )
