"""The site builds without a warning, asks nothing of the network, and can be read."""

import re
import subprocess
import sys

import pytest
from tests.browser import look_at
from tests.docs.pages import PAGES, ROOT

pytest.importorskip("mkdocstrings", reason="mkdocs is not installed: pip install giw[docs]")
pytest.importorskip("material", reason="mkdocs-material is not installed: pip install giw[docs]")
sys.path.insert(0, str(ROOT / "tools" / "site"))
from docstrings import as_markdown
from hooks import mathml, options_table


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_there_and_loads_nothing_from_elsewhere(site):
    for page in PAGES:
        html = (site / f"{page.stem}.html").read_text()
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]+)"', html)
        assert [address for address in loaded if "//" in address] == [], page.name
        assert "<!-- run" not in html
        assert "<!-- options" not in html
        assert "arithmatex" not in html, "a formula was left as it was"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("page", ["theory", "commands", "estimators", "api"])
def test_a_page_fits_a_desk_and_a_phone(site, page, tmp_path):
    html = (site / f"{page}.html").read_text()
    styles = "".join(
        f"<style>{(site / name).read_text()}</style>"
        for name in re.findall(r'<link rel="stylesheet" href="([^"]+)"', html)
    )
    seen = look_at(re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL) + styles, tmp_path)
    for what in seen.values():
        assert what["overflow"] <= 0
        assert len(what["words"]) > 2000


@pytest.mark.parametrize(
    ("latex", "piece"),
    [
        (r"p_{\rm tr}", '<mi mathvariant="normal">t</mi>'),
        (r"\frac1n \sum_i w_i \ell_i", "<mfrac>"),
        (r"a &lt; b", "&#x0003C;"),
    ],
)
def test_formulas_become_mathml(latex, piece):
    found = mathml(latex, block=False)
    assert found.startswith("<math")
    assert piece in found
    assert "\\" not in found


def test_docstrings_become_markdown():
    text = """Sum of :math:`x_i`, see :class:`giw.KMM` and :func:`giw.kmm` [1]_.

    .. math:: \\sum_i x_i
              + 1

    More.
    """
    found = as_markdown(text)
    assert "Sum of $x_i$, see `giw.KMM` and `giw.kmm` [1]." in found
    assert "$$\n    \\sum_i x_i + 1\n    $$\n" in found
    assert ".. math" not in found
    assert "More." in found


def test_options_are_those_of_the_command():
    table = options_table("fit")
    assert "| `TRAIN` | required | Training data: csv, parquet or npz. |" in table
    assert "| `--out`, `-o` | required |" in table
    assert "| `--model` | `boosting` |" in table
    assert "| `--json` |  |" in table
