"""Units: GiB is 2^30 B, GB is 10^9 B; every conversion of the project is made here."""

from __future__ import annotations

KIB = 2**10
MIB = 2**20
GIB = 2**30
MB = 10**6
GB = 10**9
TB = 10**12

K_TOKENS = 1024
"""One "K" of tokens, as in a 128K context [tokens]."""


def gib_to_gb(gib: float) -> float:
    """GiB [2^30 B] as GB [10^9 B]."""
    return gib * GIB / GB


def gb_to_gib(gb: float) -> float:
    """GB [10^9 B] as GiB [2^30 B]."""
    return gb * GB / GIB


def bytes_to_gib(size_bytes: float) -> float:
    """Bytes as GiB [2^30 B]."""
    return size_bytes / GIB


def bytes_to_gb(size_bytes: float) -> float:
    """Bytes as GB [10^9 B]."""
    return size_bytes / GB


def gib_to_bytes(gib: float) -> int:
    """GiB [2^30 B] as whole bytes, rounded down."""
    return int(gib * GIB)
