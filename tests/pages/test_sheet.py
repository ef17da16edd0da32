import pytest

from giw.pages.tables import MISSING, Entry, Group, Sheet, latex_sheet, markdown_sheet, text_sheet

SHEET = Sheet(
    "small",
    "A small_table",
    ["method", "honest", "paper"],
    [
        Group("label noise", [[Entry("GIW"), Entry("91.0 ± 1.0", bold=True), Entry("95.16")]]),
        Group("", [[Entry("DIW"), MISSING, Entry("−3.2")]]),
    ],
    ["50 % of it."],
)


def test_plain_text_by_eye():
    assert text_sheet(SHEET) == (
        "A small_table\n"
        "---------------------------\n"
        "method      honest    paper\n"
        "---------------------------\n"
        "label noise\n"
        "  GIW   91.0 ± 1.0 *  95.16\n"
        "  DIW      missing     −3.2\n"
        "---------------------------\n"
        "* set in bold elsewhere.\n"
        "50 % of it.\n"
    )


def test_markdown_by_eye():
    assert markdown_sheet(SHEET) == (
        "### A small\\_table\n"
        "\n"
        "| method | honest | paper |\n"
        "| --- | ---: | ---: |\n"
        "| *label noise* |  |  |\n"
        "| GIW | **91.0 ± 1.0** | 95.16 |\n"
        "| DIW | *missing* | −3.2 |\n"
        "\n"
        "50 % of it.\n"
    )


def test_latex_by_eye():
    assert latex_sheet(SHEET).splitlines() == [
        r"\begin{table}",
        r"\centering\footnotesize",
        r"\caption{A small\_table. 50 \% of it.}",
        r"\label{tab:small}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"method & honest & paper \\",
        r"\midrule",
        r"\multicolumn{3}{l}{\textit{label noise}} \\",
        r"GIW & \textbf{91.0 $\pm$ 1.0} & 95.16 \\",
        r"\midrule",
        r"DIW & \textit{missing} & $-$3.2 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_latex_is_ascii_apart_from_letters_of_names():
    signs = Sheet("s", "± − – → × α “a” 5\u00a0%", ["a"], [])
    assert latex_sheet(signs).isascii()


def test_a_row_with_a_cell_too_few_is_refused():
    with pytest.raises(ValueError, match="s has 2 columns, a row has 1 cells"):
        Sheet("s", "t", ["a", "b"], [Group("", [[Entry("x")]])])


def test_a_sheet_without_bold_cells_does_not_speak_of_stars():
    assert "*" not in text_sheet(Sheet("s", "t", ["a", "b"], [Group("", [[Entry("x"), MISSING]])]))


def test_a_wide_latex_table_is_shrunk_and_its_braces_close():
    wide = latex_sheet(Sheet("s", "t", ["a"] * 9, []))
    assert r"\resizebox{\textwidth}{!}{%" in wide
    assert wide.count("{") == wide.count("}")
    assert "resizebox" not in latex_sheet(SHEET)
