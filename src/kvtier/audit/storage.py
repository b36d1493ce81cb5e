"""What is called a read of a device came from the device: a page cache serves a file that was just written at the speed of memory."""

from __future__ import annotations

from pathlib import Path

from kvtier.audit.physical_bound import Checked
from kvtier.audit.quantities import count
from kvtier.errors import InputError

LEAST_PERCENT = 95
"""Share of the bytes asked for that the block layer has to have read [%]; the rest is room for metadata that stays cached."""


class ReadFromPageCache(InputError):
    """Bytes that were asked of a file and that no device read."""


def read_from_device(asked_bytes: int, device_bytes: int, source: str | Path = "file") -> Checked:
    """Refuse a read of which the block layer read less than 95 %.

    Parameters
    ----------
    asked_bytes : int
        Bytes that the process read from the file [B].
    device_bytes : int
        Growth of ``read_bytes`` in ``/proc/self/io`` over that time [B]: what the block layer was asked for. A cache behind it is not seen:
        the host's of a virtual machine, the device's own.
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Share of the bytes that the device read, and the least that is accepted [%].

    Raises
    ------
    ReadFromPageCache
        If it read less.
    InputError
        If nothing was asked for, or a size is not a whole number of bytes.
    """
    asked_bytes = count(asked_bytes, source, "asked_bytes", 1)
    device_bytes = count(device_bytes, source, "device_bytes")
    if 100 * device_bytes < LEAST_PERCENT * asked_bytes:
        found = f"{device_bytes:,} B of {asked_bytes:,} B"
        raise ReadFromPageCache(source, "bytes read by the device", found, f"at least {LEAST_PERCENT} %: the page cache served the rest")
    return Checked(f"share of {source} that the device read", 100 * device_bytes / asked_bytes, LEAST_PERCENT, "% at least")
