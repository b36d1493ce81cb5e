"""The notebooks themselves: they run, say the same twice, need no network, leave nothing behind; and their rules declare what they read."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
from jupytext.config import load_jupytext_config
from nbformat.v4 import new_output

from kvtier.evidence import lint
from kvtier.files import read_yaml
from kvtier.publish.notebooks import page, run

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
ALLOWED = read_yaml(ROOT / "data/published/allowed_numbers.yaml")
CHECKOUT = ("README.md", "Snakefile", "data", "notebooks", "src", "workflow")

RUN = """
import sys
from pathlib import Path
from kvtier.publish.notebooks import page, run
for path in sorted(Path("notebooks").glob("*.py")):
    notebook = run.execute(path, run.read(path), Path.cwd(), sys.argv[2:])
    Path(sys.argv[1], path.stem + ".html").write_text(page.render(path, notebook), encoding="utf-8")
"""

# They run once, and other tests look at what came out.
pytestmark = pytest.mark.xdist_group("notebooks")


def tracked_files(checkout):
    """Every file of a checkout but what Python and numba compile, with its bytes."""
    return {
        str(path.relative_to(checkout)): path.read_bytes()
        for path in sorted(checkout.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout without a build."""
    target = tmp_path_factory.mktemp("notebooks") / "checkout"
    target.mkdir()
    for part in CHECKOUT:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy2(source, target / part)
    return target


def pages(checkout, folder, **environment):
    """Pages of all notebooks, run in a process of its own whose home cannot be used."""
    folder.mkdir()
    declared = [path for path in tracked_files(checkout) if not path.startswith("src/")]
    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), *declared],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "src"), "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html"))}


@pytest.fixture(scope="module")
def first(checkout, tmp_path_factory):
    """Pages of a first run, and the files of the checkout before and after it."""
    before = tracked_files(checkout)
    made = pages(checkout, tmp_path_factory.mktemp("first") / "pages", PYTHONHASHSEED="1", TZ="UTC")
    return made, before, tracked_files(checkout)


def test_every_notebook_runs_from_the_published_copy(first):
    made, _, _ = first
    assert list(made) == [path.stem for path in NOTEBOOKS]
    assert "published copy; nothing is built" in made["01-where-a-number-comes-from"]


def test_nothing_in_the_checkout_is_written(first):
    _, before, after = first
    assert after == before


def test_another_hash_seed_zone_and_language_make_the_same_pages(checkout, first, tmp_path):
    made, _, _ = first
    assert pages(checkout, tmp_path / "pages", PYTHONHASHSEED="7", TZ="Pacific/Auckland", LC_ALL="C", COLUMNS="40") == made


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_a_page_asks_no_other_place_for_anything(first, name):
    html = first[0][name]
    page.check_inside(name, html)
    assert "default-src 'none'" in html
    assert str(ROOT) not in html
    assert "/tmp/" not in html


@pytest.mark.parametrize("name", ["02-policies-and-the-optimum", "04-size-your-own-model-and-trace"])
def test_figures_bear_label_and_caveat_and_can_be_moved(first, name):
    html = first[0][name]
    specifications = re.findall(r'<script type="application/json" class="specification"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert specifications
    for text in map(json.loads, specifications):
        assert any("bind" in parameter for parameter in text["params"])
        words = json.dumps(text, ensure_ascii=False)
        assert "Simulated (provisional) · " in words
        assert "no hardware validation" in words


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_number_is_typed(path):
    assert run.check_words(path, run.read(path), ALLOWED) > 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_saved_from_jupyterlab_the_file_stays_as_it_is(path):
    """Run and saved by the settings beside it: neither outputs nor metadata of an editor are kept."""
    settings, text = load_jupytext_config(str(path)), path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent", config=settings)
    for cell in notebook.cells:
        cell.metadata["editable"] = True
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = 1, [new_output("stream", text="planted")]
    assert jupytext.writes(notebook, fmt="py:percent", config=settings) == text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_ends_with_exercises_and_shows_the_caveat_first(path):
    notebook = run.read(path)
    assert notebook.cells[-1].source.startswith("## Exercises\n")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert any("show.caveat()" in source for source in code[:2])


def test_figures_type_no_numbers():
    assert lint.check_figures([str(ROOT / "src/kvtier/publish/notebooks/figures.py")], ALLOWED) == 1


def test_each_notebook_has_a_rule():
    rules = (ROOT / "workflow/rules/notebooks.smk").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert f'notebook="notebooks/{path.name}"' in rules
        assert f'page="results/notebooks/{path.stem}.html"' in rules
        assert f'CODE_OF_NOTEBOOK["{path.stem}"]' in rules
    assert rules.count("\nrule run_") == len(NOTEBOOKS) == rules.count(".output.page,\n")


def test_make_lab_opens_a_file_of_cells_as_a_notebook():
    folder = "notebooks/.jupyter"
    assert f"JUPYTER_CONFIG_PATH=$(CURDIR)/{folder} $(BIN)/jupyter lab notebooks" in (ROOT / "Makefile").read_text(encoding="utf-8")
    settings = json.loads((ROOT / folder / "labconfig/default_setting_overrides.json").read_text(encoding="utf-8"))
    assert settings["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"] == {"python": "Jupytext Notebook"}
    assert settings["@jupyterlab/apputils-extension:notification"] == {"checkForUpdates": False, "fetchNews": "false"}
