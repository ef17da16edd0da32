from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from giw.pages.figures import new_figure
from giw.pages.page import Page, Picture, Section, inline_svg, render_page, write_page
from giw.pages.style import INK, LINE
from giw.pages.tables import MEANING, rows_sheet, summarize

VOID = {"meta", "br", "img", "link", "hr"}
EVIL = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"


class Reader(HTMLParser):
    """Tags, identifiers and text of a page; complains where tags do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words += data


def drawn() -> Figure:
    figure, axes = new_figure()
    axes.plot([0, 1], "o")
    return figure


def full_page() -> Page:
    accuracy = {"giw": [0.9, 0.8], "diw": [0.2, 0.1]}
    picture = Picture(drawn(), alt="bars in words", caption="the caption")
    section = Section(
        title="A section",
        text=["Some text."],
        pictures=[picture, Picture(drawn(), alt="others in words")],
        sheets=[replace(rows_sheet(summarize(accuracy)), notes=[MEANING])],
        facts={"size": "12"},
    )
    return Page("A title", "An answer.", ["A lead."], [section], "the kicker", ["the footer"])


def test_the_page_holds_everything_in_reading_order():
    words = Reader(render_page(full_page())).words
    expected = ["the kicker", "A title", "An answer.", "A lead.", "A section", "Some text."]
    expected += ["the caption", "GIW", "85.0 ± 7.1", "best", "DIW", "p < 0.001", MEANING]
    expected += ["size", "12", "the footer"]

    position = 0
    for text in expected:
        found = words.replace("\u00a0", " ").find(text.replace("\u00a0", " "), position)
        assert found >= 0, text
        position = found


def test_tags_nest_and_identifiers_are_unique():
    reader = Reader(render_page(full_page()))

    assert reader.open == []
    assert reader.tags.count("svg") == 4  # two figures and a dot beside each method
    assert len(reader.ids) == len(set(reader.ids)) > 10


def test_references_within_a_figure_still_meet_their_target():
    reader = Reader(render_page(full_page()))
    wanted = [value[1:] for key, value in reader.attributes if key == "xlink:href"]
    wanted += [
        value.split("url(#")[1].split(")")[0]
        for _, value in reader.attributes
        if value and "url(#" in value
    ]

    assert wanted
    assert set(wanted) <= set(reader.ids)


def test_the_page_stands_alone():
    html = render_page(full_page())
    reader = Reader(html)
    links = [v for k, v in reader.attributes if k in {"src", "href", "xlink:href", "srcset"}]

    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in html
    assert not {"script", "link", "iframe"} & set(reader.tags)


def test_figures_say_in_words_what_they_show():
    reader = Reader(render_page(full_page()))

    assert ("aria-label", "bars in words") in reader.attributes
    assert reader.attributes.count(("role", "img")) == 2


def test_labels_with_markup_are_shown_and_not_obeyed():
    rows = summarize({EVIL: [0.5, 0.6]})
    figure, axes = new_figure()
    axes.set_yticks([0], [EVIL], parse_math=False)
    picture = Picture(figure, alt=EVIL, caption=EVIL)
    sheet = replace(rows_sheet(rows), notes=[EVIL])
    section = Section(EVIL, [EVIL], [picture], [sheet], {EVIL: EVIL}, EVIL)
    reader = Reader(render_page(Page(EVIL, EVIL, [EVIL], [section], EVIL, [EVIL])))

    assert "script" not in reader.tags
    assert reader.open == []
    in_page, in_section = 6, 9  # the title twice, <title> and <h1>; one stands in the figure
    assert reader.words.count(EVIL) == in_page + in_section
    assert ("aria-label", EVIL) in reader.attributes


def test_an_empty_section_leaves_nothing_behind():
    tags = Reader(render_page(Page("t", "a", sections=[Section("only a title")]))).tags

    assert not {"table", "dl", "details", "figure", "svg"} & set(tags)


def test_a_figure_takes_the_colours_of_the_page():
    svg = render_page(full_page()).split("<svg", 1)[1]

    assert INK not in svg
    assert LINE not in svg
    assert "currentColor" in svg
    assert "var(--grid)" in svg


def test_the_style_sheet_of_a_figure_stays_out_of_the_page():
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><style>* {color: red}</style><g id="a"/></svg>'

    assert inline_svg(svg, alt="", prefix="p-").count("style") == 0
    assert 'id="p-a"' in inline_svg(svg, alt="", prefix="p-")


def test_the_same_page_twice_is_the_same_text():
    assert render_page(full_page()) == render_page(full_page())


def test_the_page_is_written_as_utf_8_and_its_folder_made(tmp_path):
    path = write_page(Page("α → β", "a"), tmp_path / "new" / "report.html")

    assert path == tmp_path / "new" / "report.html"
    assert "<title>α → β</title>" in path.read_bytes().decode("utf-8")


@pytest.mark.parametrize("media", ["prefers-color-scheme: dark", "print", "max-width: 30rem"])
def test_the_page_thinks_of_night_paper_and_phones(media):
    assert f"@media {media}" in render_page(Page("t", "a")).replace("@media (", "@media ")
