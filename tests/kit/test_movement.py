"""Movement: every piece arrives, files are read from their device or not at all, and what the system lacks is left out with its reason."""

import errno
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.audit.physical_bound import AboveTheBus
from kvtier.audit.residency import TiersExceedMemory
from kvtier.audit.storage import ReadFromPageCache
from kvtier.audit.timing import BelowResolution, Drift, steady
from kvtier.errors import InputError
from kvtier.kit import memory, movement, regions
from kvtier.kit.machine import Accelerator, Bus, Machine
from kvtier.kit.memory import Unavailable, fresh, node_of, said
from kvtier.kit.movement import Movement, WrongContent, below_the_bus, cores_in
from kvtier.kit.regions import DirectFile, MemoryPath, Places, places, wrong_pieces
from kvtier.units import GIB, KIB, MIB

SETTINGS = {"pieces_bytes": (4 * KIB, 64 * KIB), "volume_bytes": 512 * KIB, "repetitions": 3}


def machine(bus_gbps: float | None = 1e6, nodes: tuple[int, ...] = (0,), accelerator: Accelerator | None = None) -> Machine:
    bus = None if bus_gbps is None else Bus(bus_gbps, "a test")
    return Machine("a test machine", "test", 1, 64 * KIB, 16 * GIB, 8 * GIB, nodes, bus, accelerator)


@pytest.fixture
def patient(monkeypatch):
    """Short timings on a shared machine drift by chance, and are short for its clock: both guards run, with room for it."""
    monkeypatch.setattr(movement, "steady", partial(steady, tolerance=1e6))
    monkeypatch.setattr(movement, "tick_s", lambda: 1e-12)


@pytest.fixture
def disk(tmp_path):
    """A folder on a device that does direct input and output; tests of files have nothing to test without one."""
    try:
        DirectFile(tmp_path, filled(MIB)).close()
    except Unavailable as reason:
        pytest.skip(str(reason))
    return tmp_path


def filled(size_bytes: int, seed: int = 1) -> np.ndarray:
    region = fresh(size_bytes)
    region[:] = np.random.default_rng(seed).integers(0, 256, size_bytes, dtype=np.uint8)
    return region


def run(folder, on: Machine | None = None, **settings):
    return Movement(**SETTINGS, folder=folder, **settings).run(on or machine(), lambda what, share: None)


@pytest.mark.usefixtures("patient")
def test_rows_are_one_a_timing_and_each_moves_the_same_volume(disk):
    shares = []
    outcome = Movement(**SETTINGS, folder=disk).run(machine(), lambda what, share: shares.append(share))
    rows = outcome.tables["movement"]
    assert rows["path"].unique(maintain_order=True).to_list() == [
        "memory to memory",
        "shared memory to memory",
        "file to memory",
        "memory to file",
    ]
    assert len(rows) == 4 * 2 * 3
    assert (rows["pieces"] * rows["piece_bytes"] == 512 * KIB).all()
    assert rows["repetition"].to_list() == sorted(rows["repetition"].to_list())
    assert shares == sorted(shares)
    assert set(outcome.about["left_out"]) == {"node to node", "host to device, device to host"}
    assert len([check for check in outcome.checked if "device read" in check.subject]) == 1
    assert len([check for check in outcome.checked if check.unit == "GB/s"]) == 4
    assert not list(disk.iterdir())


@pytest.mark.usefixtures("patient")
def test_small_pieces_of_files_are_fewer(disk):
    rows = run(disk, most_file_pieces=16).tables["movement"]
    found = {(path, size): count for path, size, count in rows.select("path", "piece_bytes", "pieces").unique().iter_rows()}
    assert found["file to memory", 4 * KIB] == found["memory to file", 4 * KIB] == 16
    assert found["file to memory", 64 * KIB] == 8
    assert found["memory to memory", 4 * KIB] == 128


