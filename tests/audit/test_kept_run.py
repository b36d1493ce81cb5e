"""A kept run whose rows are sound passes; each row that is doctored afterwards is refused by name."""

import copy
import json
from dataclasses import asdict
from datetime import UTC, datetime

import polars as pl
import pytest

from kvtier.audit import kept_run
from kvtier.audit.physical_bound import AboveTheBus, Checked, UnexpectedWeights
from kvtier.audit.residency import UnexpectedPool
from kvtier.audit.timing import BelowResolution, Drift
from kvtier.errors import InputError
from kvtier.kit import record
from kvtier.kit.machine import Accelerator, Bus, Machine
from kvtier.measure import kept
from kvtier.units import GIB, MIB

MACHINE = Machine("2 cores of a test", "test_2_cores", 2, 8 * MIB, 16 * GIB, 12 * GIB, (0,), Bus(100.0, "a data sheet"))
GPU = Accelerator("a GPU", 80 * GIB, 70 * GIB, Bus(3000.0, "its data sheet"), "12.8", unified=False)
REPETITIONS = range(6)
NOISE = (1.0, 1.02, 0.99, 1.01, 1.0, 0.98)
PARAMETERS, PER_TOKEN = 25_000_000, 8192


def frame(name, rows):
    return pl.DataFrame(rows, schema=kept.TABLES[name].columns, orient="row")


def stream(device="host"):
    """10 GB/s from memory, 400 from the cache."""
    rows = []
    for repetition in REPETITIONS:
        for kernel, arrays in kept_run.STREAM_ARRAYS.items():
            for size, gbps in ((MIB, 400), (32 * MIB, 10)):
                moved = 700 * arrays * size
                rows.append((kernel, size, 1, repetition, 700, moved, NOISE[repetition] * moved / gbps / 1e9))
    return frame("stream", rows), {"device": device}, []


