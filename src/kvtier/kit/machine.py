"""The machine that is measured: what it says of itself, and the bandwidth that a data sheet gives its memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bus:
    """Memory bandwidth as a data sheet states it.

    Parameters
    ----------
    gbps : float
        GB/s, decimal, of all channels that the measured threads can reach.
    source : str
        The data sheet, or who said it.
    """

    gbps: float
    source: str


@dataclass(frozen=True)
class Accelerator:
    """A GPU that PyTorch sees.

    Parameters
    ----------
    name : str
    memory_bytes, available_bytes : int
        In all and free [B].
    bus : Bus or None
        None where no data sheet is known for the name.
    driver : str
        CUDA and driver version.
    unified : bool
        Whether its memory is the host's.
    """

    name: str
    memory_bytes: int
    available_bytes: int
    bus: Bus | None
    driver: str
    unified: bool


@dataclass(frozen=True)
class Machine:
    """What can be measured here.

    Parameters
    ----------
    name : str
        In words, honest about what cannot be seen: ``2 cores of an AMD EPYC (family 23, model 1), KVM guest``.
    slug : str
        For folders and number keys: ``epyc_2_cores``; lower-case letters, digits and ``_``.
    cores : int
        Cores that this process may use.
    last_level_cache_bytes : int
        Largest cache that the system reports [B]; its sum over instances that the cores reach.
    memory_bytes, available_bytes : int
        Memory, or the lower limit of the control group, and what of it is free [B].
    numa_nodes : tuple of int
        Nodes with memory.
    bus : Bus or None
        None where it is not known: then no bandwidth can be checked, and the run is not to be kept.
    accelerator : Accelerator or None
    processor : str
        What the processor calls itself, with family and model.
    not_readable : tuple of str
        What the system does not say, and what was taken in its place.
    """

    name: str
    slug: str
    cores: int
    last_level_cache_bytes: int
    memory_bytes: int
    available_bytes: int
    numa_nodes: tuple[int, ...]
    bus: Bus | None
    accelerator: Accelerator | None = None
    processor: str = ""
    not_readable: tuple[str, ...] = ()