@given(power=st.integers(0, 4), share=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_no_two_pieces_touch(power, share, seed):
    piece, region = 4 * KIB * 2**power, MIB
    room = region // piece // 2
    moves = places(np.random.default_rng(seed), region, piece, max(1, round(share * room)))
    for offsets in (moves.sources, moves.targets):
        ordered = np.sort(offsets)
        assert (np.diff(ordered) >= 2 * piece).all()
        assert ordered[0] >= 0
        assert ordered[-1] + piece <= region
        assert (offsets % piece == 0).all()


def test_more_pieces_than_places_are_refused():
    with pytest.raises(InputError, match="movement: pieces: found 5 of 4096 B, expected 1 to 4"):
        places(np.random.default_rng(1), 32 * KIB, 4 * KIB, 5)


def test_memory_is_moved_piece_by_piece():
    origin, landing = filled(64 * KIB), fresh(64 * KIB)
    moves = Places(4 * KIB, np.array([0, 16, 8]) * KIB, np.array([40, 0, 20]) * KIB)
    path = MemoryPath("memory to memory", origin, landing)
    assert wrong_pieces(path, moves) == 3
    path.ready(moves)()
    assert wrong_pieces(path, moves) == 0
    assert np.count_nonzero(landing) == np.count_nonzero(np.concatenate([origin[at : at + 4 * KIB] for at in moves.sources]))
    landing[20 * KIB] ^= 1
    assert wrong_pieces(path, moves) == 1


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("path", [regions.MemoryPath, regions.FileToMemory, regions.MemoryToFile])
def test_a_piece_that_does_not_arrive_is_an_error(monkeypatch, disk, path):
    ready = path.ready

    def all_but_one(self, moves):
        return ready(self, Places(moves.piece_bytes, moves.sources[1:], moves.targets[1:]))

    # Bytes that were not moved were not read either: that guard has its own test.
    monkeypatch.setattr(path, "ready", all_but_one)
    with pytest.raises(WrongContent, match=r"movement: .*, 4 KiB: found 1 of 128 pieces wrong, expected none"):
        run(disk)


@pytest.mark.usefixtures("patient")
def test_bytes_faster_than_the_bus_are_an_error(disk):
    with pytest.raises(AboveTheBus, match=r"movement of a test machine: memory to memory, 4 KiB, 2 × its bytes, median.*1e-06 GB/s"):
        run(disk, machine(bus_gbps=1e-6))
    assert "bus is not known" in run(disk, machine(bus_gbps=None)).about["left_out"]["physical bound"]


def test_a_copy_in_one_memory_crosses_its_bus_twice():
    rows = pl.DataFrame({"path": ["copy"] * 3, "piece_bytes": [MIB] * 3, "pieces": [1000] * 3, "seconds": [0.01, 0.01, 0.008]})
    gbps = {"host": 273.0, "device": None}
    assert below_the_bus(rows, {"copy": (("host", 1), ("device", 1))}, gbps, "test")[0].value == pytest.approx(131.072)
    with pytest.raises(AboveTheBus, match=r"2 × its bytes, fastest: found 262\.1 GB/s.*240 GB/s"):
        below_the_bus(rows, {"copy": (("host", 2),)}, {**gbps, "host": 240.0}, "test")
    with pytest.raises(AboveTheBus, match=r"2 × its bytes, median: found 209\.7 GB/s.*200 GB/s"):
        below_the_bus(rows, {"copy": (("host", 2),)}, {**gbps, "host": 200.0}, "test")


def test_a_run_that_drifts_is_refused(monkeypatch, disk):
    times = iter(np.geomspace(1, 2, 4 * 8))
    monkeypatch.setattr(movement, "timed", lambda move: (move(), next(times))[1])
    with pytest.raises(Drift, match="movement of a test machine: repetitions: found the last 1 of 3"):
        run(disk)


def test_timings_too_short_for_the_clock_are_refused(monkeypatch, disk):
    monkeypatch.setattr(movement, "tick_s", lambda: 1.0)
    with pytest.raises(BelowResolution, match="movement of a test machine: shortest interval"):
        run(disk)


def test_a_direct_file_has_no_name_and_gives_back_what_was_written(disk):
    content = filled(256 * KIB)
    file = DirectFile(disk, content)
    assert not list(disk.iterdir())
    back = fresh(64 * KIB)
    file.read(memoryview(back), 128 * KIB)
    assert np.array_equal(back, content[128 * KIB : 192 * KIB])
    with pytest.raises(InputError, match=r"movement: read at 262144 B: found 0 B, expected 65536 B"):
        file.read(memoryview(back), 256 * KIB)
    file.close()


def buffered(folder):
    name = Path(folder) / "buffered"
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT)
    name.unlink()
    return descriptor


