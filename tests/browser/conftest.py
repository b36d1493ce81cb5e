"""One Chromium for each worker, and pages opened in it as a first visitor sees them."""

from pathlib import Path

import chromium
import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config):
    """Say it once, and not at every test, where there is no browser."""
    if config.getoption("markexpr") == "browser":
        try:
            chromium.executables()
        except chromium.Missing as missing:
            raise pytest.UsageError(str(missing)) from missing


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium.started(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def opened(browser):
    """Open a page, by its path from the repository's root or its own: ``opened("paper/gqa.html", width=360, dark=True)``.

    Its other words are those of :class:`chromium.View`, and ``fragment``.
    """

    def open_page(path, fragment="", **view):
        return browser.open(ROOT / path, chromium.View(**view), fragment)

    return open_page


@pytest.fixture
def written(opened, tmp_path):
    """Open a page made of the given body."""

    def open_body(body, head="", title="Planted", **view):
        path = tmp_path / "page.html"
        path.write_text(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}</head><body>{body}</body></html>',
            encoding="utf-8",
        )
        return opened(path, **view)

    return open_body
