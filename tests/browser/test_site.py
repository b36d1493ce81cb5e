"""The documentation, opened from disk: it searches without a network, and nothing in it is wider than the page."""

from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="make docs installs it")

SITE = Path(__file__).resolve().parents[2] / "results/site"
PAGES = [
    *("index", "tutorial/first-number", "how-to/add-a-policy"),
    *("explanation/architecture", "reference/commands", "reference/configuration"),
]

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not Path(SITE, "index.html").is_file(), reason="make docs has not built the site")]


def test_search_finds_a_page_from_disk(opened):
    page = opened(SITE / "index.html")
    found = page.wait(
        """
        const done = arguments[0], box = document.querySelector("[data-md-component=search-query]");
        box.focus();
        box.value = "eviction";
        box.dispatchEvent(new Event("input", {bubbles: true}));
        box.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
        const look = (left) => {
          const links = [...document.querySelectorAll(".md-search-result__link")].map((link) => link.getAttribute("href"));
          if (links.length || !left) done(links); else setTimeout(look, 200, left - 1);
        };
        look(150);
        """
    )
    assert found
    assert all(not address.startswith("http") for address in found)
    assert page.uncaught() == []


@pytest.mark.parametrize("place", PAGES)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1300])
def test_a_page_asks_no_network_and_fits(opened, place, width, dark):
    page = opened(SITE / f"{place}.html", width=width, dark=dark)
    asked = [event["params"]["request"]["url"] for event in page.network() if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth + 1")
    assert page.uncaught() == []
