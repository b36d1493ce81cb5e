"""The decode fits with each row left out, from the ledger alone."""

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.publish import render, theme
from kvtier.publish.charts import influence
from kvtier.publish.ledger import Ledger

SLOPES = {
    "hf": {(1, 4096): 16.4, (4, 32768): 17.5, (16, 4096): 16.1},
    "vllm": {(1, 4096): 18.2, (4, 32000): 18.0, (16, 16384): 11.9},
}
DECISIVE = {"hf": (4, 32768), "vllm": (16, 16384)}


def record(value, unit, digits, label=Label.ANALYTICAL, spread=0.0):
    about = {"definition": "x / y", "rule": "some_rule", "label": str(label), "status": str(Status.STANDS), "params": {}, "inputs": {}}
    uncertainty = {"interval_low": value - spread, "interval_high": value + spread, "interval_level": 0.95} if spread else {}
    return {
        "value": value,
        "unit": unit,
        "display": Number("a.b", value, unit, digits, label, "x").display,
        "uncertainty": uncertainty,
        **about,
    }


@pytest.fixture
def records():
    found = {}
    for run, slopes in SLOPES.items():
        found[f"measured.gb10.{run}.slope_95"] = record(17.0, "ms/GiB", 2, spread=2)
        found[f"measured.gb10.{run}.fixed_over_kv_95"] = record(3.0, "", 1, spread=1)
        batch, tokens = DECISIVE[run]
        found[f"measured.gb10.{run}_loo_{batch}x{tokens}.slope"] = record(slopes[DECISIVE[run]], "ms/GiB", 2, Label.MEASURED)
        for (batch, tokens), slope in slopes.items():
            key = f"measured.gb10.{run}.{batch}x{tokens}"
            found[f"{key}.without_slope"] = record(slope, "ms/GiB", 2, spread=3)
            found[f"{key}.without_fixed_over_kv"] = record(slope / 6, "", 1, spread=0.5)
            found[f"{key}.cooks"] = record(7.5 if (batch, tokens) == DECISIVE[run] else 0.1, "", 2)
    return found


@pytest.fixture
def draw(records, decode_tables):
    return lambda layout=theme.WIDE: influence.draw(decode_tables[2], Ledger("numbers.json", records), layout)


def test_is_drawn_for_print_and_for_both_widths_of_a_page(draw):
    figure = draw()
    assert figure.badge == "Analytical model · Box One, 2026-08-19"
    assert figure.caveat in render.svg(figure, render.spec(figure))
    page = render.page_form(figure, draw(theme.NARROW))
    keys = [row[page["columns"].index("key")] for row in page["rows"]]
    assert len(keys) == 2 * 2 * (3 + 1)
    for layout in ("wide", "narrow"):
        assert all(f'href="#n/{key}"' in page[layout] for key in keys)


def test_the_decisive_row_is_ringed_and_named(draw):
    figure = draw()
    marked = figure.drawn.filter("decisive").select("run", "batch", "context_tokens", "quantity").rows()
    assert marked == [(run, *DECISIVE[run], panel.field) for run in SLOPES for panel in influence.PANELS]
    assert "The row that decides is 16 × 16,384, Cook's distance 7.50" in figure.alt
    assert "(7.50 for HF, 7.50 for vLLM)" in figure.caption


def test_intervals_and_lines_are_those_of_the_ledger(draw, records):
    for row in draw().drawn.iter_rows(named=True):
        found = records[row["key"]]
        assert (row["value"], row["lower"], row["upper"]) == (
            found["value"],
            found["uncertainty"]["interval_low"],
            found["uncertainty"]["interval_high"],
        )


def test_axes_hold_every_interval(draw):
    points = draw().drawn
    for panel in influence.PANELS:
        low, high = influence.scale(points, panel).to_dict()["domain"]
        own = points.filter(quantity=panel.field)
        assert low <= own["lower"].min()
        assert high >= own["upper"].max()


def test_rows_and_fits_do_not_overlap(draw):
    for layout in (theme.WIDE, theme.NARROW):
        heights = draw(layout).drawn.filter(mark="row", quantity="slope")["y_px"].diff().drop_nulls()
        assert heights.min() == influence.GRIDS[layout].row


def test_a_missing_row_is_refused(draw, records):
    del records["measured.gb10.vllm.16x16384.without_fixed_over_kv"]
    with pytest.raises(InputError, match=r"vllm\.16x16384\.without_fixed_over_kv: found no such key"):
        draw()


def test_a_ledger_without_the_fits_is_refused(draw, records):
    for key in [key for key in records if key.endswith("without_slope")]:
        del records[key]
    with pytest.raises(InputError, match="expected a fit without a row"):
        draw()