def movement(paths=("memory to memory", "file to memory")):
    """4 GB/s one way, so 8 of both in memory."""
    rows = [
        (path, size, 64 * MIB // size, repetition, NOISE[repetition] * 64 * MIB / 4e9)
        for repetition in REPETITIONS
        for path in paths
        for size in (4096, MIB)
    ]
    reads = 1 if "file to memory" in paths else 0
    return frame("movement", rows), {"tick_s": 4e-8}, [Checked("share that the device read", 100.0, 95, "% at least")] * reads


def decode(device="cpu", dtype="float32"):
    rows = []
    for repetition in REPETITIONS:
        for batch, tokens in ((1, 256), (4, 1024)):
            step_s = NOISE[repetition] * (4 * PARAMETERS + batch * tokens * PER_TOKEN) / 10e9
            rows.append(("sdpa", device, dtype, batch, tokens, repetition, 10, 0.5, 0.5 + 8 * step_s, 1e3 * step_s))
    about = {
        "weight_bytes": 4 * PARAMETERS,
        "parameters": PARAMETERS,
        "kv_bytes_per_token": PER_TOKEN,
        "kv_pool": {"bytes": 4096 * PER_TOKEN, "tokens": 4096},
    }
    return frame("decode", rows), about, [Checked("distinct sequences", 4, 4, "sequences")]


def regeneration(dtype="float32"):
    """At half of what the bus allows."""
    rows = [
        ("numpy", "cpu", dtype, context, 16, repetition, NOISE[repetition] * (4 * PARAMETERS + context * PER_TOKEN) / 50e9)
        for repetition in REPETITIONS
        for context in (0, 1024)
    ]
    sizes = {"weight_bytes": 4 * PARAMETERS, "parameters": PARAMETERS, "layer_parameters": PARAMETERS, "kv_bytes_per_token": PER_TOKEN}
    return frame("regeneration", rows), sizes, []


def folding(streams=640, gbps=5, fold="max"):
    rows = [
        (fold, streams, 8192, "float32", threads, repetition, NOISE[repetition] * streams * 8192 * 4 / gbps / 1e9)
        for repetition in REPETITIONS
        for threads in (1, 2)
    ]
    return frame("folding", rows), {"tick_s": 1e-9}, []


def table_size():
    return frame("table_size", [(1000, 72_000, 80_000)]), {}, []


ALL = {"stream": stream, "movement": movement, "decode": decode, "regeneration": regeneration, "folding": folding, "table_size": table_size}


def kept_of(machine=MACHINE, **made):
    """Record and tables of a run of such parts, the record as the kit writes it."""
    parts = {
        name: record.PartRecord("complete", tables={f"{name}.csv": rows.height}, about=about, checked=[asdict(each) for each in checked])
        for name, (rows, about, checked) in made.items()
    }
    start = datetime(2026, 11, 30, tzinfo=UTC)
    document = record.Record(machine, "kvtier measure all", False, start, 1e-7, {}, parts).document()
    return json.loads(json.dumps(document)), {name: rows for name, (rows, _, _) in made.items()}


@pytest.fixture
def run():
    return kept_of(**{name: make() for name, make in ALL.items()})


def doctored(tables, name, row, **values):
    """The tables with other values in one row."""
    changed = {
        column: tables[name][column].scatter(row, pl.Series([value], dtype=kept.TABLES[name].columns[column]))
        for column, value in values.items()
    }
    return {**tables, name: tables[name].with_columns(**changed)}


def row_of(tables, name, **values):
    return int(
        tables[name].select(pl.all_horizontal(pl.col(column) == value for column, value in values.items())).to_series().arg_true()[0]
    )


def test_a_sound_run_passes(run):
    checked = kept_run.check(*run)
    subjects = [each.subject for each in checked]
    assert "kernel copy, buffer_bytes 33554432, threads 1 of kept run/stream.csv" in subjects
    # Resolution and drift of five tables; 4 kernels; 2 sizes by 2 paths; the 2 points, the weights and the pool of decode;
    # 2 points and the weights of regeneration; what the run alone could see.
    assert len(checked) == 5 * 2 + 4 + 4 + 4 + 3 + 2
    assert [each.unit for each in checked[-2:]] == ["% at least", "sequences"]
    # The cache is faster than the bus, and may be.
    assert not any("buffer_bytes 1048576" in subject for subject in subjects)


def test_only_what_comes_from_memory_is_held_against_the_bus():
    """20 MiB of score streams may stay in a cache of 8 MiB in part; 40 MiB count."""
    assert len(kept_run.check(*kept_of(folding=folding(gbps=400)))) == 2
    with pytest.raises(AboveTheBus, match=r"folding\.csv: fold max, blocks 8192, dtype float32, threads 1: found 408\.2 GB/s"):
        kept_run.check(*kept_of(folding=folding(streams=1280, gbps=400)))
    # Of every token a score: 16 times as much, in the same time.
    with pytest.raises(AboveTheBus, match=r"fold sum of tokens, blocks 8192, dtype float32, threads 1: found 163\.3 GB/s"):
        kept_run.check(*kept_of(folding=folding(gbps=10, fold="sum of tokens")))


def test_refuses_a_stream_row_above_the_bus(run):
    document, tables = run
    row = row_of(tables, "stream", kernel="copy", buffer_bytes=32 * MIB, repetition=3)
    with pytest.raises(
        AboveTheBus, match=r"kernel copy, buffer_bytes 33554432, threads 1: found \d+\.\d GB/s, expected nothing above the bus of 100"
    ):
        kept_run.check(document, doctored(tables, "stream", row, seconds=tables["stream"]["seconds"][row] / 20))


def test_refuses_moved_bytes_that_the_kernel_does_not_move(run):
    document, tables = run
    row = row_of(tables, "stream", kernel="triad", buffer_bytes=MIB)
    moved = tables["stream"]["moved_bytes"][row]
    with pytest.raises(InputError, match=rf"stream\.csv: column moved_bytes, row {row + 1}: found {2 * moved}, expected {moved}: arrays"):
        kept_run.check(document, doctored(tables, "stream", row, moved_bytes=2 * moved))


def test_refuses_a_kernel_of_no_known_traffic(run):
    document, tables = run
    with pytest.raises(InputError, match="column kernel: found scale, expected one of read, write, copy, triad"):
        kept_run.check(document, doctored(tables, "stream", 5, kernel="scale"))


def test_a_move_inside_memory_counts_twice(run):
    """60 GB/s one way are 120 for the memory; of a file only its one end is."""
    document, tables = run
    seconds = 64 * MIB / 60e9
    row = row_of(tables, "movement", path="memory to memory", piece_bytes=MIB)
    with pytest.raises(AboveTheBus, match=r"path memory to memory, piece_bytes 1048576: found 120\.0 GB/s"):
        kept_run.check(document, doctored(tables, "movement", row, seconds=seconds))
    faster = pl.when(pl.col("path") == "file to memory").then(pl.col("seconds") / 15).otherwise("seconds")
    assert kept_run.check(document, {**tables, "movement": tables["movement"].with_columns(seconds=faster)})


@pytest.mark.parametrize(
    ("unified", "gbps", "bound"), [(False, 99.0, None), (False, 101.0, 100), (True, 1400.0, None), (True, 1600.0, 3000)]
)
def test_a_device_has_the_memories_at_both_ends(unified, gbps, bound):
    accelerator = Accelerator("a GPU", 80 * GIB, 70 * GIB, Bus(3000.0, "its data sheet"), "12.8", unified)
    machine = Machine("a test", "test", 2, 8 * MIB, 16 * GIB, 12 * GIB, (0,), Bus(100.0, "a data sheet"), accelerator)
    rows, about, checked = movement(("host to device",))
    rows = rows.with_columns(seconds=pl.Series([NOISE[repetition] * 64 * MIB / gbps / 1e9 for repetition in rows["repetition"]]))
    # The fastest repetition is 2 % above the median.
    rows = rows.with_columns(seconds=pl.col("seconds") / 0.98)
    document, tables = kept_of(machine, movement=(rows, about, checked))
    if bound is None:
        assert kept_run.check(document, tables)
    else:
        with pytest.raises(AboveTheBus, match=f"above the bus of {bound} GB/s"):
            kept_run.check(document, tables)


def test_refuses_a_step_faster_than_the_bus_reads_its_weights(run):
    """What made the shared copy of SPEC §7 be seen: 133 MB in a millisecond."""
    document, tables = run
    row = row_of(tables, "decode", batch=4, repetition=2)
    with pytest.raises(AboveTheBus, match=r"backend sdpa, batch 4, context_tokens 1024: found 133\.6 GB/s"):
        kept_run.check(document, doctored(tables, "decode", row, step_ms=1.0, long_s=0.508))


def test_refuses_a_step_that_is_not_the_difference(run):
    document, tables = run
    with pytest.raises(
        InputError, match=r"decode\.csv: column step_ms, row 1: found 5\.0, expected 10\.2.*: \(long_s − short_s\) / \(steps − 2\)"
    ):
        kept_run.check(document, doctored(tables, "decode", 0, step_ms=5.0))


def test_refuses_a_difference_of_nothing(run):
    document, tables = run
    with pytest.raises(InputError, match="column steps: found 2, expected more than the 2 of the short run"):
        kept_run.check(document, doctored(tables, "decode", 0, steps=2))


def test_an_embedding_table_that_no_step_reads_does_not_count(run):
    """133.6 MB in a millisecond are above the bus, the 93.6 MB without the table are not."""
    document, tables = run
    document["parts"]["decode"]["about"]["unread_weight_bytes"] = 40_000_000
    tables = doctored(tables, "decode", row_of(tables, "decode", batch=4, repetition=2), step_ms=1.0, long_s=0.508)
    assert 93.6 in [round(each.value, 1) for each in kept_run.check(document, tables)]


def lined_up(slope_gbps, points=((1, 512), (1, 1024), (2, 1024), (4, 1024), (4, 2048))):
    """Steps of 25 ms for the weights, and KV at so many GB/s."""
    rows = []
    for repetition in REPETITIONS:
        for batch, tokens in points:
            step_s = NOISE[repetition] * (0.025 + batch * tokens * PER_TOKEN / slope_gbps / 1e9)
            rows.append(("sdpa", "cpu", "float32", batch, tokens, repetition, 10, 0.5, 0.5 + 8 * step_s, 1e3 * step_s))
    _, about, checked = decode()
    return frame("decode", rows), about, checked


def test_refuses_a_shared_copy_by_the_slope_of_the_steps():
    """SPEC §7: each step alone is below the bus, but KV costs next to nothing more."""
    subjects = [each.subject for each in kept_run.check(*kept_of(decode=lined_up(50)))]
    assert {"KV path of kept run/decode.csv, sdpa", "fixed path of kept run/decode.csv, sdpa"} <= set(subjects)
    with pytest.raises(AboveTheBus, match=r"decode\.csv, sdpa: KV path: found 342\.9 GB/s, expected nothing above the bus of 100 GB/s"):
        kept_run.check(*kept_of(decode=lined_up(342.9)))
    # Four points make no line.
    assert kept_run.check(*kept_of(decode=lined_up(342.9, ((1, 512), (1, 1024), (4, 1024), (4, 2048)))))


def test_regeneration_reads_weights_of_its_type_below_the_bus(run):
    document, tables = run
    row = row_of(tables, "regeneration", context_tokens=1024, repetition=5)
    with pytest.raises(AboveTheBus, match=r"regeneration\.csv: backend numpy, context_tokens 1024: found 108\.4 GB/s"):
        kept_run.check(document, doctored(tables, "regeneration", row, seconds=0.001))
    with pytest.raises(UnexpectedWeights, match=r"the size of float32, expected 0\.05 GiB as float16"):
        kept_run.check(*kept_of(regeneration=regeneration("float16")))


def test_refuses_weights_of_another_type(run):
    """The silent fp32 load: rows say fp16, the bytes say fp32."""
    document, tables = run
    tables = {**tables, "decode": tables["decode"].with_columns(dtype=pl.lit("float16"))}
    with pytest.raises(UnexpectedWeights, match=r"found 0\.09 GiB, the size of float32, expected 0\.05 GiB as float16"):
        kept_run.check(document, tables)


def test_refuses_a_pool_of_another_type(run):
    document, tables = run
    document["parts"]["decode"]["about"]["kv_pool"]["bytes"] //= 2
    with pytest.raises(
        UnexpectedPool, match=r"found 4,096 B a token, the size of float16 or bfloat16, expected 8,192 B a token as float32"
    ):
        kept_run.check(document, tables)


@pytest.mark.parametrize("name", ["stream", "movement", "decode", "folding"])
def test_refuses_a_table_that_drifts(run, name):
    document, tables = run
    slower = pl.when(pl.col("repetition") >= 3).then(1.3).otherwise(1.0)
    columns = {"decode": {"step_ms": pl.col("step_ms") * slower, "long_s": 0.5 + (pl.col("long_s") - 0.5) * slower}}
    tables = {**tables, name: tables[name].with_columns(**columns.get(name, {"seconds": pl.col("seconds") * slower}))}
    with pytest.raises(Drift, match=rf"{name}\.csv: repetitions: found the last 2 of 6 \d+\.\d % slower than the first 2"):
        kept_run.check(document, tables)


def test_refuses_an_interval_of_few_ticks(run):
    """A short run of 50 µs, by a clock of 100 ns."""
    document, tables = run
    step_s = tables["decode"]["step_ms"][0] / 1e3
    with pytest.raises(BelowResolution, match=r"decode\.csv: shortest interval: found 5e-05 s, 500 ticks"):
        kept_run.check(document, doctored(tables, "decode", 0, short_s=5e-5, long_s=5e-5 + 8 * step_s))


def test_a_part_with_a_clock_of_its_own_is_held_against_that(run):
    document, tables = run
    document["parts"]["movement"]["about"]["tick_s"] = 1e-4
    with pytest.raises(BelowResolution, match=r"movement\.csv: shortest interval: found 0\.0164 s, 164\.4 ticks"):
        kept_run.check(document, tables)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("stream", {"seconds": 0.0}, r"column seconds, row 1: found 0\.0, expected a value above 0"),
        ("stream", {"seconds": float("nan")}, r"column seconds, row 1: found nan, expected a finite Float64"),
        ("movement", {"repetition": 1}, r"a second time of path memory to memory"),
        ("folding", {"threads": 3}, r"folding\.csv: repetitions of max, float32, 640, 8192"),
    ],
)
def test_refuses_what_are_no_raw_rows(run, name, values, message):
    document, tables = run
    with pytest.raises(InputError, match=message):
        kept_run.check(document, doctored(tables, name, 0, **values))


