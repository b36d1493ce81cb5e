"""Figures of kept runs, from a ledger and the list of runs alone."""

import math

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.publish import kept_runs, render, theme
from kvtier.publish.charts import metadata, movement, stream
from kvtier.publish.ledger import Ledger

RUN = "measured.box_2026_11_30"
SIZES = (4096, 65536, 2**20)
SETUP_US, GBPS = {"memory_to_memory": 2.0, "file_to_memory": 100.0}, {"memory_to_memory": 4.0, "file_to_memory": 1.0}


def record(value, unit, digits=1, label=Label.MEASURED, spread=0.05):
    about = {"definition": "x / y", "rule": "fit_kept_runs", "label": str(label), "status": str(Status.STANDS), "params": {}, "inputs": {}}
    ends = {"interval_low": value * (1 - spread), "interval_high": value * (1 + spread), "interval_level": 0.95} if spread else {}
    display = Number("a.b", value, unit, digits, label, "x").display
    return {"value": value, "unit": unit, "display": display, "uncertainty": ends, **about}


@pytest.fixture
def records():
    found = {
        f"{RUN}.machine.bus_gbps": record(170.7, "GB/s", 1, Label.VENDOR, 0),
        f"{RUN}.machine.last_level_cache_mib": record(8, "MiB", 0, spread=0),
        f"{RUN}.regeneration.sdpa.block_kib": record(64, "KiB", 0, Label.ANALYTICAL, 0),
    }
    for path, setup in SETUP_US.items():
        for size in SIZES:
            found[f"{RUN}.movement.{path}.{size}.us"] = record(setup + size / (GBPS[path] * 1e3), "µs")
        found[f"{RUN}.movement.{path}.setup_us"] = record(setup, "µs", 1, Label.ANALYTICAL)
        found[f"{RUN}.movement.{path}.gbps"] = record(GBPS[path], "GB/s", 1, Label.ANALYTICAL)
    for context, ms in ((0, 30.0), (512, 40.0)):
        found[f"{RUN}.regeneration.sdpa.{context}.ms"] = record(ms, "ms")
        for path, times in (("memory_to_memory", 1633), ("file_to_memory", 181)):
            found[f"{RUN}.regeneration.sdpa.{context}.over_move.{path}"] = record(times, "", 0, Label.ANALYTICAL)
    for operation in metadata.OPERATIONS:
        for policy, ns in (("lru", 30.0), ("ema", 90.0)):
            for blocks in (1000, 8192, 1_000_000):
                found[f"{RUN}.block_state.{operation}.{policy}.{blocks}.ns"] = record(ns * math.log10(blocks), "ns")
    for policy, us in (("lru", 640), ("ema", 2500)):
        found[f"{RUN}.block_state.step.{policy}.8192.us"] = record(us, "µs", 0, Label.ANALYTICAL)
    for kernel in stream.KERNELS:
        for threads in (1, 2):
            for size in (2**20, 2**24, 2**26):
                found[f"{RUN}.stream.{kernel}.{threads}t.{size}.gbps"] = record(6.0 * threads, "GB/s")
        found[f"{RUN}.stream.{kernel}.bus_share"] = record(7.0, "%", 1, Label.ANALYTICAL)
    return found


@pytest.fixture
def runs(tmp_path):
    rows = [
        ("box-2026-11-30", "box", "2026-11-30", "box_2026_11_30", "Small Box", 8 * 2**20),
        ("box-2026-11-30-2", "box", "2026-11-30", "box_2026_11_30_2", "Small Box", 8 * 2**20),
    ]
    path = tmp_path / "runs.csv"
    pl.DataFrame(rows, schema=kept_runs.RUNS.columns, orient="row").write_csv(path)
    return path


CHARTS = {"movement": movement, "metadata": metadata, "stream": stream}


@pytest.fixture
def draw(records, runs):
    return lambda chart, layout=theme.WIDE: CHARTS[chart].draw(runs, Ledger("numbers.json", records), layout)


