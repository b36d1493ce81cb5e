"""Memory of devices, and what of it is left for KV."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fractions import Fraction

from kvtier.analytic import quantities
from kvtier.analytic.footprint import Footprint, checked_count
from kvtier.errors import InputError
from kvtier.units import GIB

NOTE = "data sheets write GB; the memory of these boards is counted in GiB, and their drivers report slightly less"

DEVICES: dict[str, tuple[int, str]] = {
    "A100-40GB": (40, "NVIDIA A100 data sheet: 40 GB HBM2"),
    "A100": (80, "NVIDIA A100 data sheet: 80 GB HBM2e"),
    "H100": (80, "NVIDIA H100 SXM data sheet: 80 GB HBM3"),
    "H200": (141, "NVIDIA H200 data sheet: 141 GB HBM3e"),
    "B200": (180, "NVIDIA DGX B200 data sheet: 1,440 GB in eight devices"),
    "MI300X": (192, "AMD Instinct MI300X data sheet: 192 GB HBM3"),
    "RTX-3090": (24, "NVIDIA GeForce RTX 3090 specifications: 24 GB GDDR6X"),
    "RTX-4090": (24, "NVIDIA GeForce RTX 4090 specifications: 24 GB GDDR6X"),
}
"""By name: memory [GiB] and source; Vendor specification, read as :data:`NOTE` says. A size in GiB, as the driver has it, is exact."""


@dataclass(frozen=True)
class Device:
    """Memory of one rank.

    Parameters
    ----------
    name : str
    memory_bytes : int
    source : str
    """

    name: str
    memory_bytes: int
    source: str


def device(text: str) -> Device:
    """A device by name, whatever its case and hyphens, or by its memory such as ``80 GiB``.

    Raises
    ------
    InputError
        If it is neither.
    """
    bare = {name.lower().replace("-", ""): name for name in DEVICES}
    asked = text.strip().lower().replace("-", "").replace(" ", "")
    if asked in bare:
        gib, source = DEVICES[bare[asked]]
        return Device(bare[asked], gib * GIB, f"{source}; {NOTE}")
    try:
        return Device("device", quantities.size_bytes(text, "--device"), "as given")
    except InputError:
        near = difflib.get_close_matches(asked, bare, 3)
        words = ", ".join(bare[name] for name in near) if near else ", ".join(DEVICES)
        raise InputError("--device", "memory", quantities.shortened(text), f"a size such as 80 GiB, or {words}") from None


@dataclass(frozen=True)
class Fit:
    """What one rank's memory holds beside its share of the weights.

    Parameters
    ----------
    memory_bytes, usable_bytes : int
        Memory of the rank, and the share of it that is planned with [B].
    weight_bytes, workspace_bytes : int
        Of one rank [B].
    kv_bytes : int
        Left for KV [B].
    blocks, tokens : int
        Whole blocks, and the tokens in them.
    sequences_paged, sequences : int
        Whole sequences: in whole blocks with all layers in unified pages, and window-aware.
    """

    memory_bytes: int
    usable_bytes: int
    weight_bytes: int
    workspace_bytes: int
    kv_bytes: int
    blocks: int
    tokens: int
    sequences_paged: int
    sequences: int


def fit(
    footprint: Footprint,
    memory_bytes: int,
    weight_bytes: int,
    context_tokens: int,
    *,
    block_tokens: int = 16,
    utilization: Fraction = Fraction(9, 10),
    workspace_bytes: int = 0,
) -> Fit:
    """Fill what a device leaves for KV: utilization · memory − weights / ranks − workspace.

    Parameters
    ----------
    footprint : Footprint
        Of the model, on its ranks.
    memory_bytes, workspace_bytes : int
        Of one rank [B].
    weight_bytes : int
        All weights [B]; each rank has an equal share, rounded up.
    context_tokens : int
        Length of a sequence.
    block_tokens : int
        Tokens of a block.
    utilization : Fraction
        Share of the memory that is planned with, above 0 and at most 1.

    Raises
    ------
    InputError
        If the weights do not fit, or a value is out of range.

    Notes
    -----
    A capacity, not a number of served users. States of layers without KV are taken from what is left for KV, sequence by sequence; the
    counts of blocks and tokens leave them out.
    """
    if not 0 < utilization <= 1:
        raise InputError("size", "utilization", float(utilization), "a share above 0 and at most 1")
    checked_count("context", context_tokens)
    share, usable = -(-weight_bytes // footprint.tp), int(utilization * memory_bytes)
    left = usable - share - workspace_bytes
    if left < 0:
        found = f"weights of {quantities.in_unit(share, 'GiB')} a rank and {quantities.in_unit(workspace_bytes, 'GiB')} of workspace"
        raise InputError("size", "device", found, f"at most {quantities.in_unit(usable, 'GiB')}, the part of the memory in use")
    block = footprint.block_bytes(block_tokens)
    a_sequence = -(-context_tokens // block_tokens) * block + footprint.state_bytes
    blocks = left // block
    return Fit(
        memory_bytes,
        usable,
        share,
        workspace_bytes,
        left,
        blocks,
        blocks * block_tokens,
        left // a_sequence,
        left // footprint.sequence_bytes(context_tokens),
    )