def test_refuses_streams_of_no_known_type():
    rows, about, checked = folding()
    with pytest.raises(InputError, match=r"column dtype: found int3, expected one of float32"):
        kept_run.check(*kept_of(folding=(rows.with_columns(dtype=pl.lit("int3")), about, checked)))


def test_refuses_rows_that_were_left_out(run):
    """The slowest repetition of one size, say."""
    document, tables = run
    with pytest.raises(InputError, match=r"stream\.csv: rows: found 47, expected 48, as the record counts"):
        kept_run.check(document, {**tables, "stream": tables["stream"].slice(1)})


def test_refuses_tables_that_no_part_wrote(run):
    document, tables = run
    del document["parts"]["decode"]
    with pytest.raises(InputError, match="parts: found no part that wrote decode"):
        kept_run.check(document, tables)


def test_refuses_a_table_that_is_gone(run):
    document, tables = run
    del tables["decode"]
    with pytest.raises(InputError, match=r"decode\.csv: file: found no such table, expected the 12 rows of part decode"):
        kept_run.check(document, tables)


def test_sensors_belong_to_no_part(run):
    document, tables = run
    sensors = pl.DataFrame([("stream", "before", "load", 0.2, "")], schema=kept.SENSORS.columns, orient="row")
    assert kept_run.check(document, {**tables, "sensors": sensors}) == kept_run.check(document, tables)


