"""Stream: results are checked, every buffer beyond the caches is held against the bus, and a loop that was taken away shows."""

import os
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from kvtier.audit.physical_bound import AboveTheBus
from kvtier.audit.timing import BelowResolution, Drift, steady
from kvtier.errors import InputError
from kvtier.kit import stream
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.stream import ARRAYS_MOVED, Device, Host, Stream, Team, WrongResult, below_the_bus, passes_for
from kvtier.units import GIB, KIB

CORES = len(os.sched_getaffinity(0))
SETTINGS = {"buffers_bytes": (8 * KIB, 64 * KIB), "repetitions": 3, "shortest_s": 0.0005}


def machine(bus_gbps: float | None = 1e6, cache_bytes: int = 16 * KIB, cores: int = CORES) -> Machine:
    bus = None if bus_gbps is None else Bus(bus_gbps, "a test")
    return Machine("a test machine", "test", cores, cache_bytes, 16 * GIB, 8 * GIB, (0,), bus)


@pytest.fixture
def patient(monkeypatch):
    """Short timings on a shared machine drift by chance, and are short for its clock: both guards run, with room for it."""
    monkeypatch.setattr(stream, "steady", partial(steady, tolerance=1e6))
    monkeypatch.setattr(stream, "tick_s", lambda: 1e-12)


def run(**settings) -> tuple[pl.DataFrame, object]:
    outcome = Stream(**{**SETTINGS, **settings}).run(machine(), lambda what, share: None)
    return outcome.tables["stream"], outcome


@pytest.mark.usefixtures("patient")
def test_rows_are_one_a_timing_with_the_bytes_that_each_kernel_moves():
    shares = []
    outcome = Stream(**SETTINGS).run(machine(), lambda what, share: shares.append(share))
    rows = outcome.tables["stream"]
    threads = sorted({1, CORES} | {2**power for power in range(CORES.bit_length()) if 2**power <= CORES})
    assert len(rows) == len(threads) * 2 * 4 * 3
    assert rows["threads"].unique().sort().to_list() == threads
    for row in rows.iter_rows(named=True):
        assert row["moved_bytes"] == ARRAYS_MOVED[row["kernel"]] * row["buffer_bytes"] * row["passes"]
        assert row["seconds"] > 0
    assert rows["repetition"].to_list() == sorted(rows["repetition"].to_list())
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert {check.unit for check in outcome.checked} == {"ticks at least", "%", "GB/s"}
    assert outcome.about["left_out"] == {}


def test_a_bandwidth_above_the_bus_is_an_error_where_no_cache_holds_the_buffer(patient):
    with pytest.raises(AboveTheBus, match=r"stream of a test machine: .* 64 KiB, 1 thread.*bus of 1e-06 GB/s"):
        Stream(**SETTINGS).run(machine(bus_gbps=1e-6), lambda what, share: None)
    inside = Stream(**SETTINGS).run(machine(bus_gbps=1e-6, cache_bytes=64 * KIB), lambda what, share: None)
    assert not [check for check in inside.checked if check.unit == "GB/s"]


def test_without_a_known_bus_nothing_is_held_against_it_and_the_record_says_so(patient):
    outcome = Stream(**SETTINGS).run(machine(bus_gbps=None), lambda what, share: None)
    assert "bus is not known" in outcome.about["left_out"]["physical bound"]


def timings(gbps: list[float], kernel: str = "copy") -> pl.DataFrame:
    moved = 4 * GIB
    return pl.DataFrame(
        [
            {
                "kernel": kernel,
                "buffer_bytes": GIB,
                "threads": 1,
                "repetition": index,
                "passes": 2,
                "moved_bytes": moved,
                "seconds": moved / each / 1e9,
            }
            for index, each in enumerate(gbps)
        ]
    )


def test_one_impossible_timing_among_many_is_refused():
    bus = Bus(273.0, "SPEC §7")
    assert below_the_bus(timings([236.5] * 20), GIB, bus, "GB10")[0].value == pytest.approx(236.5)
    with pytest.raises(AboveTheBus, match=r"fastest.*342\.9 GB/s.*273 GB/s"):
        below_the_bus(timings([236.5] * 19 + [342.9]), GIB, bus, "GB10")
    with pytest.raises(AboveTheBus, match=r"median.*342\.9 GB/s.*273 GB/s"):
        below_the_bus(timings([342.9] * 3), GIB, bus, "GB10")


@pytest.mark.parametrize(
    ("kernel", "broken"),
    [
        ("_READ", lambda x, passes: float(x[1:].sum()) * passes),
        ("_WRITE", lambda y, first, passes: y[:-1].fill(first + passes - 1)),
        ("_COPY", lambda y, x, passes: np.copyto(y[1:], x[:-1])),
        ("_TRIAD", lambda y, x, z, scale, passes: np.copyto(y, x)),
    ],
)
def test_a_kernel_that_computes_something_else_is_refused(monkeypatch, kernel, broken):
    name = kernel[1:].lower()
    host = Host(2 if CORES > 1 else 1, 64 * KIB)
    try:
        assert host.time(name, 64 * KIB, 3) > 0
        # Spoil what the right one left.
        for part in host._parts:
            part.y[:] = -1
        monkeypatch.setattr(stream, kernel, broken)
        with pytest.raises(WrongResult, match=rf"{name}, 64 KiB, thread \d: found a wrong result"):
            host.time(name, 64 * KIB, 3)
    finally:
        host.close()


@pytest.mark.parametrize("threads", [1, CORES])
def test_parts_make_up_the_whole(threads):
    host = Host(threads, 64 * KIB)
    try:
        for size in (64 * threads, 64 * (threads + 1), 64 * KIB):
            assert 8 * sum(host._elements(size, index) for index in range(threads)) == size
        assert [part.x.size for part in host._parts] == [host._elements(64 * KIB, index) for index in range(threads)]
    finally:
        host.close()


