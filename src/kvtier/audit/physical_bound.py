"""No measured bandwidth exceeds the memory bus, and loaded weights take the bytes that their type says.

Two bugs of the GB10 campaign looked like results. One made vLLM five times better on KV than it is, and only the bus said no
(SPEC §7); the other loaded fp32 for fp16.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from kvtier.errors import InputError
from kvtier.measure.platform import Platform
from kvtier.measure.runs import Run
from kvtier.units import bytes_to_gib

BYTES_PER_PARAMETER = {"float32": 4, "float16": 2, "bfloat16": 2, "float8": 1}

PARAMETER_TOLERANCE = 0.1
"""Relative room for buffers and a rounded parameter count; the next type is a factor of two away."""


@dataclass(frozen=True)
class Bandwidth:
    """A bandwidth to check.

    Parameters
    ----------
    source : str
        The run or file that it comes from.
    path : str
        What moves: ``KV path``, ``fixed path``, ``streaming copy``.
    gbps : float
        GB/s, decimal.
    """

    source: str
    path: str
    gbps: float


@dataclass(frozen=True)
class Checked:
    """A subject that passed: its value and bound, in one unit."""

    subject: str
    value: float
    bound: float
    unit: str


class AboveTheBus(InputError):
    """A measured or inferred bandwidth above the memory bus: a bug, always."""

    def __init__(self, bandwidth: Bandwidth, bus_gbps: float) -> None:
        super().__init__(bandwidth.source, bandwidth.path, f"{bandwidth.gbps:.1f} GB/s", f"nothing above the bus of {bus_gbps:g} GB/s")


class UnexpectedWeights(InputError):
    """Resident weights that do not fit the type they should have."""


def physical_bound(bandwidths: Iterable[Bandwidth], bus_gbps: float) -> list[Checked]:
    """Refuse any bandwidth above the bus.

    Parameters
    ----------
    bandwidths : iterable of Bandwidth
        Achieved or inferred from a fit.
    bus_gbps : float
        Specified bandwidth of the memory [GB/s, decimal].

    Returns
    -------
    list of Checked
        One entry a bandwidth, in order.

    Raises
    ------
    AboveTheBus
        For the first one above the bus.
    InputError
        If there is nothing to check, or a bandwidth or the bus is not a finite number above 0: a negative slope gives a negative
        bandwidth, which is below any bus and no less wrong.
    """
    if not isfinite(bus_gbps) or bus_gbps <= 0:
        raise InputError("bus", "bus_gbps", bus_gbps, "a finite bandwidth above 0 GB/s")
    checked = []
    for bandwidth in bandwidths:
        if bandwidth.gbps > bus_gbps:
            raise AboveTheBus(bandwidth, bus_gbps)
        if not isfinite(bandwidth.gbps) or bandwidth.gbps <= 0:
            raise InputError(bandwidth.source, bandwidth.path, f"{bandwidth.gbps} GB/s", "a finite bandwidth above 0 GB/s")
        checked.append(Checked(f"{bandwidth.path} of {bandwidth.source}", bandwidth.gbps, bus_gbps, "GB/s"))
    if not checked:
        raise InputError("physical bound", "bandwidths", "none", "at least one to check")
    return checked


def bandwidths_of(runs: Iterable[Run], platform: Platform, copy_gbps: float) -> list[Bandwidth]:
    """Every bandwidth of decode runs: the streaming copy, both paths of every fit, each row's step.

    A fit with a row left out counts like any other: it is printed as well.
    """
    found = [Bandwidth(platform.machine, "streaming copy", copy_gbps)]
    for run in runs:
        fits = {"exact KV sizes": run.exact, "published KV sizes": run.published}
        fits |= {f"without {batch} × {tokens}": each for (batch, tokens), each in zip(run.points, run.without, strict=True)}
        for which, fitted in fits.items():
            source = f"{run.name}, {which}"
            found.append(Bandwidth(source, "fixed path", fitted.implied.fixed_gbps.value))
            found.append(Bandwidth(source, "KV path", fitted.implied.kv_gbps.value))
        for (batch, tokens), gbps in zip(run.points, run.step_gbps, strict=True):
            found.append(Bandwidth(f"{run.name}, {batch} × {tokens}", "weights and KV of one step", gbps))
    return found


def report(checked: Iterable[Checked]) -> dict[str, Any]:
    """What passed, for the audit's file; a build that did not pass has none."""
    return {"audit": "physical_bound", "subjects": [asdict(subject) for subject in checked], "verdict": "pass"}


def resident_weights(resident_bytes: float, parameters: int, dtype: str, source: str | Path = "resident weights") -> Checked:
    """Refuse weights that take more or fewer bytes than their type: for live runs, which see what was loaded.

    Parameters
    ----------
    resident_bytes : float
        Bytes of weights in memory after loading [B].
    parameters : int
        Parameter count.
    dtype : str
        The type that was asked for, a key of ``BYTES_PER_PARAMETER``.
    source : str or Path
        Named in errors.

    Raises
    ------
    UnexpectedWeights
        If the bytes differ from parameters × bytes of the type by more than a tenth; the message says which type would fit.
    InputError
        If the type is not known or `parameters` is not positive.
    """
    if dtype not in BYTES_PER_PARAMETER:
        raise InputError(source, "dtype", dtype, f"one of {', '.join(BYTES_PER_PARAMETER)}")
    if parameters < 1:
        raise InputError(source, "parameters", parameters, "1 or more")
    expected_bytes = parameters * BYTES_PER_PARAMETER[dtype]
    if not abs(resident_bytes - expected_bytes) <= PARAMETER_TOLERANCE * expected_bytes:
        fits = [
            name
            for name, size in BYTES_PER_PARAMETER.items()
            if abs(resident_bytes - parameters * size) <= PARAMETER_TOLERANCE * parameters * size
        ]
        found = f"{bytes_to_gib(resident_bytes):.2f} GiB" + (f", the size of {' or '.join(fits)}" if fits else "")
        raise UnexpectedWeights(source, "resident weights", found, f"{bytes_to_gib(expected_bytes):.2f} GiB as {dtype}")
    return Checked(f"weights of {source}", bytes_to_gib(resident_bytes), bytes_to_gib(expected_bytes) * (1 + PARAMETER_TOLERANCE), "GiB")
