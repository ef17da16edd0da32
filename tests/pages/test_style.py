import pytest

from giw.pages.style import STYLES, name_of, styles_of

PAGES = {"light": "#fdfcfa", "dark": "#15181c"}  # the backgrounds of templates/page.css


def luminance(color: str) -> float:
    """Relative luminance as in WCAG 2."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(left: str, right: str) -> float:
    dark, light = sorted((luminance(left), luminance(right)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_and_white_is_twenty_one():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("method", STYLES)
@pytest.mark.parametrize("page", PAGES)
def test_every_method_can_be_seen_on_light_and_on_dark_pages(method, page):
    assert contrast(STYLES[method].color, PAGES[page]) >= 3.0


def test_no_two_methods_share_a_name_or_a_look():
    assert len({style.name for style in STYLES.values()}) == len(STYLES)
    assert len({(style.color, style.dash) for style in STYLES.values()}) == len(STYLES)


def test_a_method_looks_the_same_whoever_stands_beside_it():
    assert styles_of(["pooled", "mine", "giw"])["giw"] == styles_of(["giw"])["giw"]


def test_methods_of_ones_own_keep_their_name_and_get_styles_of_their_own():
    styles = styles_of(["giw", "mine", "yours"])

    assert name_of("mine") == "mine"
    assert len({styles[method] for method in styles}) == 3
    assert not {styles["mine"], styles["yours"]} & set(STYLES.values())
