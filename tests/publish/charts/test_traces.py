"""Charts of the public traces, from a small ledger."""

from functools import partial

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.publish import render, theme
from kvtier.publish.cells import FILLS
from kvtier.publish.charts import traces_alpha, traces_by_capacity, traces_closed
from kvtier.publish.ledger import Ledger

TRACES = traces_by_capacity.TRACES


def record(value, unit="%", digits=2, low=None, high=None):
    ends = {} if low is None else {"interval_low": low, "interval_high": high, "interval_level": 0.95}
    return {
        "value": value,
        "display": Number("a.b", value, unit, digits, Label.SIMULATED, "x / y", status=Status.PROVISIONAL).display,
        "unit": unit,
        "label": str(Label.SIMULATED),
        "status": str(Status.PROVISIONAL),
        "definition": "x / y",
        "rule": "tabulate_traces",
        "params": {},
        "inputs": {},
        "uncertainty": ends,
    }


def records():
    found = {"analytic.ema.alpha005.half_life_steps": {**record(13.5, "steps", 1), "label": str(Label.ANALYTICAL), "status": "stands"}}
    for trace in TRACES:
        for rank, word in enumerate(("256k", "1m", "4m")):
            name = f"sim.traces.{trace}.{word}"
            for step, policy in enumerate(("lfu", "s3fifo", "ema005", "lru", "min")):
                found[f"{name}.{policy}.hit"] = record(10.0 * rank + 4 * step)
            found[f"{name}.alpha.best_half_life"] = record(461.8 * (rank + 1), "requests", 1)
            found[f"{name}.alpha.published_loss"] = record(0.5 * rank, "points")
            found[f"{name}.alpha.worst_loss"] = record(float(rank), "points")
            found[f"{name}.ema005.closed"] = record(0.10, "", 3, 0.05, 0.15)
            found[f"{name}.lfu.closed"] = record(-2.0 if trace == "agentic" else 0.3, "", 3, -2.5 if trace == "agentic" else -0.1, 0.5)
    found["sim.traces.agentic.1m.lfu.closed"]["uncertainty"]["interval_high"] = -1.0
    return found


@pytest.fixture
def ledger():
    return Ledger("a ledger", records())


@pytest.mark.parametrize("chart", [traces_by_capacity, traces_alpha, traces_closed])
@pytest.mark.parametrize("layout", [theme.WIDE, theme.NARROW])
def test_figure_draws_and_names_every_number(chart, layout, ledger):
    figure = chart.draw(ledger, layout)
    assert figure.label is Label.SIMULATED
    assert figure.caveat == theme.CAVEAT
    assert set(figure.drawn["key"]) <= {quote.key for quote in figure.quotes}
    picture = render._converted(render.spec(figure) if layout is theme.WIDE else render._page_spec(figure))
    for quote in figure.quotes:
        assert quote.bare in figure.alt or quote.bare == "0.00"
    assert picture.startswith("<svg")


def test_writes_all_forms(tmp_path, ledger):
    files = {form: tmp_path / f"a.{form}" for form in ("picture", "specification", "data", "page")}
    render.write(partial(traces_closed.draw, ledger), **files)
    assert all(path.stat().st_size for path in files.values())


def test_a_map_says_where_the_recommended_half_life_loses(ledger):
    fills = dict(traces_alpha.drawn(ledger, theme.WIDE).filter(column="Agentic").select("row", "fill").rows())
    assert fills == {"256K": FILLS["neither"], "1M": FILLS["against"], "4M": FILLS["against"]}


def test_cells_are_coloured_by_their_interval_and_sorted_by_the_worst_trace(ledger):
    points = traces_closed.drawn(ledger, theme.WIDE)
    assert points["row"].unique(maintain_order=True).to_list() == ["EMA 0.05", "LFU"]
    by_trace = dict(points.filter(row="LFU").select("column", "fill").rows())
    assert by_trace == {"Conversation": FILLS["neither"], "Synthetic": FILLS["neither"], "Agentic": FILLS["against"]}
    assert set(points.filter(row="EMA 0.05")["fill"]) == {FILLS["for"]}


def test_a_missing_number_is_refused():
    with pytest.raises(InputError, match="no key"):
        traces_by_capacity.draw(Ledger("a ledger", {key: value for key, value in records().items() if "synthetic" not in key}))
