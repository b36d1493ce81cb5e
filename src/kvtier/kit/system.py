"""What the operating system says of the machine: processor, caches, memory, control groups, nodes; the accelerator that PyTorch sees.

Everything under ``/proc`` and ``/sys`` is read below a root, so that tests can plant other machines. On macOS ``sysctl`` and ``vm_stat``
answer. What a system does not say is named in :attr:`kvtier.kit.machine.Machine.not_readable` and never guessed in silence.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.errors import InputError
from kvtier.kit import buses
from kvtier.kit.machine import Accelerator, Bus, Machine
from kvtier.units import KIB, MIB

ASSUMED_CACHE_BYTES = 32 * MIB
"""Last-level cache where the system names none: large enough that buffers a few times its size lie in memory on most machines."""

DEVICE_MARKS = ("dev/nvidiactl", "dev/nvmap", "dev/kfd", "dev/dxg")
"""Files of a driver: without one there is no accelerator, and PyTorch need not be imported to see that."""

CACHE_UNITS = {"": 1, "K": KIB, "M": MIB}


@dataclass(frozen=True)
class Processor:
    """A processor as it describes itself.

    Parameters
    ----------
    brand : str
        Such as ``AMD EPYC``.
    details : str
        Such as ``family 23, model 1``.
    sockets : int
        As the system numbers them; a guest's number means nothing.
    guest : str
        ``KVM guest``, ``guest`` where the hypervisor does not say its name, empty on the machine itself.
    """

    brand: str
    details: str
    sockets: int = 1
    guest: str = ""

    @property
    def described(self) -> str:
        """Brand and details, as :mod:`kvtier.kit.buses` searches them."""
        return ", ".join(filter(None, [self.brand, self.details]))


def text_of(path: Path) -> str | None:
    """Text of a small system file, stripped; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number_of(path: Path) -> int | None:
    """A system file that holds one whole number; None where it does not."""
    text = text_of(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def listed(text: str) -> tuple[int, ...]:
    """Numbers of a kernel list such as ``0-2,7``."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)


def answer_of(*command: str, timeout_s: float = 5.0) -> str | None:
    """What a program of the system prints; None where it is missing, fails or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# processor


def allowed_cores(root: Path = Path("/")) -> tuple[int, ...]:
    """Numbers of the cores that this process may run on."""
    if root == Path("/") and hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    named = _status(root).get("Cpus_allowed_list")
    return listed(named) if named else tuple(range(os.cpu_count() or 1))


def _status(root: Path) -> dict[str, str]:
    return dict(re.findall(r"^(\w+):\s*(.*)$", text_of(root / "proc/self/status") or "", re.MULTILINE))


def linux_processor(root: Path = Path("/")) -> Processor:
    """The processor of ``/proc/cpuinfo``."""
    text = text_of(root / "proc/cpuinfo") or ""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r"^([^:\n]+?)\s*:[ \t]*(.*)$", text, re.MULTILINE):
        fields.setdefault(name, []).append(value.strip())
    first = {name: values[0] for name, values in fields.items()}
    details = ", ".join(f"{word} {first[name]}" for word, name in [("family", "cpu family"), ("model", "model")] if name in first)
    brand = " ".join(first.get("model name", "").split())
    if not brand and "CPU part" in fields:
        brand = "ARM processor"
        details = f"implementer {first.get('CPU implementer', 'unknown')}, part {' and '.join(dict.fromkeys(fields['CPU part']))}"
    sockets = len(set(fields.get("physical id", ["0"])))
    return Processor(brand or f"{platform.machine()} processor", details, sockets, _guest(root, first.get("flags", "")))


