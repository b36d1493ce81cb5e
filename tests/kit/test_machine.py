"""What the kit reads of a machine, on planted ``/proc`` and ``/sys`` and on this one."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier.errors import InputError
from kvtier.kit import buses, system
from kvtier.kit.machine import Bus
from kvtier.units import GIB, KIB, MIB

ROOT = Path(__file__).resolve().parents[2]
CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 23
model\t\t: 49
model name\t: AMD EPYC 7742 64-Core Processor
physical id\t: {socket}
flags\t\t: fpu sse{flag}

"""


@pytest.fixture(scope="module")
def known():
    return buses.read(ROOT / buses.FILE)


def plant(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def cache(core, index, level, size, kind="Unified", shared=None):
    folder = f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
    return {
        f"{folder}/level": f"{level}\n",
        f"{folder}/size": size,
        f"{folder}/type": kind,
        f"{folder}/shared_cpu_list": shared or str(core),
    }


@pytest.fixture
def server(tmp_path):
    """Two sockets, two nodes, four cores of which the process may use three, two last-level caches."""
    files = {
        "proc/cpuinfo": CPUINFO.format(socket=0, flag="") + CPUINFO.format(socket=1, flag=""),
        "proc/meminfo": f"MemTotal:       {64 * MIB} kB\nMemFree: 100 kB\nMemAvailable:   {60 * MIB} kB\n",
        "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-1,3\nMems_allowed_list:\t0-1\n",
        "sys/devices/system/node/has_memory": "0-1\n",
    }
    for core in range(4):
        files |= cache(core, 0, 1, "32K", "Data") | cache(core, 1, 2, "512K")
        files |= cache(core, 2, 3, "16M", shared="0-1" if core < 2 else "2-3")
    plant(tmp_path, files)
    return tmp_path


def test_this_machine_is_read(known):
    machine = system.this_machine(known, Bus(100.0, "a test"))
    assert machine.cores >= 1
    assert machine.bus == Bus(100.0, "a test")
    assert 0 < machine.available_bytes <= machine.memory_bytes
    assert machine.last_level_cache_bytes > 0
    assert machine.slug == system.slug_of(machine.slug)


def test_server_without_limits(server, known):
    machine = system.this_machine(known, root=server)
    assert machine.name == "3 cores of an AMD EPYC 7742 64-Core Processor (family 23, model 49)"
    assert machine.slug == "epyc_7742_3_cores"
    assert (machine.memory_bytes, machine.available_bytes) == (64 * GIB, 60 * GIB)
    assert machine.last_level_cache_bytes == 32 * MIB
    assert machine.numa_nodes == (0, 1)
    assert machine.bus.gbps == pytest.approx(409.6)
    assert "2 sockets" in machine.bus.source
    assert machine.not_readable == ()


def test_only_caches_that_the_cores_reach_count(server):
    assert system.last_level_cache_bytes(server, (0, 1)) == 16 * MIB


@pytest.mark.parametrize(
    ("groups", "limits"),
    [
        ("0::/a/b\n", {"a/memory.max": f"{8 * GIB}", "a/memory.current": f"{3 * GIB}", "a/memory.stat": f"anon 1\ninactive_file {GIB}\n"}),
        ("0::/elsewhere\n", {"memory.max": f"{8 * GIB}", "memory.current": f"{2 * GIB}", "memory.stat": "anon 1\n"}),
        (
            "5:memory:/a\n0::/\n",
            {"memory/a/memory.limit_in_bytes": f"{8 * GIB}", "memory/a/memory.usage_in_bytes": f"{2 * GIB}", "memory/a/memory.stat": ""},
        ),
    ],
    ids=["version 2, limit of a parent", "path of the host", "version 1"],
)
def test_limit_of_the_control_group_is_the_memory(server, groups, limits):
    plant(server, {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{path}": text for path, text in limits.items()}})
    machine = system.this_machine(root=server)
    assert (machine.memory_bytes, machine.available_bytes) == (8 * GIB, 6 * GIB)


@pytest.mark.parametrize("unlimited", ["max", "9223372036854771712"])
def test_group_without_a_limit_changes_nothing(server, unlimited):
    plant(server, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": unlimited, "sys/fs/cgroup/memory.current": "1"})
    assert system.linux_memory_bytes(server) == (64 * GIB, 60 * GIB)


@pytest.mark.parametrize(("quota", "cores"), [("250000 100000", 2), ("50000 100000", 1), ("max 100000", 3)])
def test_quota_of_time_limits_cores(server, quota, cores):
    plant(server, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
    assert system.this_machine(root=server).cores == cores


def test_quota_of_version_1(server):
    files = {"cpu,cpuacct/cpu.cfs_quota_us": "200000", "cpu,cpuacct/cpu.cfs_period_us": "100000"}
    plant(server, {"proc/self/cgroup": "4:cpu,cpuacct:/\n", **{f"sys/fs/cgroup/{path}": text for path, text in files.items()}})
    assert system.core_quota(server) == pytest.approx(2.0)


def test_guest_says_that_its_bus_is_an_upper_bound(server, known):
    plant(server, {"proc/cpuinfo": "".join(CPUINFO.format(socket=core, flag=" hypervisor") for core in range(4))})
    plant(
        server,
        {"sys/devices/system/node/has_memory": "0", "sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock"},
    )
    machine = system.this_machine(known, root=server)
    assert machine.name.endswith(", KVM guest")
    # Four sockets of one core each are the hypervisor's invention.
    assert machine.bus.gbps == pytest.approx(204.8)
    assert machine.bus.source.endswith("upper bound")


@pytest.mark.parametrize(
    ("files", "guest"),
    [
        ({"sys/hypervisor/type": "xen"}, "Xen guest"),
        ({"sys/class/dmi/id/product_name": "KVM"}, "KVM guest"),
        ({}, "guest"),
    ],
)
def test_hypervisor_by_name_or_not(server, files, guest):
    plant(server, {"proc/cpuinfo": CPUINFO.format(socket=0, flag=" hypervisor"), **files})
    assert system.linux_processor(server).guest == guest


def test_bare_metal_of_a_cloud_is_no_guest(server):
    plant(server, {"sys/class/dmi/id/sys_vendor": "Amazon EC2"})
    assert system.linux_processor(server).guest == ""


def test_arm_processor_is_named_by_its_parts(server):
    plant(server, {"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd85\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd87\n"})
    assert system.linux_processor(server).described == "ARM processor, implementer 0x41, part 0xd85 and 0xd87"


def test_what_the_system_does_not_say_is_named(tmp_path, known):
    plant(tmp_path, {"proc/meminfo": f"MemTotal: {GIB // KIB} kB\n"})
    machine = system.this_machine(known, root=tmp_path)
    assert machine.bus is None
    assert machine.numa_nodes == (0,)
    assert [note.partition(":")[0] for note in machine.not_readable] == ["last-level cache", "memory bus"]
    assert machine.last_level_cache_bytes == system.ASSUMED_CACHE_BYTES


def test_system_that_does_not_say_its_memory_is_refused(tmp_path):
    with pytest.raises(InputError, match="machine: memory"):
        system.this_machine(root=tmp_path)


def test_name_of_the_platform_is_the_callers(server):
    machine = system.this_machine(name="My Workstation (2)", root=server)
    assert (machine.name, machine.slug) == ("My Workstation (2)", "my_workstation_2")
    assert machine.processor == "AMD EPYC 7742 64-Core Processor, family 23, model 49"


def test_name_without_letters_is_refused(server):
    with pytest.raises(InputError, match="platform: name"):
        system.this_machine(name="--", root=server)


def test_free_memory_of_macos():
    counts = "Pages free:  10.\nPages active: 99.\nPages inactive: 20.\nPages speculative: 2.\n"
    pages = f"Mach Virtual Memory Statistics: (page size of 16384 bytes)\n{counts}"
    assert system.macos_available_bytes(pages) == 32 * 16384
    assert system.macos_available_bytes("") is None


def test_lists_of_the_kernel():
    assert system.listed("0-2,7") == (0, 1, 2, 7)
    assert system.listed("") == ()


# buses


def test_every_row_of_the_buses_states_its_data_sheet(known):
    assert known.height >= 12
    assert known["source"].str.len_chars().min() > 10
    # Channels of DDR are 8 bytes wide: what a row says of them is what it says in GB/s.
    for row in known.drop_nulls("channels").iter_rows(named=True):
        transfers = int(row["source"].rpartition("-")[2])
        assert row["gbps"] == pytest.approx(row["channels"] * 8 * transfers / 1000, rel=1e-3), row


@pytest.mark.parametrize(
    ("kind", "name", "gbps"),
    [
        ("cpu", "AMD EPYC, family 23, model 1", 170.7),
        ("cpu", "AMD Ryzen 7 1800X Eight-Core Processor, family 23, model 1", None),
        ("cpu", "AMD EPYC 7763 64-Core Processor, family 25, model 1", 204.8),
        ("cpu", "AMD EPYC 9654 96-Core Processor, family 25, model 17", 460.8),
        ("cpu", "Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz, family 6, model 85", 128.0),
        ("cpu", "Intel(R) Xeon(R) Platinum 8480+, family 6, model 143", 307.2),
        ("cpu", "Intel(R) Xeon(R) CPU Max 9480, family 6, model 143", None),
        ("cpu", "13th Gen Intel(R) Core(TM) i9-13900K, family 6, model 183", 89.6),
        ("cpu", "Apple M2", 100.0),
        ("cpu", "Apple M2 Max", 400.0),
        ("cpu", "Apple M2 Ultra", None),
        ("accelerator", "NVIDIA H100 80GB HBM3", 3350.0),
        ("accelerator", "NVIDIA H100 PCIe", 2000.0),
        ("accelerator", "NVIDIA H200", 4800.0),
        ("accelerator", "NVIDIA GB10", 273.0),
        ("accelerator", "NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ],
)
def test_bus_by_what_the_hardware_calls_itself(known, kind, name, gbps):
    found = buses.find(known, kind, name)
    assert (found and found.gbps) == gbps


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("gpu,x,1,,s", "line 2, kind"),
        ("cpu,x,0,,s", "line 2, gbps"),
        ("cpu,(,1,,s", "line 2, pattern"),
        ('cpu,x,1,,""', "line 2, source|column source"),
        ("cpu,x,fast,,s", "column gbps"),
    ],
)
def test_table_of_buses_that_is_none_is_refused(tmp_path, row, message):
    path = tmp_path / "memory_buses.csv"
    path.write_text(f"kind,pattern,gbps,channels,source\n{row}\n")
    with pytest.raises(InputError, match=message):
        buses.read(path)


# accelerator


def torch_with(name="NVIDIA GB10", available=True, **properties):
    cuda = SimpleNamespace(
        is_available=lambda: available,
        get_device_properties=lambda index: SimpleNamespace(name=name, **properties),
        mem_get_info=lambda index: (100 * GIB, 128 * GIB),
    )
    return SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="13.0"))


def test_accelerator_that_torch_sees(known):
    found = system.accelerator_of(torch_with(is_integrated=1), known)
    assert (found.name, found.unified, found.bus.gbps) == ("NVIDIA GB10", True, 273.0)
    assert (found.memory_bytes, found.available_bytes) == (128 * GIB, 100 * GIB)
    assert found.driver.startswith("CUDA 13.0")


def test_no_accelerator_without_cuda(known):
    assert system.accelerator_of(torch_with(available=False), known) is None


def test_torch_is_not_imported_where_no_driver_is(tmp_path, monkeypatch):
    monkeypatch.setattr(system.importlib, "import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert system.accelerator_here(None, tmp_path) is None


def test_unified_memory_has_one_bus(server, known, monkeypatch):
    plant(server, {"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd85\n", "dev/nvidiactl": ""})
    monkeypatch.setattr(system.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(system.importlib, "import_module", lambda name: torch_with(is_integrated=1))
    machine = system.this_machine(known, root=server)
    assert machine.bus == machine.accelerator.bus
    assert machine.name.endswith(", with NVIDIA GB10")
    assert machine.slug.endswith("_gb10")
