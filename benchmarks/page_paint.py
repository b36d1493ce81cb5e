"""When a published page first shows something: medians of first paint and first contentful paint, and its bytes.

Run from the repository root: ``python benchmarks/page_paint.py [--loads N] [PAGE...]``; needs chromium and chromedriver. Times are
those of the browser's own paint entries [ms], of a file on this host's disk: they compare pages, and are not what a network gives.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests/browser")

from chromium import Browser, Missing, View, started

PAINTS = ("first-paint", "first-contentful-paint")
PAGES = [page for folder in ("paper", "figures") for page in sorted(Path(folder).rglob("*.html"))]


def paint_ms(browser: Browser, page: Path) -> tuple[float, float]:
    """Both times of one load, in a tab that has just been empty."""
    opened = browser.open(page, View())
    entries = opened.wait(
        """
        const done = arguments[0], times = {};
        new PerformanceObserver((list) => {
          for (const { name, startTime } of list.getEntries()) times[name] = startTime;
          if ("first-contentful-paint" in times) done(times);
        }).observe({ type: "paint", buffered: true });
        """
    )
    return tuple(entries[name] for name in PAINTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="*", metavar="PAGE")
    parser.add_argument("--loads", type=int, default=5)
    asked = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, started(Path(profile)) as browser:
            for page in asked.pages or PAGES:
                medians = map(statistics.median, zip(*(paint_ms(browser, page) for _ in range(asked.loads)), strict=True))
                times = ", ".join(f"{name} {time:.0f} ms" for name, time in zip(PAINTS, medians, strict=True))
                print(f"{page}: {times}, {page.stat().st_size:,} bytes")
    except Missing as missing:
        sys.exit(str(missing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
