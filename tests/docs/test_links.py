"""Links of the pages that are read in the repository: each leads to a file, and to a heading of it."""

import posixpath
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CALL = re.compile(r"\{\{ \w+\(\) \}\}")
MADE_BY_THE_SITE = "docs/reference/packages/"


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no repository")
    return listed.stdout.split()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """Identities that a page gives itself, and those that its headings get where Markdown is shown."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {
        *re.findall(r'\b(?:id|name)="([^"]+)"', text),
        *(re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for words in headings),
    }


def broken(texts, files):
    """(page, link) that leads nowhere.

    `texts` is text by place in the repository, of pages and of what they link to; `files` all that is tracked. Pages that the site alone
    makes are not there, and a page with a part that the site makes has headings that do not show; both are mkdocs' to check.
    """
    found = []
    for page, text in texts.items():
        for link in LINK.findall(without_code(text)) if page.endswith(".md") else ():
            path, _, anchor = link.partition("#")
            meant = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if re.match(r"[a-z]+:", link) or meant.startswith(MADE_BY_THE_SITE):
                continue
            there = texts.get(meant)
            lost = anchor and there is not None and not CALL.search(there) and anchor not in anchors(there)
            if lost or not any(file == meant or file.startswith(f"{meant}/") for file in files):
                found.append((page, link))
    return found


def test_every_link_leads_somewhere():
    files = tracked()
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in tracked("*.md", "*.html") if (ROOT / name).is_file()}
    assert sum(len(LINK.findall(text)) for text in texts.values()) > 500
    assert broken(texts, files) == []


@pytest.mark.parametrize(
    ("link", "lost"),
    [
        ("../CLAIMS.md", False),
        ("../CLAIMS.md#a-part", False),
        ("../CLAIMS.md#d1", False),
        ("#here", False),
        ("..", True),
        ("../data", False),
        ("made.md#command", False),
        ("https://example.org/none", False),
        ("../NONE.md", True),
        ("../CLAIMS.md#no-part", True),
        ("../documents/CLAIMS.md", True),
        ("#there", True),
    ],
)
def test_a_planted_link_to_nothing_is_found(link, lost):
    texts = {
        "docs/page.md": f"# Here\n\n[words]({link})\n",
        "docs/made.md": "# Made\n\n{{ commands() }}\n",
        "data/README.md": "",
        "CLAIMS.md": '## A part\n\n<a id="d1"></a>\n',
    }
    texts["docs/page.md"] += "```\n[code](none.md)\n```\n"
    assert broken(texts, list(texts)) == ([("docs/page.md", link)] if lost else [])
