"""Headless Chromium on a published page: its console, its requests, its keyboard, its looks.

Both executables come from the PATH, and their paths are given to Selenium, which would otherwise look for a download.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PIECE_PX = 2_000
"""Most height of one screenshot: what a person can look at."""
NARROW_PX = 600
"""Below this width a browser is a telephone's, whose scrollbar lies over the page and takes no width from it."""
SCRIPT_S = 600
RECORDER = """{
window.__uncaught = [];
const uncaught = (what) => window.__uncaught.push(String(what));
addEventListener("error", (e) => uncaught(e.message || "a resource failed: " + (e.target.src || e.target.href)), true);
addEventListener("unhandledrejection", (e) => uncaught("unhandled rejection: " + e.reason));
}"""


class Missing(RuntimeError):
    """No browser to test with."""


@dataclass(frozen=True)
class View:
    """What the page is shown on: size of the viewport [CSS px] and the reader's preferences."""

    width: int = 1280
    height: int = 900
    dark: bool = False
    printed: bool = False
    reduced_motion: bool = False


def executables() -> tuple[str, str]:
    """Paths of chromium and chromedriver."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        raise Missing("The browser tests need chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    return browser, driver


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile in a folder of the caller's; it ends with the block."""
    browser, driver = executables()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    chrome = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    try:
        # axe-core takes a minute for a page of ten thousand links, and several where others work on the same host.
        chrome.set_script_timeout(SCRIPT_S)
        chrome.command_executor.client_config.timeout = SCRIPT_S + 30
        yield Browser(chrome, profile)
    finally:
        chrome.quit()


class Browser:
    """One Chromium, one tab."""

    def __init__(self, chrome: webdriver.Chrome, profile: Path):
        self.chrome = chrome
        self.empty = profile / "empty.html"
        self.empty.write_text("<!doctype html><title>Empty</title>", encoding="utf-8")
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)
        # A tab of a headless browser need not have the focus, and without it nothing shows that it is focused.
        self.cdp("Emulation.setFocusEmulationEnabled", enabled=True)

    def cdp(self, command: str, **parameters) -> dict:
        return self.chrome.execute_cdp_cmd(command, parameters)

    def open(self, path: Path | str, view: View | None = None, fragment: str = "") -> Page:
        """The page as a first visitor sees it: nothing stored, nothing left in the logs."""
        # All files share one storage. It is cleared from another of them, so that a reload of the page finds what the page has stored.
        self.chrome.get(self.empty.as_uri())
        self.chrome.execute_script("localStorage.clear(); sessionStorage.clear();")
        for log in ("browser", "performance"):
            self.chrome.get_log(log)
        page = Page(self, Path(path).resolve(), view or View())
        page.show(page.view)
        self.chrome.get(page.url + (f"#{fragment}" if fragment else ""))
        page.settle()
        return page


@dataclass
class Page:
    """A page that is open, until the browser opens the next."""

    browser: Browser
    path: Path
    view: View
    _console: list[dict] = field(default_factory=list)
    _network: list[dict] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def run(self, script: str, *arguments):
        """Value that a script in the page returns."""
        return self.browser.chrome.execute_script(script, *arguments)

    def wait(self, script: str, *arguments):
        """Value that a script in the page hands to its last argument."""
        return self.browser.chrome.execute_async_script(script, *arguments)

    def settle(self) -> None:
        """Until fonts are there and two frames are drawn."""
        self.wait(
            "const done = arguments[0]; document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(() => done())));"
        )

    def show(self, view: View) -> None:
        """Another viewport or other preferences, without loading the page again."""
        self.view = view
        cdp = self.browser.cdp
        cdp("Emulation.setDeviceMetricsOverride", width=view.width, height=view.height, deviceScaleFactor=1, mobile=False)
        cdp("Emulation.setScrollbarsHidden", hidden=view.width < NARROW_PX)
        preferences = {
            "prefers-color-scheme": "dark" if view.dark else "light",
            "prefers-reduced-motion": "reduce" if view.reduced_motion else "no-preference",
        }
        cdp(
            "Emulation.setEmulatedMedia",
            media="print" if view.printed else "",
            features=[{"name": name, "value": value} for name, value in preferences.items()],
        )
        self.settle()

    def console(self) -> list[dict]:
        """Messages since the page was opened: ``level``, ``message``."""
        self._console += self.browser.chrome.get_log("browser")
        return self._console

    def network(self) -> list[dict]:
        """Network events since the page was opened: ``method``, ``params``."""
        events = (json.loads(entry["message"])["message"] for entry in self.browser.chrome.get_log("performance"))
        self._network += [event for event in events if event["method"].startswith("Network.")]
        return self._network

    def uncaught(self) -> list[str]:
        """Exceptions and rejections that nothing caught, and resources that failed, from before the first script on."""
        return self.run("return window.__uncaught")

    def press(self, key: str, code: int, shift: bool = False) -> None:
        """One key down and up: ``press("Tab", 9)``."""
        for event in ("rawKeyDown", "keyUp"):
            self.browser.cdp(
                "Input.dispatchKeyEvent", type=event, key=key, code=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0
            )

    def tab(self, back: bool = False) -> None:
        self.press("Tab", 9, shift=back)

    def screenshots(self, stem: Path, element: str | None = None) -> list[Path]:
        """The whole page, or every element that a CSS selector finds, in PNG files of at most ``PIECE_PX``: ``STEM-01.png`` and on."""
        boxes = self.run(
            """
            const whole = document.documentElement;
            if (!arguments[0]) return [[0, 0, innerWidth, whole.scrollHeight]];
            return [...document.querySelectorAll(arguments[0])].map((found) => {
              const box = found.getBoundingClientRect();
              return [box.left + scrollX, box.top + scrollY, box.width, box.height];
            }).filter(([, , width, height]) => width && height);
            """,
            element,
        )
        pieces = [
            {"x": left, "y": top + above, "width": width, "height": min(PIECE_PX, height - above), "scale": 1}
            for left, top, width, height in boxes
            for above in range(0, max(1, int(height + 0.999)), PIECE_PX)
        ]
        written = []
        for number, clip in enumerate(pieces, start=1):
            shot = self.browser.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            written.append(stem.with_name(f"{stem.name}-{number:02d}.png"))
            written[-1].write_bytes(base64.b64decode(shot["data"]))
        return written

    def pdf(self, path: Path) -> Path:
        """The page as printed."""
        printed = self.browser.cdp("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(printed["data"]))
        return path
