"""Every part asks its guards: each failure is planted under a real, tiny run, and the run says no in one line and writes no rows.

What the parts leave where nothing is planted passes the audit of kept runs, and is refused by it once a row is doctored.
"""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import fake_parts
import polars as pl
import pytest

from kvtier.audit import kept_run
from kvtier.audit.physical_bound import AboveTheBus
from kvtier.audit.sequences import no_prefix_hits
from kvtier.audit.timing import steady
from kvtier.kit import decode, regeneration, regions, timing
from kvtier.kit.backends import Loaded, Pool
from kvtier.kit.campaign import Campaign, plan
from kvtier.kit.decode import Decode
from kvtier.kit.folding import Folding
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.memory import Unavailable, fresh
from kvtier.kit.metadata import Metadata
from kvtier.kit.movement import Movement
from kvtier.kit.regeneration import Regeneration
from kvtier.kit.regions import DirectFile
from kvtier.kit.stream import Stream
from kvtier.measure import kept_points
from kvtier.units import GIB, KIB

CORES = len(os.sched_getaffinity(0))


def machine(bus_gbps: float = 1e6) -> Machine:
    """With a cache of 16 KiB, so that tiny buffers are beyond it."""
    return Machine("a test machine", "test", CORES, 16 * KIB, 16 * GIB, 8 * GIB, (0,), Bus(bus_gbps, "a test"))


PARTS = {
    "stream": lambda folder: Stream(buffers_bytes=(8 * KIB, 64 * KIB), threads=(1,), repetitions=6, shortest_s=0.0005),
    "movement": lambda folder: Movement(pieces_bytes=(4 * KIB, 64 * KIB), volume_bytes=512 * KIB, repetitions=6, folder=folder),
    "metadata": lambda folder: Metadata(blocks=(64, 256), python_blocks=64, operations=256, python_operations=32, repetitions=6),
    "folding": lambda folder: Folding(streams=32, blocks=64, threads=(1,), repetitions=6),
    "decode": lambda folder: Decode(backends=("sdpa",), batches=(1, 2), contexts=(64, 128), steps=4, repetitions=6),
    "regeneration": lambda folder: Regeneration(backend="numpy", contexts=(0, 32), repetitions=6),
}
"""By name, a run of some seconds at most; decode and regeneration with a model that is described below."""


LAYERS, KV_HEADS, HEAD_DIM, VOCABULARY, PARAMETERS = 2, 2, 8, 1000, 50_000
PER_TOKEN = 2 * LAYERS * KV_HEADS * HEAD_DIM * 4


