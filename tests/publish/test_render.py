import json
import os
import subprocess
import sys
from functools import partial
from xml.etree import ElementTree

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish import font, render, theme
from kvtier.publish.charts import hit_rate_by_budget

DRAW = """
import sys
from functools import partial
from pathlib import Path
from kvtier.publish import render
from kvtier.publish.charts import hit_rate_by_budget
from kvtier.publish.ledger import Ledger
table, numbers, out = map(Path, sys.argv[1:])
draw = partial(hit_rate_by_budget.draw, table, Ledger.read(numbers))
render.write(draw, picture=out / "f.svg", specification=out / "f.vl.json", data=out / "f.csv", page=out / "f.page.json")
"""


@pytest.fixture
def figure(budgets_table, ledger):
    return hit_rate_by_budget.draw(budgets_table, ledger)


def test_files_that_hold_the_same(figure, budgets_table, ledger, tmp_path):
    folder = tmp_path / "not" / "there" / "yet"
    files = {"picture": "f.svg", "specification": "f.vl.json", "data": "f.csv", "page": "f.page.json"}
    render.write(partial(hit_rate_by_budget.draw, budgets_table, ledger), **{form: folder / name for form, name in files.items()})
    spec = json.loads((folder / "f.vl.json").read_text(encoding="utf-8"))
    assert spec["datasets"][render.DATA] == figure.drawn.to_dicts()
    assert pl.read_csv(folder / "f.csv").equals(figure.drawn)
    page = json.loads((folder / "f.page.json").read_text(encoding="utf-8"))
    assert pl.DataFrame(page["rows"], schema=figure.drawn.schema, orient="row").equals(figure.drawn)
    assert sorted(path.name for path in folder.iterdir()) == sorted(files.values())


def test_the_picture_says_label_caveat_title_and_alternative(figure):
    picture = ElementTree.fromstring(render.svg(figure, render.spec(figure)))
    title, description = picture[0], picture[1]
    assert (picture.get("role"), picture.get("aria-labelledby")) == ("img", f"{title.get('id')} {description.get('id')}")
    assert (title.text, description.text) == (figure.title, figure.alt)
    words = {element.text for element in picture.iter() if element.tag.endswith("text")}
    assert {figure.badge, theme.CAVEAT} <= words


def test_a_picture_without_the_caveat_is_refused(figure):
    spec = render.spec(figure)
    spec["layer"] = [layer for layer in spec["layer"] if theme.CAVEAT not in str(layer)]
    with pytest.raises(InputError, match="found a picture without it, expected the words 'Provisional"):
        render.svg(figure, spec)


def test_a_picture_without_the_badge_is_refused(figure):
    spec = render.spec(figure)
    spec["layer"] = [layer for layer in spec["layer"] if figure.badge not in str(layer)]
    with pytest.raises(InputError, match=r"the words 'Simulated \(provisional\) · Revision 2'"):
        render.svg(figure, spec)


def test_text_is_set_in_the_pinned_font(figure):
    assert font.FAMILY in render.svg(figure, render.spec(figure))


def test_bytes_do_not_depend_on_the_process(budgets_table, numbers, tmp_path):
    files = {}
    for seed, zone, threads in (("0", "UTC", "1"), ("4242", "Pacific/Auckland", "4")):
        out = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "POLARS_MAX_THREADS": threads, "RAYON_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", DRAW, budgets_table, numbers, out], env=environment, check=True, timeout=600)
        files[seed] = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
    assert len(files["0"]) == 4
    assert files["0"] == files["4242"]
