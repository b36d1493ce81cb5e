"""Turns of a workload replayed through real blocks, with the simulator's policies in charge.

The policies are those of :mod:`kvtier.simulate`, unchanged: they decide from which edge, or which block, HBM loses something. Here
payloads then really move: what leaves HBM goes to the CXL arena, what that has no room for to the file, and what a turn misses is read back
from where it is, or made again. :func:`replay` follows Revision 3 (SPEC §4.2), :func:`replay_requests` the request by request references
(SPEC §4.1).

Scores and counts of LFU and EMA are kept in the 64-byte records (:func:`policy_in_records`): the same policy reads and writes them there
as it would in its own dictionary. So they survive an eviction or a restart because the record does, and not because an object lives on.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, MutableMapping
from typing import Literal, NamedTuple

import numpy as np

from kvtier.blocks.record import Tier, identity_of
from kvtier.blocks.store import Store
from kvtier.simulate import eviction, requests, revision3
from kvtier.simulate.lower_tiers import TierCounts
from kvtier.simulate.policies import Policy
from kvtier.simulate.revision3 import Residency
from kvtier.workload.turns import Turns

PREFIX = -1
"""Owner of the blocks that all sessions share."""

LOWER = (Tier.CXL, Tier.NVME)


def block_identity(owner: int, position: int) -> bytes:
    """Identity of a block of a session, or of the prefix: unique whatever the sessions grow to."""
    return identity_of(owner + 1, position)


def made(identity: bytes, payload_bytes: int) -> bytes:
    """What computing a block stands for here: bytes that depend on its identity alone, so that it can be made again."""
    return hashlib.shake_128(identity).digest(payload_bytes)


class InRecords(MutableMapping):
    """Policy state of edges or blocks, as a policy's dictionary, kept in records.

    Parameters
    ----------
    store : Store
    identity : callable
        Identity of the record that has the state of an edge or block.
    """

    def __init__(self, store: Store, identity: Callable[[int], bytes]) -> None:
        self._store, self._identity = store, identity
        self.now = 0
        """Turn, where what is written does not say it."""

    def __getitem__(self, key: int) -> object:
        state = self._store.state(self._identity(key))
        if state is None:
            raise KeyError(key)
        return self.value(state)

    def __delitem__(self, key: int) -> None:
        self._store.reset(self._identity(key))

    def __len__(self) -> int:
        return int(np.count_nonzero(self._store.table.records["count"]))

    def __iter__(self) -> Iterator[int]:
        raise TypeError("records know identities, not the numbers that a policy has for them")


class Counts(InRecords):
    """Number of touches."""

    def value(self, state) -> int:
        """What the policy sees."""
        return state.count

    def __setitem__(self, key: int, count: int) -> None:
        self._store.touch(self._identity(key), self.now)


class Scores(InRecords):
    """Score and turn of the last touch."""

    def value(self, state) -> tuple[float, int]:
        """What the policy sees."""
        return state.score, state.touched

    def __setitem__(self, key: int, state: tuple[float, int]) -> None:
        score, turn = state
        self._store.touch(self._identity(key), turn, score)


class Lru(eviction.Lru):
    """Least recently used; records learn of the touches."""

    def __init__(self, capacity_blocks: int, records: Counts) -> None:
        super().__init__(capacity_blocks)
        self._records = records

    def insert(self, edge: int, turn: int) -> None:
        """Join at the newest end."""
        super().insert(edge, turn)
        self._records.now = turn
        self._records[edge] = None

    hit = insert


class Lfu(eviction.Lfu):
    """Least frequently used, counts in records."""

    def __init__(self, capacity_blocks: int, records: Counts, persistent: bool) -> None:
        super().__init__(capacity_blocks, persistent)
        self._count = records

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Note the time."""
        self._count.now = turn


class Ema(eviction.Ema):
    """Decayed frequency, scores in records."""

    def __init__(self, capacity_blocks: int, records: Scores, alpha: float, persistent: bool) -> None:
        super().__init__(capacity_blocks, alpha, persistent)
        self._score = records


