"""Clocks, temperatures, power, load and stolen time: what else the machine did while it was measured.

They are read before a part, when it reports progress, at most once in two seconds, and after it: always between timed runs, so that reading
them is in no time. What cannot be read here is named.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from kvtier.kit.system import allowed_cores, answer_of, number_of, text_of
from kvtier.measure.kept import SENSORS

INTERVAL_S = 2.0
"""Least time between two readings during a part."""

GPU_FIELDS = {
    "clocks.sm": ("SM clock", "MHz"),
    "clocks.mem": ("memory clock", "MHz"),
    "temperature.gpu": ("temperature", "°C"),
    "power.draw": ("power", "W"),
}
"""Asked of nvidia-smi."""


@dataclass(frozen=True)
class Reading:
    """One value of one sensor."""

    sensor: str
    value: float
    unit: str


@dataclass(frozen=True)
class Sensors:
    """The sensors of a machine.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` lie.
    gpu : callable
        Answers like nvidia-smi, one line a GPU; None where there is none.
    """

    root: Path = Path("/")
    gpu: Callable[[], str | None] = lambda: answer_of(
        "nvidia-smi", f"--query-gpu=index,{','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits"
    )

    def read(self) -> tuple[list[Reading], list[str]]:
        """Values now, and the kinds of sensor that could not be read."""
        found: list[Reading] = []
        missing = []
        kinds: dict[str, Iterable[Reading]] = {
            "clock of the cores (/proc/cpuinfo)": self._core_clock(),
            "clock of the cores (cpufreq)": self._cpufreq(),
            "temperature (hwmon, thermal zones)": self._temperatures(),
            "power (hwmon)": self._hwmon("power", "power", "W", 1e-6),
            "load": self._load(),
            "clock, temperature and power of a GPU (nvidia-smi)": self._gpus(),
        }
        for kind, readings in kinds.items():
            values = [reading for reading in readings if math.isfinite(reading.value)]
            found += values
            if not values:
                missing.append(kind)
        return found, missing

    def _core_clock(self) -> Iterator[Reading]:
        cores = set(allowed_cores(self.root))
        text = text_of(self.root / "proc/cpuinfo") or ""
        by_core = re.findall(r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE | re.DOTALL)
        yield from _spread("core clock", [float(mhz) for core, mhz in by_core if int(core) in cores], "MHz")

    def _cpufreq(self) -> Iterator[Reading]:
        folder = self.root / "sys/devices/system/cpu"
        khz = [number_of(folder / f"cpu{core}/cpufreq/scaling_cur_freq") for core in allowed_cores(self.root)]
        yield from _spread("core clock by cpufreq", [value / 1000 for value in khz if value], "MHz")

    def _hwmon(self, prefix: str, says: str, unit: str, scale: float) -> Iterator[Reading]:
        for chip in _numbered(self.root / "sys/class/hwmon", "hwmon"):
            name = text_of(chip / "name") or chip.name
            for file in _numbered(chip, prefix, "_input"):
                label = text_of(chip / file.name.replace("_input", "_label")) or file.name.removesuffix("_input")
                value = number_of(file)
                if value is not None:
                    yield Reading(f"{says}, {name} {label}", value * scale, unit)

    def _temperatures(self) -> Iterator[Reading]:
        yield from self._hwmon("temp", "temperature", "°C", 1e-3)
        for zone in _numbered(self.root / "sys/class/thermal", "thermal_zone"):
            value = number_of(zone / "temp")
            if value is not None:
                yield Reading(f"temperature, {text_of(zone / 'type') or zone.name} {zone.name}", value * 1e-3, "°C")

    def _load(self) -> Iterator[Reading]:
        words = (text_of(self.root / "proc/loadavg") or "").split()
        if words:
            yield Reading("load of one minute", float(words[0]), "tasks")

    def _gpus(self) -> Iterator[Reading]:
        for line in (self.gpu() or "").splitlines():
            index, *values = (cell.strip() for cell in line.split(","))
            for (says, unit), value in zip(GPU_FIELDS.values(), values, strict=False):
                # A field that the GPU does not have reads [N/A].
                if re.fullmatch(r"-?\d+(\.\d+)?", value):
                    yield Reading(f"GPU {index} {says}", float(value), unit)

    def jiffies(self) -> tuple[int, int] | None:
        """Time stolen by the hypervisor and all time since the start [jiffies], over all cores; None where it is not counted."""
        line = re.search(r"^cpu +(.*)$", text_of(self.root / "proc/stat") or "", re.MULTILINE)
        counts = [int(word) for word in line[1].split()] if line else []
        # user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user time already.
        return (counts[7], sum(counts[:8])) if len(counts) > 7 else None


def _numbered(folder: Path, prefix: str, suffix: str = "") -> list[Path]:
    """Entries ``<prefix><number><suffix>`` by number."""
    pattern = re.compile(rf"{prefix}(\d+){suffix}")
    found = [(int(match[1]), path) for path in folder.glob(f"{prefix}*") if (match := pattern.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def _spread(sensor: str, values: list[float], unit: str) -> Iterator[Reading]:
    """Lowest, median and highest of many alike."""
    if values:
        yield Reading(f"{sensor}, lowest", min(values), unit)
        yield Reading(f"{sensor}, median", median(values), unit)
        yield Reading(f"{sensor}, highest", max(values), unit)


@dataclass
class Log:
    """Readings of one part.

    Parameters
    ----------
    part : str
        Its name, in each row.
    sensors : Sensors
        What is read.
    now : callable
        Seconds, for the interval between readings.
    """

    part: str
    sensors: Sensors = field(default_factory=Sensors)
    now: Callable[[], float] = time.monotonic
    rows: list[tuple[str, str, str, float, str]] = field(default_factory=list)
    not_readable: dict[str, None] = field(default_factory=dict)
    _read_at: float = -math.inf
    _jiffies: tuple[int, int] | None = None

    def before(self) -> None:
        """Read before the part starts."""
        self._jiffies = self.sensors.jiffies()
        self._read("before")

    def during(self) -> None:
        """Read, unless that was done in the last two seconds."""
        if self.now() - self._read_at >= INTERVAL_S:
            self._read("during")

    def after(self) -> None:
        """Read when the part has ended; stolen time is that of the whole part."""
        self._read("after")
        jiffies = self.sensors.jiffies()
        if jiffies is None or self._jiffies is None:
            self.not_readable["time stolen by the hypervisor (/proc/stat)"] = None
        elif jiffies[1] > self._jiffies[1]:
            share = (jiffies[0] - self._jiffies[0]) / (jiffies[1] - self._jiffies[1])
            self.rows.append((self.part, "after", "time stolen by the hypervisor since the start of the part", 100 * share, "%"))

    def _read(self, moment: str) -> None:
        self._read_at = self.now()
        readings, missing = self.sensors.read()
        self.rows += [(self.part, moment, reading.sensor, reading.value, reading.unit) for reading in readings]
        self.not_readable |= dict.fromkeys(missing)

    def table(self) -> pl.DataFrame:
        """Rows of :data:`kvtier.measure.kept.SENSORS`."""
        return pl.DataFrame(self.rows, schema=SENSORS.columns, orient="row")


def summed_up(rows: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """By sensor: unit, and lowest, median and highest reading of each moment.

    Parameters
    ----------
    rows : polars.DataFrame
        Of one part.
    """
    found: dict[str, dict[str, Any]] = {}
    for (sensor, unit, moment), group in rows.group_by("sensor", "unit", "moment", maintain_order=True):
        values = group["value"]
        spread = {"readings": len(values), "lowest": values.min(), "median": values.median(), "highest": values.max()}
        found.setdefault(sensor, {"unit": unit})[moment] = spread
    return found