def planted(document, part, subject, **values):
    """The record with another entry among the guards that held."""
    document = copy.deepcopy(document)
    entry = next(each for each in document["parts"][part]["checked"] if subject in each["subject"])
    entry.update(values)
    return document


@pytest.mark.parametrize(
    ("part", "subject", "values", "message"),
    [
        ("movement", "device read", {"value": 40.0}, r"parts\.movement\.checked, share that the device read: found 40\.0 % at least"),
        ("movement", "device read", {"value": float("nan")}, "found nan of 95, expected a value and its bound"),
        (
            "movement",
            "device read",
            {"unit": ""},
            r"parts\.movement\.checked: found no such guard, expected one that says that the block layer read",
        ),
        ("decode", "sequences", {"value": 1}, r"parts\.decode\.checked, distinct sequences: found 1 sequences"),
        ("decode", "sequences", {"unit": "hits"}, r"parts\.decode\.checked: found no such guard, expected one that says that sequences"),
    ],
)
def test_refuses_a_record_in_which_a_guard_did_not_hold(run, part, subject, values, message):
    document, tables = run
    with pytest.raises(InputError, match=message):
        kept_run.check(planted(document, part, subject, **values), tables)


def test_refuses_a_recorded_prefix_hit(run):
    document, tables = run
    document["parts"]["decode"]["checked"].append(asdict(Checked("prefix-cache hits of vLLM", 3, 0, "hits")))
    with pytest.raises(InputError, match="prefix-cache hits of vLLM: found 3 hits, expected a value that its bound of 0 allows"):
        kept_run.check(document, tables)


