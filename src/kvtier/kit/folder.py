"""Where a run lies: a folder of its own while it is live, then, if it is kept, a folder of ``data/measured`` with a README."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.files import write_atomically
from kvtier.kit import record
from kvtier.kit.campaign import SENSORS_FILE
from kvtier.kit.readme import readme
from kvtier.measure import kept_points
from kvtier.measure.fields import Fields
from kvtier.measure.kept import SENSORS, TABLES

LIVE = "results/live"
KEPT = "data/measured"
"""In a checkout."""

SUMMARY_FILE = "summary.json"

NAME = re.compile(r"[a-z0-9_]+-\d{4}-\d\d-\d\d(-\d+)?")


def live_folder(parent: Path, slug: str, day: date, also_free_in: Sequence[Path] = ()) -> Path:
    """Make a new folder ``<slug>-<day>`` under `parent`, with ``-2``, ``-3``, ... where that is taken.

    Parameters
    ----------
    parent : Path
        Made if it is not there.
    slug : str
        Of the machine.
    day : date
    also_free_in : sequence of Path
        Folders that must not hold the name either, such as that of kept runs.

    Raises
    ------
    InputError
        If no folder can be made there.
    """
    name = f"{slug}-{day.isoformat()}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = parent / (name if number == 1 else f"{name}-{number}")
            if any((other / folder.name).exists() for other in also_free_in):
                continue
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise InputError(parent, "folder", error.strerror, "a folder that can be written to") from None
    raise AssertionError("unreachable: numbers do not end")


def check_keepable(folder: Path, root: Path) -> tuple[Path, Mapping[str, Any]]:
    """Where a run would be kept, and its record.

    Raises
    ------
    InputError
        If it is a quick try, its bus is not known, a part of it is not complete, a table is missing, damaged or not the one that was
        recorded, or the place is taken.
    """
    document = record.read(folder)
    path, place = folder / record.FILE, root / KEPT / folder.resolve().name
    if not NAME.fullmatch(place.name):
        raise InputError(folder, "name", place.name, "<platform>-<date>, as `kvtier measure` names a run")
    if document["quick"]:
        raise InputError(path, "quick", "a quick try", "a whole run: too few repetitions were made to keep it")
    if document["bus"] is None:
        raise InputError(path, "bus", "no bandwidth of the memory bus", "one, by --bus-gbps and --bus-source when the run is made")
    Fields(path, document).section("bus").positive("gbps")
    if not document["parts"]:
        raise InputError(path, "parts", "none", "at least one complete part")
    for part_name, part in document["parts"].items():
        if part["state"] != record.COMPLETE:
            raise InputError(
                path, f"parts.{part_name}.state", part["state"], f"{record.COMPLETE}: make the run again, or without this part"
            )
        for file, rows in part["tables"].items():
            name = file.removesuffix(".csv")
            table = TABLES.get(name)
            if table is None:
                raise InputError(path, f"parts.{part_name}.tables", file, f"one of {', '.join(f'{known}.csv' for known in TABLES)}")
            found = kept_points.check(name, table.read_csv(folder / file), folder / file).height
            if found != rows:
                raise InputError(folder / file, "rows", found, f"{rows}, as {record.FILE} says")
    SENSORS.read_csv(folder / SENSORS_FILE)
    if place.exists():
        raise InputError(place, "folder", "a run that is kept", "a name that is free: rename the live folder with -2 at its end")
    return place, document


def keep(folder: Path, root: Path) -> Path:
    """Move a run to ``data/measured/<its name>/``, with a README made from its record.

    Raw rows and the record are kept; the summary is not, for the build makes it again. The folder appears whole: files are gathered beside
    it under another name and that is renamed, and only then the live folder goes.

    Returns
    -------
    Path
        The new folder.

    Raises
    ------
    InputError
        As :func:`check_keepable`; nothing is moved then.
    """
    place, document = check_keepable(folder, root)
    files = [record.FILE, SENSORS_FILE, *(file for part in document["parts"].values() for file in part["tables"])]
    text = readme(place.name, document)
    gathered = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        gathered.mkdir(parents=True)
        for file in files:
            shutil.copyfile(folder / file, gathered / file)
        write_atomically(gathered / "README.md", text)
        # On POSIX this replaces an empty folder and fails on any other that came meanwhile.
        gathered.rename(place)
    except OSError as error:
        raise InputError(place, "folder", error.strerror, "a folder that can be written to") from None
    finally:
        shutil.rmtree(gathered, ignore_errors=True)
    # What else somebody put there is not ours to delete.
    for file in [*files, SUMMARY_FILE]:
        (folder / file).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
    return place
