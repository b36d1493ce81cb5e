"""Units by name, in bytes, so that GiB (2^30 B) and GB (10^9 B) are never taken for each other."""

from __future__ import annotations

KIB = 2**10
MIB = 2**20
GIB = 2**30
MB = 10**6
GB = 10**9
TB = 10**12

K_TOKENS = 1024
"""One "K" of tokens, as in a 128K context [tokens]."""


def bytes_to_gib(size_bytes: float) -> float:
    """Bytes as GiB [2^30 B]."""
    return size_bytes / GIB


def bytes_to_gb(size_bytes: float) -> float:
    """Bytes as GB [10^9 B]."""
    return size_bytes / GB
