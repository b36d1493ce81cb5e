"""The 64-byte record of a KV block, and its identity.

SPEC §2 gives 16 B of identity, 8 B of score, 8 B of time of the last touch and 4 B of touch count, and reserves 28 B. Those are policy
state and belong to the identity. Of the 28 B this build uses 24, for what a tier has to know of the block (mechanism state):

========  =====  ====================================================================================
offset    bytes  field
========  =====  ====================================================================================
0         16     ``identity``; any 16 bytes, for example a hash of the tokens up to the block's last
16        8      ``score``; float64, the policy's
24        8      ``touched``; int64, time of the last touch on the caller's clock (turns, or ns)
32        4      ``count``; touches, 0 where there is no policy state
36        12     ``slot``; int32 of each tier, :data:`NO_SLOT` where the tier has no copy
48        8      ``checksum``; of the payload (:func:`checksum`), valid once ``flags`` has :data:`SEALED`
56        2      ``pins``; readers that need the copy in HBM to stay
58        2      ``flags``
60        4      reserved, zero
========  =====  ====================================================================================

A record is one cache line if the table starts on one, which it does.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum
from typing import NamedTuple

import numpy as np

RECORD_BYTES = 64
IDENTITY_BYTES = 16

RECORD = np.dtype(
    [
        ("identity", "V16"),
        ("score", "<f8"),
        ("touched", "<i8"),
        ("count", "<u4"),
        ("slot", "<i4", (3,)),
        ("checksum", "<u8"),
        ("pins", "<u2"),
        ("flags", "<u2"),
        ("reserved", "V4"),
    ]
)

NO_SLOT = -1

SEALED = 1
"""Flag: the payload has been written once, and can be written again only with the same bytes."""


class Tier(IntEnum):
    """Tiers from the fastest down."""

    HBM = 0
    CXL = 1
    NVME = 2


class State(NamedTuple):
    """Policy state of a block: score, time of the last touch, number of touches."""

    score: float
    touched: int
    count: int


def identity_of(owner: int, position: int) -> bytes:
    """Identity of a block that is named by two int64: 16 bytes."""
    return struct.pack("<qq", owner, position)


def checksum(payload: bytes | memoryview) -> int:
    """BLAKE2b of the bytes, cut to 64 bits: two payloads share it by chance once in 2^64."""
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "little")