class ByBlock:
    """A policy whose edges are single blocks, in the place of one whose edges are sessions and the prefix.

    Ties of :mod:`kvtier.simulate.eviction` go to the oldest read, and in a turn to the deepest: for blocks that is the rule of
    :func:`kvtier.simulate.revision3.replay`.

    Parameters
    ----------
    inner : Eviction
        Its edges are numbers of :attr:`Turns.first_block`.
    turns : Turns
    """

    def __init__(self, inner: eviction.Eviction, turns: Turns) -> None:
        self._inner = inner
        self._prefix = len(turns.context_blocks)
        self._first = turns.first_block.tolist()
        self._resident: dict[int, int] = {}

    def _blocks(self, edge: int, first: int, stop: int) -> range:
        start = 0 if edge == self._prefix else self._first[edge]
        return range(start + first, start + stop)

    def owner(self, block: int) -> int:
        """Edge that a block belongs to."""
        # Sessions without blocks share their first number with the next one: the last of them is the one that has it.
        return self._prefix if block < self._first[0] else bisect_right(self._first, block) - 1

    def asked(self, edge: int, turn: int, resident: int) -> None:
        """Policies of blocks learn of the turn here, and of what is asked when it is read."""
        self._inner.asked(edge, turn, resident)

    def victim(self, pinned: Container[int]) -> int:
        """Edge of the block that leaves next."""
        return self.owner(self._inner.victim(_OfEdges(self, pinned)))

    def lost(self, edge: int, left: int) -> None:
        """Blocks left, the deepest first."""
        for block in reversed(self._blocks(edge, left, self._resident[edge])):
            self._inner.lost(block, 0)
        self._resident[edge] = left

    def read(self, edge: int, turn: int, blocks: int) -> None:
        """The first blocks were read."""
        for block in self._blocks(edge, 0, blocks):
            self._inner.read(block, turn, 1)
        self._resident[edge] = blocks

    def demotes(self, turn: int) -> list[int]:
        """Policies of blocks demote under pressure alone."""
        return []


class _OfEdges:
    """Blocks of some edges."""

    def __init__(self, policy: ByBlock, edges: Container[int]) -> None:
        self._policy, self._edges = policy, edges

    def __contains__(self, block: int) -> bool:
        return self._policy.owner(block) in self._edges


def policy_in_records(policy: Policy, turns: Turns, store: Store, grain: Literal["session", "block"]) -> eviction.Eviction | ByBlock:
    """A policy of Revision 3 for :func:`replay`, its state in the store's records.

    Parameters
    ----------
    policy : Policy
        ``lru``, ``lfu`` or ``ema``, persistent or not.
    turns : Turns
    store : Store
    grain : {'session', 'block'}
        State for each session, as in :func:`kvtier.simulate.revision3.replay_edges`, kept in the record of its first block; or for each
        block, as in :func:`kvtier.simulate.revision3.replay`.

    Raises
    ------
    ValueError
        If the policy is another one.
    """
    sessions, first, capacity = len(turns.context_blocks), turns.first_block.tolist(), store.tiers[Tier.HBM].capacity

    def of_session(edge: int) -> bytes:
        return block_identity(PREFIX if edge == sessions else edge, 0)

    def of_block(block: int) -> bytes:
        if block < first[0]:
            return block_identity(PREFIX, block)
        owner = bisect_right(first, block) - 1
        return block_identity(owner, block - first[owner])

    identity = of_block if grain == "block" else of_session
    if policy.name == "lru":
        inner = Lru(capacity, Counts(store, identity))
    elif policy.name == "lfu":
        inner = Lfu(capacity, Counts(store, identity), policy.persistent)
    elif policy.name == "ema":
        inner = Ema(capacity, Scores(store, identity), policy.alpha, policy.persistent)
    else:
        raise ValueError(f"policy {policy.name!r}: expected one of lru, lfu, ema")
    return ByBlock(inner, turns) if grain == "block" else inner


class Driven(NamedTuple):
    """What :func:`replay` did, in the simulator's terms: HBM as in Revision 3, then the tiers below."""

    residency: Residency
    below: TierCounts