@pytest.mark.usefixtures("patient")
def test_a_file_that_the_page_cache_serves_is_left_out_and_refused_where_it_gets_further(monkeypatch, disk):
    monkeypatch.setattr(regions, "open_direct", buffered)
    assert "no device is behind the folder" in run(disk).about["left_out"]["file to memory"]
    monkeypatch.setattr(DirectFile, "_probe", lambda self, content: None)
    with pytest.raises(ReadFromPageCache, match=r"movement of a test machine, file to memory, 4 KiB: bytes read by the device: found 0 B"):
        run(disk)


@pytest.mark.usefixtures("patient")
def test_a_folder_in_memory_is_left_out():
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    outcome = run("/dev/shm")
    assert {"file to memory", "memory to file"} <= set(outcome.about["left_out"])
    assert outcome.tables["movement"]["path"].n_unique() == 2
    assert outcome.about["file_system"] == "tmpfs"


def test_a_file_system_that_refuses_or_drops_direct_input_is_unavailable(monkeypatch, tmp_path):
    with monkeypatch.context() as refusing:
        plain = os.open

        def refuse(name, flags, *mode):
            if flags & os.O_DIRECT:
                raise OSError(errno.EINVAL, "Invalid argument")
            return plain(name, flags, *mode)

        refusing.setattr(os, "open", refuse)
        with pytest.raises(Unavailable, match="refuses O_DIRECT: Invalid argument"):
            regions.open_direct(tmp_path)
    with monkeypatch.context() as dropping:
        dropping.setattr(regions.fcntl, "fcntl", lambda descriptor, command: os.O_RDWR)
        with pytest.raises(Unavailable, match="O_DIRECT"):
            regions.open_direct(tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_the_kernel_does_not_count_reads_no_file_is_timed(monkeypatch, tmp_path):
    monkeypatch.setattr(regions, "FilePath", lambda name: tmp_path / "absent")
    with pytest.raises(Unavailable, match="does not count what the device read"):
        regions.device_read_bytes()


def test_a_folder_that_cannot_be_used_is_an_error(monkeypatch, disk):
    with pytest.raises(InputError, match=r"absent: folder: found No such file or directory"):
        regions.open_direct(disk / "absent")

    def full(*asked):
        raise OSError(errno.ENOSPC, "No space left on device")

    opened = {descriptor.name for descriptor in Path("/proc/self/fd").iterdir()}
    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(InputError, match=r"file: found No space left on device, expected room for 1 MiB"):
        DirectFile(disk, filled(MIB))
    assert {descriptor.name for descriptor in Path("/proc/self/fd").iterdir()} == opened


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pieces_bytes": (1000,)}, r"movement: pieces_bytes: found 1000, expected multiples of 4096 B"),
        ({"pieces_bytes": (0,)}, r"movement: pieces_bytes: found 0"),
        (
            {"volume_bytes": 100 * KIB, "pieces_bytes": (64 * KIB,)},
            r"movement: volume_bytes: found 102400, expected a multiple of the piece",
        ),
        ({"most_file_pieces": 0}, r"movement: most_file_pieces: found 0, expected 1 or more"),
        ({"repetitions": 2}, r"movement: repetitions: found 2, expected 3 or more"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_one_line(settings, message):
    with pytest.raises(InputError, match=message) as refused:
        Movement(**settings).plan(machine())
    assert "\n" not in str(refused.value)


def test_the_plan_grows_with_what_the_machine_has():
    here = Movement().plan(machine())
    assert [step.disk_bytes for step in here] == [0, 256 * MIB]
    assert max(step.memory_bytes for step in here) >= 3 * 128 * MIB
    gpu = Accelerator("a GPU", 8 * GIB, 8 * GIB, None, "13", False)
    there = Movement().plan(machine(nodes=(0, 1), accelerator=gpu))
    assert [step.device_bytes for step in there] == [0, 0, 0, 256 * MIB]
    assert "1 other NUMA node" in there[2].says
    assert all(step.seconds > 0 for step in there)


def test_a_quick_try_is_short():
    whole, quick = Movement().plan(machine()), Movement.quick().plan(machine())
    assert sum(step.seconds for step in quick) < sum(step.seconds for step in whole) / 3


def test_a_volume_is_four_last_level_caches_where_they_are_large():
    large = Machine("server", "server", 64, 384 * MIB, 512 * GIB, 500 * GIB, (0,), None)
    assert Movement().plan(large)[1].disk_bytes == 4 * 1536 * MIB


def test_memory_comes_from_the_node_that_was_asked_for():
    try:
        region = fresh(MIB, node=0)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert node_of(region) == 0
    with pytest.raises(Unavailable, match="mbind: "):
        fresh(MIB, node=1000)


def test_an_unknown_architecture_has_no_nodes(monkeypatch):
    monkeypatch.setattr(memory.platform, "machine", lambda: "abacus")
    with pytest.raises(Unavailable, match=r"mbind is not known on .* abacus"):
        fresh(MIB, node=0)


@pytest.mark.usefixtures("patient")
def test_nodes_are_timed_both_ways_and_misplaced_memory_is_left_out(monkeypatch, disk):
    asked = {}

    def as_asked(size_bytes, node=None):
        region = fresh(size_bytes)
        asked[region.ctypes.data] = node
        return region

    cores = frozenset(os.sched_getaffinity(0))
    monkeypatch.setattr(movement, "_home", lambda machine: (0, cores))
    monkeypatch.setattr(movement, "fresh", as_asked)
    monkeypatch.setattr(movement, "node_of", lambda region: asked[region.ctypes.data])
    rows = run(disk, machine(nodes=(0, 1))).tables["movement"]
    assert {"node 0 to node 1", "node 1 to node 0"} <= set(rows["path"])
    assert os.sched_getaffinity(0) == cores
    monkeypatch.setattr(movement, "node_of", lambda region: 0)
    outcome = run(disk, machine(nodes=(0, 1)))
    assert outcome.about["left_out"]["node 0 to node 1"] == "memory asked of node 1 came from node 0"
    assert "node 0 to node 1" not in set(outcome.tables["movement"]["path"])


def test_lists_of_cores_are_read_as_the_kernel_writes_them():
    assert cores_in("0-3,8\n") == {0, 1, 2, 3, 8}
    assert cores_in("\n") == set()


def test_regions_of_one_memory_must_fit_in_it(disk):
    unified = Accelerator("a GPU", MIB, MIB, None, "13", True)
    small = Machine("a test machine", "test", 1, 64 * KIB, 4 * MIB, 4 * MIB, (0,), None, unified)
    with pytest.raises(TiersExceedMemory, match="movement of a test machine: tiers"):
        run(disk, small, device="torch:cpu")


@pytest.mark.usefixtures("patient")
def test_host_and_device_run_on_cpu_tensors(disk):
    pytest.importorskip("torch")
    outcome = run(disk, device="torch:cpu")
    assert {"host to device", "device to host"} <= set(outcome.tables["movement"]["path"])
    # Without an accelerator there is no bus of its own to cross.
    assert len([check for check in outcome.checked if check.unit == "GB/s"]) == 6


@pytest.mark.usefixtures("patient")
def test_a_tensor_that_does_not_arrive_is_an_error(monkeypatch, disk):
    pytest.importorskip("torch")
    monkeypatch.setattr(regions.TensorPath, "ready", lambda self, moves: lambda: None)
    with pytest.raises(WrongContent, match="host to device, 4 KiB: found 128 of 128 pieces wrong"):
        run(disk, device="torch:cpu")


@pytest.mark.usefixtures("patient")
def test_the_cpu_is_no_device_of_its_own(disk):
    assert run(disk, device="cpu").about["left_out"]["host to device, device to host"] == "no accelerator"


@pytest.mark.usefixtures("patient")
def test_without_torch_devices_are_left_out(monkeypatch, disk):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(disk, device="cuda").about["left_out"]["host to device, device to host"] == "torch is not installed"


def test_sizes_are_said_in_binary_units():
    assert [said(size) for size in (4 * KIB, 64 * MIB, 1536 * KIB)] == ["4 KiB", "64 MiB", "1.5 MiB"]
