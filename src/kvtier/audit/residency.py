"""What is resident has the size that its description says: a KV pool by its type, tiers by the memory they share, shards by their ranks.

All three have been reported wrong in public: a KV cache of 8-bit floats accepted and allocated in 16 bits; tiers of a machine whose CPU
and GPU share one memory, counted as if each had its own; a size per rank read as one per host, and the reverse. Bytes are compared as
integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kvtier.audit.physical_bound import BYTES_PER_PARAMETER, Checked
from kvtier.audit.quantities import count, positive
from kvtier.errors import InputError
from kvtier.units import bytes_to_gib

TOLERANCE_PERCENT = 2
"""Relative room for padding and a rounded report, of KV pools and of shards [%]."""


class UnexpectedPool(InputError):
    """A KV pool whose bytes a token are not those of its geometry at the claimed type."""


class TiersExceedMemory(InputError):
    """Tiers of one memory that sum to more than it has."""


class RankSizesConfused(InputError):
    """Sizes of ranks that do not add up to the whole: a size per host taken for one per rank, say, or the reverse."""


def _agrees(found_bytes: float, expected_bytes: int) -> bool:
    """Whether two sizes are within the tolerance, the edge included; exact where both are integers."""
    return 100 * abs(found_bytes - expected_bytes) <= TOLERANCE_PERCENT * expected_bytes


def kv_pool(pool_bytes: float, tokens: int, bytes_per_token: int, dtype: str, source: str | Path = "KV pool") -> Checked:
    """Refuse a KV pool that takes more or fewer bytes a token than the geometry at the claimed type.

    Parameters
    ----------
    pool_bytes : float
        Bytes that are allocated for KV [B].
    tokens : int
        Tokens that they have room for.
    bytes_per_token : int
        2 · layers · KV heads · head dimension · bytes of `dtype` (SPEC §2) [B].
    dtype : str
        The type that was asked for, a key of ``BYTES_PER_PARAMETER``.
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Bytes a token that are allocated, and the most that are accepted.

    Raises
    ------
    UnexpectedPool
        If they differ by more than 2 %; the message says which type would fit.
    InputError
        If the type is not known or a size is not positive.
    """
    if dtype not in BYTES_PER_PARAMETER:
        raise InputError(source, "dtype", dtype, f"one of {', '.join(BYTES_PER_PARAMETER)}")
    pool_bytes = positive(pool_bytes, source, "pool_bytes", "B")
    tokens = count(tokens, source, "tokens", 1)
    bytes_per_token = count(bytes_per_token, source, "bytes_per_token", 1)
    if not _agrees(pool_bytes, tokens * bytes_per_token):
        claimed = BYTES_PER_PARAMETER[dtype]
        # Both sides times the claimed type's size, so that no division rounds.
        fits = [name for name, size in BYTES_PER_PARAMETER.items() if _agrees(pool_bytes * claimed, tokens * bytes_per_token * size)]
        found = f"{pool_bytes / tokens:,.0f} B a token" + (f", the size of {' or '.join(fits)}" if fits else "")
        raise UnexpectedPool(source, "KV pool", found, f"{bytes_per_token:,} B a token as {dtype}")
    return Checked(f"KV pool of {source}", pool_bytes / tokens, bytes_per_token * (1 + TOLERANCE_PERCENT / 100), "B/token")


def unified_tiers(tiers: Mapping[str, int], memory_bytes: int, source: str | Path = "unified memory") -> Checked:
    """Refuse tiers of a unified memory that sum to more than it has.

    Parameters
    ----------
    tiers : mapping of str to int
        Bytes of each tier that lies in the memory, whichever processor it is for [B].
    memory_bytes : int
        Size of the memory [B].
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Sum of the tiers and the memory [GiB].

    Raises
    ------
    TiersExceedMemory
        If the sum is larger; the message lists the tiers.
    InputError
        If there is no tier, or a size is not a whole number of bytes.
    """
    if not tiers:
        raise InputError(source, "tiers", "none", "at least one to sum")
    memory_bytes = count(memory_bytes, source, "memory_bytes", 1)
    sizes = {name: count(size, source, f"tier {name}") for name, size in tiers.items()}
    summed = sum(sizes.values())
    if summed > memory_bytes:
        parts = ", ".join(f"{name} {_said(size)}" for name, size in sizes.items())
        more = f"{_said(summed)} ({parts}), {summed - memory_bytes:,} B too many"
        raise TiersExceedMemory(source, "tiers", more, f"no more than the {_said(memory_bytes)} that they share")
    return Checked(f"tiers of {source}", bytes_to_gib(summed), bytes_to_gib(memory_bytes), "GiB")


def per_rank(rank_bytes: Sequence[int], whole_bytes: int, replicated_bytes: int, source: str | Path = "ranks") -> Checked:
    """Refuse sizes of ranks that do not add up to the whole, with what each rank holds a copy of counted once a rank.

    Parameters
    ----------
    rank_bytes : sequence of int
        What each rank of a host says it holds [B].
    whole_bytes : int
        What there is in all, `replicated_bytes` counted once [B].
    replicated_bytes : int
        Part of `whole_bytes` of which every rank has a copy [B].
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Sum over ranks and the most that is accepted [GiB].

    Raises
    ------
    RankSizesConfused
        If the sum is not whole + (ranks − 1) · replicated within 2 %, or a rank holds less than its copy. Where the sum is off by a factor
        of the number of ranks, the message says which size was taken for which.
    InputError
        If there is no rank, or a size is not a whole number of bytes.
    """
    if not len(rank_bytes):
        raise InputError(source, "ranks", "none", "at least one to sum")
    whole_bytes = count(whole_bytes, source, "whole_bytes", 1)
    replicated_bytes = count(replicated_bytes, source, "replicated_bytes")
    if replicated_bytes > whole_bytes:
        raise InputError(source, "replicated_bytes", f"{replicated_bytes:,} B", f"no more than the whole, {whole_bytes:,} B")
    sizes = [count(size, source, f"rank {rank}") for rank, size in enumerate(rank_bytes)]
    ranks, summed = len(sizes), sum(sizes)
    expected_bytes = whole_bytes + (ranks - 1) * replicated_bytes
    if not _agrees(summed, expected_bytes):
        found = f"{_said(summed)} over {ranks} ranks"
        if ranks > 1 and any(_agrees(summed, ranks * host) for host in (expected_bytes, whole_bytes)):
            found += ": the size of the host taken for that of each rank"
        elif ranks > 1 and any(_agrees(summed * ranks, host) for host in (expected_bytes, whole_bytes)):
            found += ": the size of one rank taken for that of the host"
        raise RankSizesConfused(source, "rank sizes", found, _said(expected_bytes))
    for rank, size in enumerate(sizes):
        if size < replicated_bytes and not _agrees(size, replicated_bytes):
            raise RankSizesConfused(source, f"rank {rank}", _said(size), f"at least the {_said(replicated_bytes)} that each rank holds")
    return Checked(f"ranks of {source}", bytes_to_gib(summed), bytes_to_gib(expected_bytes) * (1 + TOLERANCE_PERCENT / 100), "GiB")


def _said(size_bytes: int) -> str:
    return f"{bytes_to_gib(size_bytes):.2f} GiB"