def _guest(root: Path, flags: str) -> str:
    kind = text_of(root / "sys/hypervisor/type")
    if kind:
        return f"{kind.capitalize()} guest"
    clocks = text_of(root / "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    product = " ".join(text_of(root / f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    if "kvm-clock" in clocks or re.search(r"\bKVM\b|QEMU|Amazon EC2|Google Compute", product):
        # A bare-metal instance of a cloud names its vendor too; its processor has no hypervisor flag.
        return "KVM guest" if "hypervisor" in flags.split() or "kvm-clock" in clocks else ""
    return "guest" if "hypervisor" in flags.split() else ""


def last_level_cache_bytes(root: Path = Path("/"), cores: tuple[int, ...] | None = None) -> int | None:
    """Sum of the largest level of cache over its instances that the cores reach [B]; None where the system names none."""
    instances: dict[tuple[int, str], int] = {}
    for core in allowed_cores(root) if cores is None else cores:
        for index in sorted((root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
            level, size = number_of(index / "level"), re.fullmatch(r"(\d+)([KM]?)", text_of(index / "size") or "")
            if level is None or size is None or text_of(index / "type") == "Instruction":
                continue
            shared = text_of(index / "shared_cpu_list") or str(core)
            instances[level, shared] = int(size[1]) * CACHE_UNITS[size[2]]
    if not instances:
        return None
    last = max(level for level, _ in instances)
    return sum(size for (level, _), size in instances.items() if level == last) or None


# control groups


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's control group and its parents, for a controller, version 2 and version 1."""
    for line in (text_of(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            bases = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif controller in controllers.split(","):
            bases = [root / f"sys/fs/cgroup/{controller}", root / f"sys/fs/cgroup/{controllers}"]
        else:
            continue
        # In a container the path may be the host's, which is not mounted here: then the top of what is mounted counts.
        steps = [step for step in path.split("/") if step and step != ".."]
        for base in bases:
            for depth in range(len(steps), -1, -1):
                folder = base.joinpath(*steps[:depth])
                if folder.is_dir():
                    yield folder


def core_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of time that the control group grants; None without a limit."""
    quotas = []
    for folder in _groups(root, "cpu"):
        maximum = (text_of(folder / "cpu.max") or "").split()
        if len(maximum) == 2 and maximum[0] != "max":
            quotas.append(int(maximum[0]) / int(maximum[1]))
        quota, period = number_of(folder / "cpu.cfs_quota_us"), number_of(folder / "cpu.cfs_period_us")
        if quota and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def linux_memory_bytes(root: Path = Path("/")) -> tuple[int, int] | None:
    """Memory and what of it is free [B], within the control group's limit; None where the system does not say."""
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text_of(root / "proc/meminfo") or "", re.MULTILINE))
    if "MemTotal" not in fields:
        return None
    memory = int(fields["MemTotal"]) * KIB
    available = int(fields.get("MemAvailable", fields.get("MemFree", fields["MemTotal"]))) * KIB
    names = (("memory.max", "memory.current", "inactive_file"), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    for folder in _groups(root, "memory"):
        for limit_name, used_name, cache_name in names:
            limit, used = number_of(folder / limit_name), number_of(folder / used_name)
            if limit is None or limit >= memory:
                continue
            # What the group holds as page cache that nobody used lately is given back when it is asked for.
            cache = re.search(rf"^{cache_name} (\d+)$", text_of(folder / "memory.stat") or "", re.MULTILINE)
            memory = limit
            available = min(available, max(0, limit - (used or 0) + (int(cache[1]) if cache else 0)))
    return memory, min(memory, available)


def numa_nodes(root: Path = Path("/")) -> tuple[int, ...]:
    """Nodes with memory that this process may use; node 0 where the system knows no nodes."""
    nodes = text_of(root / "sys/devices/system/node/has_memory")
    allowed = _status(root).get("Mems_allowed_list")
    found = listed(nodes) if nodes else (0,)
    return tuple(node for node in found if not allowed or node in listed(allowed)) or (0,)


# accelerator


def accelerator_here(known: pl.DataFrame | None, root: Path = Path("/")) -> Accelerator | None:
    """The first accelerator that PyTorch sees; PyTorch is imported only where a driver is."""
    if not any((root / mark).exists() for mark in DEVICE_MARKS) or importlib.util.find_spec("torch") is None:
        return None
    return accelerator_of(importlib.import_module("torch"), known)


def accelerator_of(torch: Any, known: pl.DataFrame | None) -> Accelerator | None:
    """Device 0 of a torch module; None if CUDA cannot be used there."""
    if not torch.cuda.is_available():
        return None
    seen = torch.cuda.get_device_properties(0)
    free_bytes, memory_bytes = torch.cuda.mem_get_info(0)
    driver = answer_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
    runtime = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"HIP {getattr(torch.version, 'hip', None)}"
    return Accelerator(
        name=seen.name,
        memory_bytes=int(memory_bytes),
        available_bytes=int(free_bytes),
        bus=None if known is None else buses.find(known, "accelerator", seen.name),
        driver=f"{runtime}, driver {driver}" if driver else f"{runtime}, driver not readable",
        unified=bool(getattr(seen, "is_integrated", 0)),
    )


# the machine


def slug_of(words: str) -> str:
    """Words as a name for folders and keys: lower-case letters, digits and ``_``.

    Raises
    ------
    InputError
        If nothing is left of them.
    """
    slug = re.sub(r"[^a-z0-9]+", "_", words.casefold()).strip("_")
    if not slug:
        raise InputError("platform", "name", repr(words), "a name with letters or digits")
    return slug


def _short(brand: str) -> str:
    """A brand without the words that say nothing: ``AMD EPYC 7763 64-Core Processor`` is ``EPYC 7763``."""
    short = re.sub(r"\((R|TM)\)|@.*|\bwith\b.*|\b\d+-Core\b", " ", brand, flags=re.IGNORECASE)
    return " ".join(re.sub(r"\b(AMD|Intel|NVIDIA|CPU|Processor|GeForce)\b", " ", short, flags=re.IGNORECASE).split())


def _named(processor: Processor, cores: int, accelerator: Accelerator | None) -> tuple[str, str]:
    article = "an" if processor.brand[:1].upper() in "AEIOU" else "a"
    details = f" ({processor.details})" if processor.details else ""
    count = f"{cores} core{'s' * (cores != 1)}"
    name = f"{count} of {article} {processor.brand}{details}" + (f", {processor.guest}" if processor.guest else "")
    slug = slug_of(f"{_short(processor.brand)} {cores} cores")
    if accelerator is not None:
        name += f", with {accelerator.name}"
        slug = slug_of(f"{slug} {_short(accelerator.name)}")
    return name, slug


def this_machine(
    known: pl.DataFrame | None = None,
    stated: Bus | None = None,
    name: str = "",
    root: Path = Path("/"),
    accelerator_bus: Bus | None = None,
) -> Machine:
    """What can be measured here.

    Parameters
    ----------
    known : polars.DataFrame or None
        Buses by processor and accelerator (:func:`kvtier.kit.buses.read`); without it none is known.
    stated : Bus or None
        The processor's bus as the caller states it, before what the table says.
    name : str
        The platform's name in words, before what the system says.
    root : Path
        Where ``proc`` and ``sys`` lie.
    accelerator_bus : Bus or None
        The accelerator's bus as the caller states it, before what the table says.

    Raises
    ------
    InputError
        If the system does not say how much memory it has: then nothing could be refused that does not fit.
    """
    if platform.system() == "Darwin" and root == Path("/"):
        processor, cores, cache, memory, nodes = _macos()
    else:
        processor = linux_processor(root)
        allowed, quota = allowed_cores(root), core_quota(root)
        cores = len(allowed) if quota is None else max(1, min(len(allowed), int(quota)))
        cache, memory, nodes = last_level_cache_bytes(root, allowed), linux_memory_bytes(root), numa_nodes(root)
    if memory is None:
        raise InputError("machine", "memory", "a system that does not say it", "/proc/meminfo, or sysctl and vm_stat")
    accelerator = accelerator_here(known, root)
    if accelerator is not None and accelerator_bus is not None:
        accelerator = replace(accelerator, bus=accelerator_bus)
    not_readable = []
    if cache is None:
        not_readable.append(f"last-level cache: {ASSUMED_CACHE_BYTES // MIB} MiB taken")
    bus = stated
    if bus is None and known is not None:
        socket = buses.find(known, "cpu", processor.described)
        sockets = len(nodes) if processor.guest else processor.sockets
        bus = None if socket is None else buses.of_sockets(socket, sockets, bool(processor.guest))
    if bus is None and accelerator is not None and accelerator.unified:
        bus = accelerator.bus
    if bus is not None and accelerator is not None and accelerator.unified and accelerator.bus is None:
        accelerator = replace(accelerator, bus=bus)
    if bus is None:
        not_readable.append("memory bus: no data sheet is known for the processor")
    if accelerator is not None and accelerator.bus is None:
        not_readable.append(f"memory bus of {accelerator.name}: no data sheet is known for it")
    said, slug = _named(processor, cores, accelerator)
    return Machine(
        name=name or said,
        slug=slug_of(name) if name else slug,
        cores=cores,
        last_level_cache_bytes=cache or ASSUMED_CACHE_BYTES,
        memory_bytes=memory[0],
        available_bytes=memory[1],
        numa_nodes=nodes,
        bus=bus,
        accelerator=accelerator,
        processor=processor.described + (f", {processor.guest}" if processor.guest else ""),
        not_readable=tuple(not_readable),
    )


def _macos() -> tuple[Processor, int, int | None, tuple[int, int] | None, tuple[int, ...]]:
    def asked(name: str) -> str:
        return answer_of("sysctl", "-n", name) or ""

    def count(name: str) -> int | None:
        return int(asked(name)) if asked(name).isdigit() else None

    memory, pages = count("hw.memsize"), answer_of("vm_stat") or ""
    processor = Processor(asked("machdep.cpu.brand_string") or f"{platform.machine()} processor", "")
    cache = count("hw.l3cachesize") or count("hw.perflevel0.l2cachesize") or count("hw.l2cachesize")
    return processor, os.cpu_count() or 1, cache, None if memory is None else (memory, macos_available_bytes(pages) or memory // 2), (0,)


def macos_available_bytes(pages: str) -> int | None:
    """Free memory of what ``vm_stat`` prints [B]: pages that are free, inactive or speculative."""
    size = re.search(r"page size of (\d+) bytes", pages)
    counts = re.findall(r"^Pages (?:free|inactive|speculative):\s+(\d+)", pages, re.MULTILINE)
    return int(size[1]) * sum(map(int, counts)) if size and counts else None
