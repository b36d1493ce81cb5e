"""What a benchmark leaves behind: its raw rows as CSV, and the platform beside them as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from kvtier.files import write_atomically

FOLDER = Path(__file__).resolve().parents[1] / "data/bench"


def cpu_model() -> str:
    """Name of the processor, as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def about(packages: Iterable[str], method: Mapping[str, Any]) -> dict[str, Any]:
    """The machine, the versions that decide its speed, the day, and how the rows were taken."""
    return {
        "evidence": "Measured",
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "method": dict(method),
    }


def keep(name: str, rows: Iterable[Mapping[str, Any]], platform_record: Mapping[str, Any]) -> None:
    """Write ``data/bench/<name>.csv`` and ``<name>.json``."""
    table = pl.DataFrame(list(rows), infer_schema_length=None)
    write_atomically(FOLDER / f"{name}.csv", table.write_csv())
    write_atomically(FOLDER / f"{name}.json", json.dumps(platform_record, indent=1, ensure_ascii=False) + "\n")
    print(f"kept: data/bench/{name}.csv, {table.height} rows, and {name}.json")
