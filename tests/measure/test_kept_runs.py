import json
from math import log10

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.measure import kept, kept_runs, kept_tables, repeatability
from kvtier.measure.kept_numbers import numbers

KEY = "measured.made_up_2_cores_2026_11_30"


@pytest.fixture
def folder(write_kept, tmp_path):
    return write_kept(tmp_path / "made_up_2_cores-2026-11-30")


@pytest.fixture
def run(folder):
    return kept_runs.read(folder)


@pytest.fixture
def ledger(run):
    return {number.key.removeprefix(f"{KEY}."): number for number in numbers([run], [])}


def test_the_record_is_read(run):
    assert (run.slug, run.cores, run.bus_gbps, run.date) == ("made_up_2_cores", 2, 170.7, "2026-11-30")
    assert run.key == "made_up_2_cores_2026_11_30"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record.pop("bus"), r"platform\.json: bus: found no such field"),
        (lambda record: record.update(bus=None), r"platform\.json: bus: found None, expected a mapping of fields"),
        (lambda record: record["machine"].update(cores=0), r"platform\.json: machine\.cores: found 0"),
        (lambda record: record["bus"].update(gbps="fast"), r"platform\.json: bus\.gbps: found 'fast'"),
    ],
)
def test_a_damaged_record_is_told_in_one_line(folder, change, said):
    path = folder / "platform.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=said):
        kept_runs.read(folder)


def test_a_model_that_is_not_described_leaves_no_fit(folder):
    path = folder / "platform.json"
    record = json.loads(path.read_text())
    del record["parts"]["decode"]["about"]["kv_bytes_per_token"]
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"parts\.decode\.about\.kv_bytes_per_token: found no such field"):
        _ = kept_runs.read(folder).decodes


def test_decode_is_fitted_as_the_rows_were_made(ledger):
    slope = ledger["decode.sdpa_cpu_float32.slope"]
    assert slope.uncertainty["interval_low"] < 200 < slope.uncertainty["interval_high"]
    intercept = ledger["decode.sdpa_cpu_float32.intercept_ms"]
    assert intercept.uncertainty["interval_low"] < 20 < intercept.uncertainty["interval_high"]
    assert ledger["decode.sdpa_cpu_float32.fixed_gbps"].value == pytest.approx(2 / (intercept.value / 1e3))
    kv = ledger["decode.sdpa_cpu_float32.kv_gbps"].value
    assert kv == pytest.approx(2**30 / 1e9 / (slope.value / 1e3))
    assert ledger["decode.sdpa_cpu_float32.8x2048.step_ms"].value == pytest.approx(20 + 200 / 16 + 0.05)


def test_paths_are_fitted_as_the_rows_were_made(ledger):
    assert ledger["movement.memory_to_memory.gbps"].value == pytest.approx(5)
    assert ledger["movement.memory_to_memory.setup_us"].value == pytest.approx(0.5)
    assert ledger["movement.file_to_memory.gbps"].value == pytest.approx(1.5)


def test_regenerating_over_moving_is_one_time_over_the_other(ledger):
    """16 tokens of 4 KiB are a block of 64 KiB, one of the sizes timed."""
    assert ledger["regeneration.sdpa_cpu_float32.0.ms"].value == pytest.approx(30)
    assert ledger["regeneration.sdpa_cpu_float32.block_kib"].value == 64
    ratio = ledger["regeneration.sdpa_cpu_float32.0.over_move.memory_to_memory"]
    assert ratio.value == pytest.approx(30e3 / (0.5 + 2**16 / 5e3))
    assert ratio.uncertainty["interval_low"] < ratio.value < ratio.uncertainty["interval_high"]
    assert 2 < log10(ratio.value) < 4


def test_a_block_between_two_sizes_is_on_the_line_between_them():
    times = {100: [1.0, 2.0], 200: [3.0, 2.0], 400: [9.0, 9.0]}
    assert kept_runs.at_size(times, 150) == [2.0, 2.0]
    assert kept_runs.at_size(times, 200) == [3.0, 2.0]
    assert kept_runs.at_size(times, 50) == kept_runs.at_size(times, 500) == []


def test_operations_add_up_to_a_step(ledger):
    assert ledger["block_state.lookup.lfu.8192.ns"].value == pytest.approx(80)
    assert ledger["block_state.step.lru.8192.us"].value == pytest.approx(8192 * (40 + 90) / 1e3)
    assert ledger["block_state.step.lfu.1000000.us"].value == pytest.approx(1e6 * 2 * 2 * (40 + 90) / 1e3)
    assert ledger["block_state.bytes_per_block.8192.table"].value == 72
    assert ledger["folding.max.float32.640x8192.2t.us"].value == pytest.approx(450)


def test_the_stream_from_memory_is_not_that_from_the_cache(ledger):
    assert ledger["stream.copy.2t.65536.gbps"].value == pytest.approx(40)
    best = ledger["stream.copy.from_memory_gbps"]
    assert best.value == pytest.approx(20)
    assert ledger["stream.copy.bus_share"].value == pytest.approx(100 * best.value / 170.7)


