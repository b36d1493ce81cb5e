"""Traces in libCacheSim's binary format oracleGeneral: 24 bytes a request, with the place of the block's next request.

Blocks are the objects; each has size 1, so that a cache of n bytes holds n blocks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kvtier.workload.turns import Turns

RECORD = np.dtype([("time", "<u4"), ("obj_id", "<u8"), ("size", "<u4"), ("next_access_vtime", "<i8")])
"""One request. ``time`` is its index; ``next_access_vtime`` is the index of the next request for the same object."""

NEVER = -1
"""``next_access_vtime`` of an object's last request; the reader takes the largest integer for the same."""


def write(path: str | Path, turns: Turns) -> int:
    """Write the requests of a workload, as :attr:`kvtier.workload.turns.Turns.requests` orders them; return how many there are.

    Turn by turn from the last to the first, so that memory holds one integer a block and not the requests: a trace of long contexts is
    larger than what may be spared twice.
    """
    asked = turns.read_blocks + turns.growth_blocks
    ends = np.cumsum(asked)
    requests = int(ends[-1])
    trace = np.memmap(path, RECORD, "w+", shape=requests)
    upcoming = np.full(turns.first_block[-1], NEVER, dtype=np.int64)
    for turn in reversed(range(len(asked))):
        end, first = int(ends[turn]), int(turns.first_block[turns.session[turn]])
        middle = end - int(asked[turn]) + turns.prefix_blocks
        for begin, stop, block in ((middle - turns.prefix_blocks, middle, 0), (middle, end, first)):
            indices, blocks = np.arange(begin, stop), slice(block, block + stop - begin)
            part = trace[begin:stop]
            part["time"], part["size"] = indices, 1
            part["obj_id"] = np.arange(blocks.start, blocks.stop)
            part["next_access_vtime"] = upcoming[blocks]
            upcoming[blocks] = indices
    trace.flush()
    return requests