def test_refuses_a_run_whose_bus_is_not_known(run):
    document, tables = run
    document["bus"] = None
    with pytest.raises(InputError, match=r"platform\.json: bus: found None, expected the bandwidth of the memory bus"):
        kept_run.check(document, tables)


@pytest.mark.parametrize("said", ["a GPU", 1, [{}]])
def test_refuses_an_accelerator_that_is_no_description(run, said):
    record, tables = run
    record["machine"]["accelerator"] = said
    with pytest.raises(InputError, match=r"machine\.accelerator"):
        kept_run.check(record, tables)


def test_refuses_a_quick_try(run):
    document, tables = run
    document["quick"] = True
    with pytest.raises(InputError, match=r"platform\.json: quick: found a quick try, expected a whole run"):
        kept_run.check(document, tables)


def test_refuses_a_part_that_did_not_end(run):
    document, tables = run
    document["parts"]["stream"]["state"] = "failed"
    with pytest.raises(InputError, match=r"parts\.stream\.state: found failed, expected complete"):
        kept_run.check(document, tables)


def test_refuses_a_record_without_what_a_guard_needs(run):
    document, tables = run
    del document["parts"]["decode"]["about"]["parameters"]
    with pytest.raises(InputError, match=r"parts\.decode\.about\.parameters: found no such field"):
        kept_run.check(document, tables)


def test_refuses_to_pass_on_nothing():
    with pytest.raises(InputError, match="tables: found nothing to check"):
        kept_run.check(*kept_of(table_size=table_size()))


def on_a_gpu(**made):
    return kept_of(Machine("a test", "test", 2, 8 * MIB, 16 * GIB, 12 * GIB, (0,), Bus(1.0, "slow"), GPU), **made)


def test_an_accelerator_has_a_bus_and_a_cache_of_its_own():
    """32 MiB are within four times its cache of 50 MiB."""
    rows, about, checked = stream("cuda")
    assert len(kept_run.check(*on_a_gpu(stream=(rows, {**about, "last_level_cache_bytes": 50 * MIB}, checked)))) == 2
    assert {each.bound for each in kept_run.check(*on_a_gpu(stream=(rows, {**about, "last_level_cache_bytes": 4 * MIB}, checked)))} >= {
        3000.0
    }
    assert 3000.0 in {each.bound for each in kept_run.check(*on_a_gpu(decode=decode("cuda")))}


def test_an_accelerator_of_no_known_bus_bounds_nothing():
    document, tables = on_a_gpu(decode=decode("cuda"))
    document["machine"]["accelerator"]["bus"] = None
    assert "GB/s" not in {each.unit for each in kept_run.check(document, tables)}