def test_each_part_stays_with_one_thread_and_each_thread_with_one_core():
    team = Team(CORES)
    try:
        first = team.each(lambda index: threading.get_ident())
        assert first == team.each(lambda index: threading.get_ident())
        assert len(set(first)) == CORES
        cores = team.each(lambda index: os.sched_getaffinity(0))
        assert sorted(map(sorted, cores)) == [[core] for core in sorted(os.sched_getaffinity(0))]
    finally:
        team.close()


def test_passes_last_as_long_as_asked_and_a_loop_that_was_taken_away_is_refused():
    assert passes_for(0.02, lambda passes: 1e-3 * passes, "copy") == 25
    assert passes_for(0.02, lambda passes: 0.5 * passes, "copy") == 1
    disturbed = iter([0.019, 0.021])
    assert passes_for(0.02, lambda passes: next(disturbed, 1e-3 * passes), "copy") == 25
    with pytest.raises(InputError, match=r"copy: found 1e-06 s for more than .* passes, expected 0\.02 s: passes that add time"):
        passes_for(0.02, lambda passes: 1e-6, "copy")


def test_memory_is_allocated_anew_for_each_repetition(monkeypatch, patient):
    made = []
    plain = stream.Host.__init__
    monkeypatch.setattr(stream.Host, "__init__", lambda self, *sizes: (made.append(sizes), plain(self, *sizes))[1])
    run(threads=(1,))
    assert made == [(1, 64 * KIB)] * 4


def test_a_run_that_drifts_is_refused(monkeypatch):
    times = iter(np.geomspace(1, 2, 4 * 8))
    monkeypatch.setattr(stream, "passes_for", lambda *asked: 1)
    monkeypatch.setattr(stream.Host, "time", lambda self, *asked: next(times))
    with pytest.raises(Drift, match="stream of a test machine: repetitions: found the last 1 of 3"):
        run(threads=(1,))


def test_timings_too_short_for_the_clock_are_refused(monkeypatch):
    monkeypatch.setattr(stream, "tick_s", lambda: 1.0)
    with pytest.raises(BelowResolution, match="stream of a test machine: shortest interval"):
        run(threads=(1,))


@pytest.mark.parametrize(
    ("settings", "cache_bytes", "message"),
    [
        ({"threads": (CORES + 1,)}, KIB, r"stream: threads: found \d+, expected 1 to"),
        ({"threads": (0,)}, KIB, r"stream: threads: found 0"),
        ({"buffers_bytes": (100,)}, KIB, r"stream: buffers_bytes: found 100 B, expected a multiple of 64 B"),
        ({"buffers_bytes": (0,)}, KIB, r"stream: buffers_bytes: found 0 B"),
        ({"repetitions": 2}, KIB, r"stream: repetitions: found 2, expected 3 or more"),
        ({"shortest_s": 0.0}, KIB, r"stream: shortest_s: found 0\.0"),
        ({}, 0, r"stream: last-level cache: found 0 B"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_one_line(settings, cache_bytes, message):
    with pytest.raises(InputError, match=message) as refused:
        Stream(**settings).plan(machine(cache_bytes=cache_bytes))
    assert "\n" not in str(refused.value)


def test_the_plan_goes_from_a_sixteenth_of_the_cache_to_eight_times_it():
    steps = Stream().plan(machine(cache_bytes=8 * KIB * KIB, cores=6))
    assert [step.says.split(": ")[1] for step in steps] == [
        f"512 KiB to 64 MiB, {threads}" for threads in ("1 thread", "2 threads", "4 threads", "6 threads")
    ]
    assert all(step.memory_bytes >= 3 * 64 * KIB * KIB and step.seconds > 0 for step in steps)


def test_a_quick_try_is_short_and_the_cpu_needs_no_torch(monkeypatch, patient):
    monkeypatch.setitem(sys.modules, "torch", None)
    whole, quick = Stream().plan(machine()), Stream.quick().plan(machine())
    assert sum(step.seconds for step in quick) < sum(step.seconds for step in whole) / 4
    about = run(device="cpu")[1].about
    assert about["device"] == "cpu"
    assert about["kernels"].startswith("compiled loops")


def test_the_same_kernels_of_torch_run_on_cpu_tensors(patient):
    pytest.importorskip("torch")
    rows, outcome = run(device="torch:cpu")
    assert rows["threads"].unique().to_list() == [1]
    assert set(rows["kernel"]) == set(ARRAYS_MOVED)
    assert len(rows) == 2 * 4 * 3
    assert outcome.about["device"] == "torch:cpu"
    assert outcome.about["kernels"].startswith("torch")


def test_a_wrong_result_of_torch_is_refused():
    torch = pytest.importorskip("torch")
    device = Device("torch:cpu", 64 * KIB)
    device._torch = SimpleNamespace(add=lambda *asked, **named: None, equal=torch.equal)
    with pytest.raises(WrongResult, match="triad, 64 KiB on cpu: found a wrong result"):
        device.time("triad", 64 * KIB, 2)
    device._x[5] += 1
    with pytest.raises(WrongResult, match="read, 64 KiB on cpu: found a wrong result"):
        device.time("read", 64 * KIB, 2)


@pytest.mark.parametrize("elements", [0, 1, 1021, 1022, 5000])
def test_the_sum_that_torch_must_give_is_that_of_the_array(elements):
    assert stream.sum_of_cycles(elements, 1021) == sum(i % 1021 + 1 for i in range(elements))


def test_importing_the_parts_does_not_import_torch():
    asked = "import kvtier.kit.stream, kvtier.kit.movement, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
