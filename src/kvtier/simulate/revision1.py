"""Revision 1 of the tiering simulator, retained for audit with its defect. Do not edit: a test pins this file's sha256.

The defect is in ``Cache.pick_victim``: a queue entry that is popped goes back only if the block's score now exceeds the entry's. That is
right for counts, which rise, so that an old entry is too low. Decaying scores fall, an old entry is too high, and the popped block is
returned although another may have decayed further. SPEC §5 defines the revision; :mod:`kvtier.audit.victims` shows the defect.

Self-contained on purpose: nothing that this file imports can change it.
"""

import heapq
from collections import OrderedDict


class Cache:
    """HBM of Revision 1 under ``lru``, ``lfu`` or ``ema``."""

    def __init__(self, policy, alpha, capacity_blocks):
        """Empty cache of `capacity_blocks` blocks; `alpha` is used by ``ema`` only."""
        self.policy, self.alpha, self.capacity_blocks = policy, alpha, capacity_blocks
        self.resident = OrderedDict()
        self.state = {}
        self.queue = []

    def __contains__(self, block):
        """Whether the block is resident."""
        return block in self.resident

    def score(self, block, turn):
        """Score of a resident block at `turn`: its count, or its decayed frequency."""
        value, touched = self.state[block]
        return value if self.policy == "lfu" else value * (1 - self.alpha) ** (turn - touched)

    def touch(self, block, turn):
        """Renew a block's score and recency; a block that was not resident becomes so."""
        self.resident[block] = None
        self.resident.move_to_end(block)
        if self.policy == "lru":
            return
        previous = self.score(block, turn) if block in self.state else 0.0
        value = previous + 1.0 if self.policy == "lfu" else self.alpha + (1 - self.alpha) * previous
        self.state[block] = (value, turn)
        heapq.heappush(self.queue, (value, block))

    def pick_victim(self, turn):
        """Block to evict: the defective search."""
        if self.policy == "lru":
            return next(iter(self.resident))
        while True:
            entry, block = heapq.heappop(self.queue)
            if block not in self.resident:
                continue
            score = self.score(block, turn)
            if score > entry + 1e-12:
                heapq.heappush(self.queue, (score, block))
                continue
            return block

    def admit(self, block, turn):
        """Touch the block, then evict while over capacity; return the victims in order."""
        self.touch(block, turn)
        victims = []
        while len(self.resident) > self.capacity_blocks:
            victim = self.pick_victim(turn)
            del self.resident[victim]
            self.state.pop(victim, None)
            victims.append(victim)
        return victims


def simulate(prefix_blocks, first_block, context_blocks, sessions, policy, alpha, hbm_blocks, cxl_blocks, on_evict=None):
    """Replay turns of sessions whose contexts do not grow; return (hits, fetched, recomputed) of each turn.

    Session s owns blocks ``first_block[s]`` to ``first_block[s] + context_blocks[s] - 1``; blocks below `prefix_blocks` are shared.
    HBM runs the policy, CXL is LRU and keeps its copy of a fetched block. `on_evict(turn, victim)` is called at each eviction from HBM.
    """
    hbm, cxl = Cache(policy, alpha, hbm_blocks), OrderedDict()
    counts = []
    for turn, session in enumerate(sessions):
        own = range(first_block[session], first_block[session] + context_blocks[session])
        hits, fetch, recompute = 0, [], []
        for block in (*range(prefix_blocks), *own):
            if block in hbm:
                hbm.touch(block, turn)
                hits += 1
            elif block in cxl:
                fetch.append(block)
            else:
                recompute.append(block)
        for block in (*fetch, *recompute):
            for victim in hbm.admit(block, turn):
                cxl[victim] = None
                cxl.move_to_end(victim)
                if len(cxl) > cxl_blocks:
                    cxl.popitem(last=False)
                if on_evict:
                    on_evict(turn, victim)
        counts.append((hits, len(fetch), len(recompute)))
    return counts