class Below:
    """The tiers below HBM: least recently demoted first, inclusive, as in :mod:`kvtier.simulate.lower_tiers`.

    Which block is the oldest is a tier's own matter (mechanism state): it is not kept in the records and does not survive a restart.

    Parameters
    ----------
    store : Store
        Its lower tiers must be empty.

    Attributes
    ----------
    demoted, written : dict
        Of each tier, blocks passed down to it, and those of them that it did not have, since :meth:`want` was called.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._order: dict[Tier, OrderedDict[bytes, None]] = {tier: OrderedDict() for tier in LOWER}
        self.want([])

    def want(self, blocks: list[bytes]) -> list[Tier | None]:
        """Look up what a turn misses, before anything moves: from where each block is fetched, None if it is computed."""
        found = [self._store.lookup(block) for block in blocks]
        self._wanted = {block: tier for block, tier in zip(blocks, found, strict=True) if tier is not None}
        self._saved: dict[bytes, bytes] = {}
        self.demoted, self.written = dict.fromkeys(LOWER, 0), dict.fromkeys(LOWER, 0)
        return found

    def admit(self, block: bytes) -> None:
        """Bring a block into HBM, which has room for it."""
        if block in self._wanted and block not in self._saved:
            self._store.promote(block)
        else:
            self._store.put(block, self._payload(block), Tier.HBM, self._wanted.get(block))

    def take_in(self, blocks: list[bytes], *, from_hbm: bool) -> None:
        """Demote blocks together, the one that counts as oldest first; streamed blocks are not in HBM.

        What each tier is to hold is settled first, from the top down. Then blocks move, from the bottom up, so that there is room.
        """
        store, order = self._store, self._order
        streamed = {} if from_hbm else {block: self._payload(block) for block in blocks if block not in order[Tier.CXL]}
        batches, passed = [], blocks
        for tier in LOWER:
            self.demoted[tier] += len(passed)
            self.written[tier] += sum(block not in order[tier] for block in passed)
            for block in passed:
                order[tier][block] = None
                order[tier].move_to_end(block)
            batches.append((tier, passed))
            passed = [order[tier].popitem(last=False)[0] for _ in range(len(order[tier]) - store.tiers[tier].capacity)]

        leaves_hbm = set(blocks) if from_hbm else set()
        for block in passed:
            for tier in self._to_release(block, leaves_hbm):
                # HBM's copy may yet be demoted to a tier that keeps the block.
                if tier != Tier.HBM or block not in order[Tier.CXL]:
                    self._save(block, tier)
                    store.evict(block, tier)
        for tier, batch in reversed(batches):
            for block in batch:
                if block not in order[tier]:
                    continue
                if block in streamed:
                    store.put(block, streamed[block], tier, self._wanted.get(block))
                for source in self._to_release(block, leaves_hbm):
                    if source < tier:
                        self._save(block, source)
                        store.demote(block, tier, source)

    def _to_release(self, block: bytes, leaves_hbm: Container[bytes]) -> list[Tier]:
        """Copies of a block that are to go, the slowest first."""
        copies = reversed(self._store.copies(block))
        return [tier for tier in copies if (block in leaves_hbm if tier == Tier.HBM else block not in self._order[tier])]

    def _save(self, block: bytes, tier: Tier) -> None:
        """Keep a payload that the turn is to fetch from a copy that goes before HBM has room."""
        if self._wanted.get(block) == tier and block not in self._saved:
            self._saved[block] = bytes(self._store.read(block))

    def _payload(self, block: bytes) -> bytes:
        if block in self._saved:
            return self._saved[block]
        return bytes(self._store.read(block)) if block in self._wanted else made(block, self._store.payload_bytes)


def replay(
    turns: Turns,
    policy: eviction.Eviction | ByBlock,
    store: Store,
    on_turn: Callable[[int, Store], None] | None = None,
) -> Driven:
    """Replay a workload with what a turn reads pinned, as :func:`kvtier.simulate.revision3.replay_edges` does, moving real blocks.

    Parameters
    ----------
    turns : Turns
    policy : Eviction or ByBlock
        A new one, of edges as in :func:`kvtier.simulate.revision3.replay_edges` (any of :data:`kvtier.simulate.eviction.NAMES`, which
        keep their state to themselves), or from :func:`policy_in_records`.
    store : Store
        Without blocks.
    on_turn : callable, optional
        Called with (turn, store) when a turn has been served.

    Returns
    -------
    Driven
        What moved is in the store's counters.

    Raises
    ------
    Pinned
        If the policy names a victim that the turn reads.
    """
    prefix, hbm_blocks = len(turns.context_blocks), store.tiers[Tier.HBM].capacity
    room, shared = max(hbm_blocks - turns.prefix_blocks, 0), min(hbm_blocks, turns.prefix_blocks)
    by_block = isinstance(policy, ByBlock)
    below = Below(store)
    high = [0] * prefix
    used, evicted, missing, kept_blocks, hits = 0, [], [], [], []
    fetched, demoted, written = np.zeros((3, len(LOWER), len(turns.session)), dtype=np.int64)
    recomputed = np.zeros(len(turns.session), dtype=np.int64)

    def evict(turn: int, edge: int, most: int) -> int:
        blocks = min(most, high[edge])
        high[edge] -= blocks
        policy.lost(edge, high[edge])
        # A policy of blocks names them one by one: neighbours leave as one interval.
        stop = evicted.pop()[-1] if by_block and evicted and evicted[-1][:2] == (turn, edge) else high[edge] + blocks
        evicted.append((turn, edge, high[edge], stop))
        return blocks

    def named(owner: int, first: int, stop: int) -> list[bytes]:
        return [block_identity(owner, position) for position in range(first, stop)]

    contexts = (turns.read_blocks - turns.prefix_blocks).tolist()
    for turn, (session, context, grown) in enumerate(zip(turns.session.tolist(), contexts, turns.growth_blocks.tolist(), strict=True)):
        found, of_prefix, whole, earlier = high[session], shared if turn else 0, context + grown, len(evicted)
        kept = min(whole, room)
        hits.append(of_prefix + found)
        missing.append([(found, context)] if found < context else [])
        kept_blocks.append(kept)
        pinned = named(PREFIX, 0, of_prefix) + named(session, 0, found)
        for block in pinned:
            store.pin(block)
        sources = below.want(named(session, found, context))
        fetched[:, turn] = [sources.count(tier) for tier in LOWER]
        recomputed[turn] = sources.count(None) + (0 if turn else turns.prefix_blocks)

        policy.asked(prefix, turn, of_prefix)
        policy.asked(session, turn, found)
        while used - found + kept > room:
            edge = policy.victim({prefix, session})
            used -= evict(turn, edge, 1 if by_block else used - found + kept - room)
        used += kept - found
        high[session] = kept
        policy.read(prefix, turn, shared)
        policy.read(session, turn, kept)
        for edge in policy.demotes(turn):
            if edge not in (prefix, session):
                used -= evict(turn, edge, high[edge])

        for _, owner, first, stop in evicted[earlier:]:
            below.take_in(named(owner, first, stop)[::-1], from_hbm=True)
        if kept < whole:
            below.take_in(named(session, kept, whole)[::-1], from_hbm=False)
        for block in named(PREFIX, of_prefix, shared) + named(session, found, kept):
            below.admit(block)
        for block in pinned:
            store.unpin(block)
        demoted[:, turn], written[:, turn] = ([counts[tier] for tier in LOWER] for counts in (below.demoted, below.written))
        if on_turn:
            on_turn(turn, store)
    counts = np.array(hits, dtype=np.int64)
    residency = Residency(
        counts, counts, revision3.over_budget_blocks(turns, hbm_blocks), missing, evicted, np.array(kept_blocks, dtype=np.int64)
    )
    return Driven(residency, TierCounts(fetched, recomputed, demoted, written))


def replay_requests(turns: Turns, policy: Policy, store: Store) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Replay a workload request by request, as :func:`kvtier.simulate.requests.replay` does, moving real blocks in and out of HBM.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        One of :data:`kvtier.simulate.requests.CACHES`; LFU and EMA keep their state in the records.
    store : Store
        Without blocks; its lower tiers are not used.

    Returns
    -------
    hits : ndarray of int64, shape (turns,)
        Blocks read that were resident when their turn came to them.
    victims : list of (turn, block)
        In order.
    """
    asked = turns.requests
    cache = requests.cache(policy, store.tiers[Tier.HBM].capacity, asked)
    kinds = {"lfu": Counts, "ema": Scores}
    records = kinds.get(policy.name, Counts)(store, lambda block: identity_of(0, block))
    if policy.name in kinds:
        cache.state = records
    hits, victims = np.zeros(len(turns.session), dtype=np.int64), []
    asked_by = np.repeat(np.arange(len(hits)), turns.read_blocks + turns.growth_blocks)
    for turn, block in zip(asked_by.tolist(), asked.tolist(), strict=True):
        records.now = turn
        hit, victim = cache.request(block, turn)
        hits[turn] += hit
        if victim is not None:
            store.evict(identity_of(0, victim))
            victims.append((turn, victim))
        if not hit and cache.capacity:
            identity = identity_of(0, block)
            store.put(identity, made(identity, store.payload_bytes))
    return hits, victims