def test_labels_are_no_stronger_than_what_was_done(ledger):
    of = {key: number.label for key, number in ledger.items()}
    assert of["movement.memory_to_memory.4096.us"] is Label.MEASURED
    assert of["machine.bus_gbps"] is Label.VENDOR
    for key in ("movement.memory_to_memory.gbps", "decode.sdpa_cpu_float32.slope", "block_state.step.lru.8192.us"):
        assert of[key] is Label.ANALYTICAL
    assert of["regeneration.sdpa_cpu_float32.0.over_move.memory_to_memory"] is Label.ANALYTICAL


def test_each_definition_names_machine_and_day(ledger):
    assert all(number.definition.endswith("2 cores of a made-up processor, 2026-11-30.") for number in ledger.values())


def test_no_run_at_all_is_refused():
    with pytest.raises(InputError, match="data/measured: kept runs: found none"):
        kept_runs.read_all([])


def test_equal_runs_agree(run, write_kept, tmp_path):
    again = kept_runs.read(write_kept(tmp_path / "made_up_2_cores-2026-11-30-2"))
    found = repeatability.repeated([again, run])
    assert [each.first.name for each in found] == [run.name] * len(found)
    assert {each.slopes[0].key for each in found} == {
        "decode_sdpa_cpu_float32",
        "decode_sdpa_cpu_float32_with_batch",
        "movement_memory_to_memory",
        "movement_file_to_memory",
    }
    assert all(each.meet and each.ratio.value == 1 for each in found)


def test_a_run_with_another_slope_does_not_agree(run, write_kept, tmp_path):
    slower = kept_runs.read(write_kept(tmp_path / "made_up_2_cores-2026-11-30-2", decode={"slope_ms_per_gib": 260}))
    found = {each.slopes[0].key: each for each in repeatability.repeated([run, slower])}
    assert not found["decode_sdpa_cpu_float32"].meet
    assert found["decode_sdpa_cpu_float32"].ratio.low > 1
    made = {number.key: number for number in numbers([], found.values())}
    prefix = f"measured.repeatability.{slower.key}"
    assert made[f"{prefix}.compared"].value == 4
    assert made[f"{prefix}.agree"].value == sum(each.meet for each in found.values()) < 4
    rows = repeatability.table(found.values())
    assert rows.filter(~pl.col("intervals_meet"))["slope"].to_list()[0] == "decode, sdpa on cpu, float32"


def test_runs_of_two_machines_are_not_compared(run, write_kept, tmp_path):
    folder = write_kept(tmp_path / "other-2026-11-30")
    path = folder / "platform.json"
    path.write_text(path.read_text().replace("made_up_2_cores", "other"))
    assert repeatability.repeated([run, kept_runs.read(folder)]) == []


def test_what_the_rows_do_not_allow_is_left_out_with_the_reason(write_kept, tmp_path):
    """A step that does not grow with KV: a line, and no bandwidth."""
    run = kept_runs.read(write_kept(tmp_path / "made_up_2_cores-2026-11-30", decode={"slope_ms_per_gib": 0}))
    (decode,) = run.decodes
    assert decode.line is not None
    assert decode.kv_gbps is None
    assert any("interval of a time" in reason for reason in decode.left_out)
    keys = {number.key for number in numbers([run], [])}
    assert f"{KEY}.decode.sdpa_cpu_float32.slope" in keys
    assert f"{KEY}.decode.sdpa_cpu_float32.kv_gbps" not in keys
    _, fits = kept_tables.build([run], [])["decode_fits"]
    assert "interval of a time" in fits["left_out"][0]


def test_a_line_through_few_sizes_is_left_out(write_kept, tmp_path):
    """As the kit leaves it out: no guard has looked at such a line."""
    written = write_kept(tmp_path / "made_up_2_cores-2026-11-30")
    rows = pl.read_csv(written / "decode.csv")
    few = rows.unique(["batch", "context_tokens"], maintain_order=True)["context_tokens"].unique(maintain_order=True)[0]
    rows.filter((pl.col("context_tokens") == few) & (pl.col("batch") <= 4)).write_csv(written / "decode.csv")
    (decode,) = kept_runs.read(written).decodes
    assert decode.line is None
    assert any("sizes of KV: found" in reason and f"{kept.LEAST_FIT_SIZES} or more" in reason for reason in decode.left_out)
    assert decode.points["median"].len()


def test_a_part_alone_makes_numbers_of_its_own(write_kept, tmp_path):
    run = kept_runs.read(write_kept(tmp_path / "made_up_2_cores-2026-11-30", only=("metadata",)))
    groups = {number.key.split(".")[2] for number in numbers([run], [])}
    assert groups == {"machine", "block_state"}
    tables = kept_tables.build([run], [])
    assert tables["decode_fits"][1].is_empty()
    assert not tables["metadata"][1].is_empty()
