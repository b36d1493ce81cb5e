"""Pictures of the published pages, to look at: ``.venv/bin/python tests/browser/shots.py FOLDER [PAGE...] [--element CSS]``.

Each page at 360 px light, 1,280 px light and dark, 1,600 px light, and as printed, in PNG files of at most 2,000 px in height. The
printed pages stay one PDF where there is no pdftoppm (Debian: poppler-utils). Without PAGE: every published one.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import Browser, Missing, View, started

ROOT = Path(__file__).resolve().parents[2]
VIEWS = {
    "360-light": View(360),
    "1280-light": View(1280),
    "1280-dark": View(1280, dark=True),
    "1600-light": View(1600),
}


def published() -> list[Path]:
    return sorted(page for folder in ("paper", "figures") for page in (ROOT / folder).rglob("*.html"))


def shoot(browser: Browser, path: Path, folder: Path, element: str | None = None) -> list[Path]:
    """Pictures of one page, or of the elements in it that a CSS selector finds."""
    taken = []
    for name, view in VIEWS.items():
        page = browser.open(path, view)
        taken += page.screenshots(folder / f"{path.stem}-{name}", element)
    if element is None:
        taken += printed(page.pdf(folder / f"{path.stem}-print.pdf"))
    return taken


def printed(pdf: Path) -> list[Path]:
    """The pages of a PDF; the PDF itself where nothing can draw it."""
    if shutil.which("pdftoppm") is None:
        return [pdf]
    # A4 at 150 dpi is 1,754 px high.
    subprocess.run(["pdftoppm", "-png", "-r", "150", pdf, pdf.with_suffix("")], check=True)
    pdf.unlink()
    return sorted(pdf.parent.glob(f"{pdf.stem}-*.png"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("pages", type=Path, nargs="*", metavar="PAGE")
    parser.add_argument("--element", metavar="CSS", help="these elements alone")
    asked = parser.parse_args()
    pages = asked.pages or published()
    if absent := [str(page) for page in pages if not page.is_file()]:
        parser.error(f"no such page: {', '.join(absent)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, started(Path(profile)) as browser:
            taken = [picture for page in pages for picture in shoot(browser, page, asked.folder, asked.element)]
    except Missing as missing:
        sys.exit(str(missing))
    print(*taken, sep="\n")
    if not taken:
        sys.exit("nothing to take a picture of: no page, or no element that matches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
