"""The semantics of :mod:`kvtier.simulate.paths`, block by block: the readable reference, for small traces.

A block is (edge, position in it), and what is resident is a set of them. Policies are those of :mod:`kvtier.simulate.eviction`, whose
objects are edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

from kvtier.simulate.eviction import Eviction
from kvtier.workload.paths import Trace

Block = tuple[int, int]
"""(edge, position)."""


@dataclass
class Record:
    """What one request found and changed.

    Parameters
    ----------
    hits, prefix_hits, streamed : list of Block
        Of its path, in order: resident, resident with nothing missing before, and not kept.
    evicted : list of Block
        In order of eviction.
    resident : frozenset of Block
        After the request.
    """

    hits: list[Block] = field(default_factory=list)
    prefix_hits: list[Block] = field(default_factory=list)
    streamed: list[Block] = field(default_factory=list)
    evicted: list[Block] = field(default_factory=list)
    resident: frozenset[Block] = frozenset()


def replay(trace: Trace, eviction: Eviction, capacity_blocks: int, *, suffix_first: bool = True, leaves_only: bool = True) -> list[Record]:
    """Replay a trace; parameters as in :func:`kvtier.simulate.paths.replay`.

    Returns
    -------
    list of Record
        One a request.
    """
    resident: set[Block] = set()
    records = []

    def count(edge: int) -> int:
        return sum(owner == edge for owner, _ in resident)

    def evict(edge: int, enough: Callable[[], bool]) -> None:
        while count(edge) and not enough():
            mine = sorted(block for block in resident if block[0] == edge)
            gone = mine[-1] if suffix_first else mine[0]
            resident.remove(gone)
            record.evicted.append(gone)
        eviction.lost(edge, count(edge))

    for request in range(trace.requests):
        record = Record()
        path = trace.path(request).tolist()
        read = [(edge, position) for edge in path for position in range(trace.blocks[edge])]
        record.hits = [block for block in read if block in resident]
        record.prefix_hits = list(takewhile(lambda block: block in resident, read))
        for edge in path:
            eviction.asked(edge, request, count(edge))
        kept, record.streamed = read[:capacity_blocks], read[capacity_blocks:]

        def fits(read=read, kept=kept) -> bool:
            return len(resident - set(read)) + len(kept) <= capacity_blocks

        while not fits():
            inner = {int(trace.parent[edge]) for edge, _ in resident} if leaves_only else set()
            evict(eviction.victim(inner | set(path)), fits)
        resident.difference_update(read)
        resident.update(kept)
        for edge in path:
            eviction.read(edge, request, count(edge))
        for edge in eviction.demotes(request):
            if edge not in path:
                evict(edge, lambda: False)
        record.resident = frozenset(resident)
        records.append(record)
    return records


def block_numbers(trace: Trace, request: int) -> list[int]:
    """Numbers of the blocks that a request reads (:attr:`kvtier.workload.paths.Trace.block_number`), in order."""
    first = trace.block_number.tolist()
    return [number for edge in trace.path(request).tolist() for number in range(first[edge], first[edge + 1])]


def orphans(trace: Trace, resident: frozenset[Block]) -> list[Block]:
    """Resident blocks whose parent, the block before them on every path that has them, is not resident.

    Parameters
    ----------
    trace : Trace
    resident : frozenset of Block
    """

    def parent(block: Block) -> Block | None:
        edge, position = block
        if position:
            return edge, position - 1
        above = int(trace.parent[edge])
        return None if above < 0 else (above, int(trace.blocks[above]) - 1)

    return sorted(block for block in resident if (before := parent(block)) is not None and before not in resident)