def loaded(**other):
    sizes = {"parameters": PARAMETERS, "layer_parameters": PARAMETERS // 2, "weight_bytes": 4 * PARAMETERS, "unread_bytes": 0}
    shape = {"layers": LAYERS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM, "vocabulary": VOCABULARY, "kv_bytes_per_token": PER_TOKEN}
    return Loaded(**{"model": "a test", "dtype": "float32", "resident_dtype": "float32", **sizes, **shape, **other})


@dataclass
class Model:
    """A model that needs 20 ms for a token and 20 ns for each token of its context, and holds what a test says."""

    loaded: Loaded = field(default_factory=loaded)
    kv_element_bytes: int = 4
    hits: int = 0
    described: dict = field(default_factory=lambda: {"sdpa": "none", "numpy": "none"})
    held: int = 0

    def prompt_tokens(self, context_tokens, steps):
        return context_tokens - steps

    def prefill(self, prompts, progress=lambda share: None):
        self.held = sum(map(len, prompts))

    def decode_s(self, way, batch, prompt_tokens, tokens):
        return tokens * (0.02 + batch * prompt_tokens * 2e-8)

    def regenerate_s(self, ids, context_tokens):
        return 0.02 + context_tokens * 2e-8, 0.0

    def pool(self):
        return Pool(self.held * PER_TOKEN * self.kv_element_bytes // 4, self.held)

    def checked(self, source):
        hits = no_prefix_hits(self.hits, 1000, source)
        return [self.loaded.check_weights(source), self.pool().check(self.loaded, source), hits]

    def close(self):
        self.held = 0


@pytest.fixture(autouse=True)
def model(monkeypatch):
    """The model that decode and regeneration load; a test changes what it holds."""
    made = Model()
    for module in (decode, regeneration):
        monkeypatch.setattr(module, "load", lambda *settings: made)
    return made


@dataclass
class Run:
    """What a run of one part left."""

    folder: Path

    @property
    def part(self):
        (part,) = json.loads((self.folder / "platform.json").read_text())["parts"].values()
        return part

    @property
    def tables(self):
        return sorted(path.stem for path in self.folder.glob("*.csv") if path.stem != "sensors")

    def audit(self):
        return kept_run.check(json.loads((self.folder / "platform.json").read_text()), kept_points.read(self.folder), "run")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a part as ``kvtier measure`` does. Timings so short drift by chance and are few ticks: both guards run, with room for it."""

    def of(name, on=None, patient=True):
        module = importlib.import_module(f"kvtier.kit.{name}")
        if patient:
            monkeypatch.setattr(module, "steady", partial(steady, tolerance=1e6))
            monkeypatch.setattr(kept_run, "steady", partial(steady, tolerance=1e6))
            monkeypatch.setattr(module, "tick_s", lambda *asked: 1e-12)
        part, on = PARTS[name](tmp_path), on or machine()
        folder = tmp_path / "run"
        folder.mkdir()
        record = replace(fake_parts.record_of(name, machine=on), clock_tick_s=1e-12)
        Campaign(folder, record, plan([part], on), fake_parts.Watcher([])).run([part])
        return Run(folder)

    return of


def refused(left: Run, says: str):
    """The run failed by this guard and no other, in one line, and there are no rows."""
    assert left.part["state"] == "failed"
    assert says in left.part["why"]
    assert "\n" not in left.part["why"]
    assert left.tables == []


@pytest.mark.parametrize("name", PARTS)
def test_a_clock_that_ticks_once_a_second_is_refused(name, run, monkeypatch):
    seconds = iter(range(10**6))
    monkeypatch.setattr(
        importlib.import_module(f"kvtier.kit.{name}"), "tick_s", lambda *asked: timing.tick_s(10, lambda: 10**9 * next(seconds))
    )
    refused(run(name, patient=False), "expected at least 1,000 ticks")


@pytest.mark.parametrize("name", PARTS)
def test_a_machine_that_becomes_slower_is_refused(name, run, monkeypatch):
    """A thousand times, so that nothing else that the machine does can hide it."""
    module = importlib.import_module(f"kvtier.kit.{name}")
    plain = module.time_points

    def throttled(points, repetitions, *how):
        timed = plain(points, repetitions, *how)
        return [replace(each, seconds=each.seconds * (1000 if each.repetition >= repetitions // 2 else 1)) for each in timed]

    monkeypatch.setattr(module, "time_points", throttled)
    monkeypatch.setattr(module, "tick_s", lambda *asked: 1e-12)
    refused(run(name, patient=False), "% slower than the first 2, expected no more than 15 %")


@pytest.mark.parametrize("name", ["stream", "movement", "folding"])
def test_bytes_faster_than_the_bus_are_refused(name, run):
    """A processor moves more than 1 MB/s, whatever else it does."""
    refused(run(name, machine(bus_gbps=1e-3)), "GB/s, expected nothing above the bus of 0.001 GB/s")


@pytest.fixture
def disk(tmp_path):
    """Files of the tests are on a device that does direct input and output."""
    try:
        DirectFile(tmp_path, fresh(64 * KIB)).close()
    except Unavailable as reason:
        pytest.skip(str(reason))


def buffered(folder):
    """An open file without a name, as the kit opens it, but for O_DIRECT."""
    path = Path(folder) / "buffered"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    path.unlink()
    return descriptor


@pytest.mark.usefixtures("disk")
def test_a_file_that_the_page_cache_serves_is_refused(run, monkeypatch):
    """The kit asks twice: a folder that shows no device is left out; here it seems to have one until blocks are read."""
    monkeypatch.setattr(regions, "open_direct", buffered)
    monkeypatch.setattr(DirectFile, "_probe", lambda self, content: None)
    refused(run("movement"), "bytes read by the device: found 0 B of")


@pytest.mark.parametrize("name", PARTS)
def test_a_sound_run_passes_the_audit_of_kept_runs(name, run):
    left = run(name)
    assert (left.part["state"], left.part["why"]) == ("complete", "")
    assert name in left.tables
    audited = left.audit()
    assert {"ticks at least", "%"} <= {each["unit"] for each in left.part["checked"]} & {each.unit for each in audited}


@pytest.mark.parametrize(
    ("name", "column", "factor"), [("stream", "seconds", 1e-6), ("movement", "seconds", 1e-9), ("folding", "seconds", 1e-9)]
)
def test_a_doctored_row_is_refused_by_the_audit_of_kept_runs(name, column, factor, run):
    left = run(name)
    path = left.folder / f"{name}.csv"
    rows = pl.read_csv(path)
    last = rows.height - 1
    rows.with_columns(pl.when(pl.row_index() == last).then(pl.col(column) * factor).otherwise(column).alias(column)).write_csv(path)
    with pytest.raises(AboveTheBus, match=rf"run/{name}\.csv: .*expected nothing above the bus of 1e\+06 GB/s"):
        left.audit()


def test_the_record_says_which_cache_a_stream_was_held_against(run):
    """An accelerator's is nowhere else in the record."""
    assert run("stream").part["about"]["last_level_cache_bytes"] == 16 * KIB


def test_a_step_faster_than_the_bus_is_refused(run):
    """200 kB in 20 ms are 10 MB/s."""
    refused(run("decode", machine(bus_gbps=1e-3)), "weights and KV of one step, transformers sdpa, 1 × 64: found")


def test_identical_sequences_are_refused(run, monkeypatch):
    """The recorded bug: one prompt for the whole batch."""
    plain = decode.random_prompts
    monkeypatch.setattr(decode, "random_prompts", lambda lengths, *how: [plain(lengths, *how)[0][:length] for length in lengths])
    refused(run("decode"), "sequence 1: found the first 16 tokens of sequence 0")


def test_a_prefix_cache_hit_is_refused(run, model):
    model.hits = 16
    refused(run("decode"), "prefix cache: found 16 hits in 1,000 queries")


@pytest.mark.parametrize("name", ["decode", "regeneration"])
def test_the_silent_fp32_load_is_refused(name, run, model):
    """Half precision was asked for."""
    model.loaded = loaded(dtype="float16", kv_bytes_per_token=PER_TOKEN // 2)
    refused(run(name), "resident weights: found 0.00 GiB, the size of float32, expected 0.00 GiB as float16")


@pytest.mark.parametrize("name", ["decode", "regeneration"])
def test_a_pool_of_twice_the_type_is_refused(name, run, model):
    """8-bit floats accepted and 16-bit ones allocated, one type up."""
    model.kv_element_bytes = 8
    refused(run(name), f"KV pool: found {2 * PER_TOKEN} B a token, expected {PER_TOKEN} B a token as float32")