@pytest.mark.parametrize("chart", CHARTS)
def test_is_drawn_for_print_and_for_both_widths_of_a_page(draw, chart):
    figure = draw(chart)
    label = "Measured" if chart == "metadata" else "Analytical model"
    assert figure.badge == f"{label} · Small Box, 2026-11-30"
    assert figure.caveat in render.svg(figure, render.spec(figure))
    page = render.page_form(figure, draw(chart, theme.NARROW))
    keys = {row[page["columns"].index("key")] for row in page["rows"]} - {None}
    assert all(f'href="#n/{key}"' in page[layout] for key in keys for layout in ("wide", "narrow") if ".regeneration." not in key)
    assert all("box_2026_11_30_2" not in key for key in keys)


def test_ratios_of_computing_again_over_moving_stand_on_the_chart(draw):
    picture = render.svg(draw("movement"), render.spec(draw("movement")))
    assert "memory to memory: ×1,633" in picture
    assert "file to memory: ×181" in picture
    assert "Compute the block again: 30.0 to 40.0 ms" in picture
    assert "computing the block again takes 1,633 times as long" in draw("movement").alt


def test_lines_are_those_of_setup_and_bandwidth(draw):
    lines = draw("movement").drawn.filter(pl.col("mark") == movement.LINE)
    for path, setup in SETUP_US.items():
        own = lines.filter(pl.col("path") == path)
        assert own["us"].to_list() == pytest.approx([setup + size / (GBPS[path] * 1e3) for size in own["piece_bytes"]])


def test_a_path_without_a_bandwidth_has_points_and_no_line(records, runs):
    for field in ("setup_us", "gbps"):
        del records[f"{RUN}.movement.file_to_memory.{field}"]
    figure = movement.draw(runs, Ledger("numbers.json", records))
    own = figure.drawn.filter(pl.col("path") == "file_to_memory")
    assert set(own["mark"]) == {movement.TIMED}


def test_a_run_that_computed_nothing_again_is_drawn_without_level_and_ratio(records, runs):
    kept = {key: value for key, value in records.items() if ".regeneration." not in key}
    figure = movement.draw(runs, Ledger("numbers.json", kept))
    assert movement.MADE not in set(figure.drawn["mark"])
    assert "memory to memory: 264.1 [250.9, 277.4] µs" in render.svg(figure, render.spec(figure))


def test_a_second_machine_has_a_panel_of_its_own(records, runs):
    rows = pl.read_csv(runs)
    other = rows.head(1).with_columns(
        pl.lit("other").alias("machine"), pl.lit("other_2026_11_30").alias("key"), pl.lit("Other").alias("words")
    )
    pl.concat([rows, other.with_columns(pl.lit("other-2026-11-30").alias("run"))]).write_csv(runs)
    both = records | {key.replace(RUN, "measured.other_2026_11_30"): value for key, value in records.items()}
    figure = movement.draw(runs, Ledger("numbers.json", both))
    assert len(figure.panels) == 1
    assert figure.source == "2 machines"
    assert "Other, 2026-11-30" in render.svg(figure, render.spec(figure))


def test_what_is_timed_and_not_derived_is_measured(draw):
    assert {str(quote.label) for quote in draw("metadata").quotes} == {"Measured"}


def test_the_axis_of_metadata_holds_all_in_whole_decades(draw):
    assert metadata.domain(draw("metadata").drawn) == (10.0, 1000.0)


def test_the_bus_is_on_the_axis_of_the_stream(draw):
    low, high = stream.domain(draw("stream").drawn, 170.7)
    assert low < 6 < 170.7 < high
    assert "of it, memory gives (%): 7.0" in render.svg(draw("stream"), render.spec(draw("stream")))


@pytest.mark.parametrize("chart", CHARTS)
def test_a_run_without_the_part_is_refused(runs, chart):
    with pytest.raises(InputError, match=r"no such numbers, expected a kept run that has them"):
        CHARTS[chart].draw(runs, Ledger("numbers.json", {}))


def test_sizes_are_written_in_binary_units():
    assert [kept_runs.size(each) for each in (512, 4096, 3 * 2**19, 2**30)] == ["512 B", "4 KiB", "1.5 MiB", "1 GiB"]


def test_runs_are_written_by_machine_and_day():
    assert kept_runs.name("epyc_2_cores_2026_11_30") == "epyc 2 cores, 2026-11-30"
    assert kept_runs.name("epyc_2_cores_2026_11_30_2") == "epyc 2 cores, 2026-11-30 (2)"
    assert kept_runs.name("gb10") == "gb10"
