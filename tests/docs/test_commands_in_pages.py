"""Every block of a page that is marked as tested is run, page by page, in an empty checkout that answers from the published copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier.workload import traces

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^<!-- tested -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PARTS = ("Snakefile", "config", "data", "docs", "paper", "notebooks", "pyproject.toml", "src", "workflow", "README.md", "CITATION.cff")


def blocks(path):
    return BLOCK.findall(path.read_text(encoding="utf-8"))


PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if blocks(path)]


def run(script, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What a fresh clone has, without results. Copied: the workflow takes no file for its own that lies elsewhere."""
    folder = tmp_path_factory.mktemp("clone") / "kvtier"
    folder.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, symlinks=True)
        elif (ROOT / part).is_file():
            shutil.copy2(ROOT / part, folder / part)
    return folder


def test_pages_have_blocks():
    assert len(PAGES) >= 4
    assert len(blocks(ROOT / "docs/tutorial/first-number.md")) == 6


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_of_a_page_succeed(page, checkout):
    for script in blocks(page):
        done = run(script, checkout)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip() or "write_requests" in script, script


def test_a_command_that_fails_is_seen(checkout):
    assert run("kvtier explain no.such.key\n", checkout).returncode == 1


def code(path, language):
    """Code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_trace_of_the_formats_page_is_one(tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(code("docs/reference/formats.md", "json")))
    trace = traces.load(path)
    assert trace.requests == 2
    # The second request has the first one's blocks and one more.
    assert trace.unique_blocks == 5


def test_identities_of_the_trace_page_tell_prefixes():
    given = {}
    exec(code("docs/how-to/replay-a-trace.md", "python")[0], given)
    first, longer, other = given["blocks"]([7] * 40), given["blocks"]([7] * 48), given["blocks"]([8] + [7] * 47)
    assert first == [0, 1]
    assert longer == [0, 1, 2]
    assert not set(other) & {0, 1, 2}
