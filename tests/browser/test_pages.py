"""Every published page, in Chromium, at the widths and in the colours that readers have. What a page does is tested beside this file."""

from pathlib import Path

import checks
import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["paper/appendix.html", "paper/gqa.html", "figures/gallery.html"]
ALL_PUBLISHED = True
"""Until every page is written, those that are not are left out; from then on a missing page fails."""

every_page = pytest.mark.parametrize("path", [path for path in PAGES if ALL_PUBLISHED or (ROOT / path).exists()])


def none(where, found):
    if wrong := checks.report(where, found):
        pytest.fail(wrong, pytrace=False)


def test_the_list_names_every_page():
    found = {str(page.relative_to(ROOT)) for folder in ("paper", "figures") for page in (ROOT / folder).rglob("*.html")}
    assert found <= set(PAGES), "a published page that is not in PAGES is not tested"


@every_page
def test_says_nothing_and_asks_for_nothing(opened, path):
    page = opened(path)
    none(f"{path}, console", checks.console(page))
    none(f"{path}, network", checks.network(page))


@every_page
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (360, False)])
def test_accessible(opened, path, width, dark):
    none(f"{path} at {width} px, {'dark' if dark else 'light'}, axe-core", checks.accessibility(opened(path, width=width, dark=dark)))


@every_page
@pytest.mark.parametrize("width", checks.WIDTHS_PX)
def test_fits(opened, path, width):
    page = opened(path, width=width)
    none(f"{path} at {width} px", checks.sideways(page) + checks.text(page))


@every_page
def test_keyboard(opened, path):
    none(f"{path}, keyboard", checks.keyboard(opened(path, reduced_motion=True)))


@every_page
def test_structure_and_links(opened, path):
    page = opened(path)
    none(f"{path}, structure", checks.structure(page))
    none(f"{path}, links", checks.links(page))


@every_page
def test_size(path):
    none(path, checks.size(ROOT / path))
