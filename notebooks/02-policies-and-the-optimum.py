# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Policies and the optimum
#
# A cache that is full must drop something. A policy says what. This notebook replays a small
# workload under several policies, beside the *optimum*: the most hits that any policy could have
# had under the same rules. The distance to it is called regret.
#
# All results here are simulated, on a toy: they show how things work, and say nothing about any
# service.

# %%
from kvtier.publish.notebooks import show

show.caveat()

# %% [markdown]
# ## A workload
#
# Sessions return again and again, some often and most rarely (a Zipf law). Each turn reads a prefix
# that all share and then the whole context of its session, block by block, and the context grows by
# what is generated.

# %%
from kvtier.workload.synthetic import Shape, generate

SHAPE = Shape(
    sessions=10, turns=80, prefix_tokens=256, context_tokens=(512, 4096), decode_tokens=(16, 160)
)
WARM_UP = 20

turns = generate("zipf", seed=3, shape=SHAPE)
reads = int(turns.read_blocks[WARM_UP:].sum())
everything = turns.prefix_blocks + int(turns.final_blocks.sum())
show.fields(
    {
        "sessions, turn by turn": " ".join(map(str, turns.session.tolist())),
        "different blocks": f"{everything:,}",
        "blocks read": f"{reads:,}, after a warm-up of {WARM_UP} turns",
    }
)

# %% [markdown]
# ## One replay
#
# Revision 3 of the simulator keeps what a turn reads in HBM while the turn is served; victims are
# blocks of other sessions, deepest first. A hit is a block that was resident as its turn began.

# %%
from kvtier.simulate import revision3
from kvtier.simulate.policies import LFU, LRU, MIN, ema

HBM_BLOCKS = everything // 2


def hits_of(policy, capacity):
    """Blocks that hit in the counted turns."""
    return int(revision3.replay(turns, policy, capacity, WARM_UP).hits[WARM_UP:].sum())


rows = [
    (policy.title, hits, reads, f"{100 * hits / reads:.1f}%")
    for policy in (LRU, LFU, ema(0.15), MIN)
    for hits in [hits_of(policy, HBM_BLOCKS)]
]
show.table(["policy", "hits", "blocks read", "hit rate"], rows, "Simulated (provisional), a toy")

# %% [markdown]
# `MIN` is the optimum. It knows the future: its victim is the session whose next turn is farthest
# away (Belady's rule). Under these rules no policy can have more hits; the proof stands in
# `kvtier.simulate.pinned_optimum`, and a test compares it with exhaustive search.
#
# ## Where they part
#
# Until HBM is full, all policies do the same. The first turn in which LRU and the optimum evict
# different sessions shows why one is worse.


# %%
def evicted_in(policy, turn):
    """Sessions that lose blocks in a turn, with how many turns pass until each is read again."""
    gone = [
        session
        for when, session, _, _ in revision3.replay(turns, policy, HBM_BLOCKS, WARM_UP).evicted
        if when == turn
    ]
    later = turns.session[turn + 1 :].tolist()
    return {session: later.index(session) + 1 if session in later else None for session in gone}


part = next(
    turn
    for turn in range(WARM_UP, SHAPE.turns)
    if set(evicted_in(LRU, turn)) != set(evicted_in(MIN, turn))
)
rows = [
    (policy.title, f"session {session}", "never" if wait is None else f"{wait} turns later")
    for policy in (LRU, MIN)
    for session, wait in evicted_in(policy, part).items()
]
show.table(
    ["policy", "evicts from", "which is read again"],
    rows,
    f"Turn {part}, which reads session {turns.session[part]}",
)

# %% [markdown]
# ## Look into HBM
#
# Move the turn and choose a policy. Each bar is one session: the outline is its whole context, the
# filled part is what is resident after the turn. The session that the turn reads is always
# resident; what differs is who has paid for it. On the right is the optimum, at the same turn.

# %%
import polars as pl

from kvtier.publish import series
from kvtier.publish.notebooks import figures


def resident_blocks(residency):
    """Resident blocks of each session after each turn: what was kept, less what was evicted since."""
    now, found, position = [0] * SHAPE.sessions, [], 0
    for turn, session in enumerate(turns.session.tolist()):
        while position < len(residency.evicted) and residency.evicted[position][0] == turn:
            _, other, first, _ = residency.evicted[position]
            now[other] = first
            position += 1
        now[session] = int(residency.kept[turn])
        found.append(list(now))
    return found


# %%
contexts, now = [], turns.context_blocks.tolist()
for session, grown in zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True):
    now[session] += grown
    contexts.append(list(now))

inside = pl.DataFrame(
    [
        {
            "policy": figures.OPTIMUM if policy is MIN else series.title(policy.slug),
            "turn": turn,
            "session": session,
            "resident_blocks": blocks,
            "context_blocks": contexts[turn][session],
            "read": int(turns.session[turn]) == session,
        }
        for policy in (LRU, LFU, ema(0.15), MIN)
        for turn, of_turn in enumerate(
            resident_blocks(revision3.replay(turns, policy, HBM_BLOCKS, WARM_UP))
        )
        for session, blocks in enumerate(of_turn)
        if turn >= WARM_UP - 1
    ]
)
used = (
    turns.prefix_blocks
    + inside.group_by("policy", "turn")
    .agg(pl.col("resident_blocks").sum())["resident_blocks"]
    .max()
)
assert used <= HBM_BLOCKS
print(f"HBM holds {HBM_BLOCKS:,} blocks; the most that any policy uses, prefix included: {used:,}")

# %%
figures.inside_hbm(
    inside, turn=part, capacity_blocks=HBM_BLOCKS, source="Revision 3, replayed here"
)

# %% [markdown]
# The badge and the caveat are not typed here. Each number in a figure is made with its class of
# evidence, and the project's theme draws both from that; a figure without numbers, or without a
# limit, is refused.
#
# ## Every capacity at once
#
# Now the same workload at many capacities and for several α of EMA. Hits are integers, and none may
# exceed those of the optimum.

# %%
ALPHAS = (0.5, 0.15, 0.05, 0.01)
CAPACITIES = [everything * share // 100 for share in range(15, 101, 5)]

curves = pl.DataFrame(
    [
        {
            "policy": "EMA" if policy.alpha else policy.title,
            "alpha": policy.alpha,
            "capacity": float(capacity),
            "hits": hits_of(policy, capacity),
            "reads": reads,
            "optimum_hits": best,
        }
        for capacity in CAPACITIES
        for best in [hits_of(MIN, capacity)]
        for policy in (LRU, LFU, *map(ema, ALPHAS))
    ]
)
assert (curves["hits"] <= curves["optimum_hits"]).all()
print(f"{len(curves)} replays; none has more hits than the optimum of its capacity")

# %% [markdown]
# Choose a capacity and an α. Left: hit rate against capacity, the optimum dashed. Right: how many
# points each policy is short of it at the chosen capacity. A policy can be good at one capacity and
# poor at another; none can go below zero.

# %%
figures.policies_by_capacity(
    curves,
    capacity=float(CAPACITIES[7]),
    unit="blocks",
    source="Revision 3, replayed here",
    caption=f"One seed, no interval: a toy of {SHAPE.sessions} sessions. "
    "Regret: hit rate of the optimum less that of the policy.",
)

# %% [markdown]
# ## What the study says, with intervals
#
# A toy of one seed proves nothing. The study runs the published workload on many seeds; these are
# its values at each budget, out of the ledger. The regret there is a share of the way from LRU to
# the optimum: zero is the optimum, one is LRU.

# %%
from kvtier.publish.ledger import Ledger
from kvtier.queries.checkout import Checkout

checkout = Checkout.around(".")
ledger = Ledger(checkout.numbers.path, checkout.numbers.by_name)
STUDY = "sim.rev3.e1"

rows = [
    (
        f"{gib} GiB",
        ledger[f"{STUDY}.{gib}.lru.hit"].plus_minus,
        ledger[f"{STUDY}.{gib}.ema015.hit"].plus_minus,
        ledger[f"{STUDY}.{gib}.min.hit"].plus_minus,
        ledger[f"{STUDY}.{gib}.ema015.regret"].plus_minus
        if f"{STUDY}.{gib}.ema015.regret" in ledger
        else "not defined",
    )
    for gib in ledger.swept(f"{STUDY}.<gib>.lru.hit", "gib")
]
label = ledger[f"{STUDY}.32.lru.hit"].label
show.table(
    ["HBM", "LRU", "EMA 0.15", "optimum", "regret of EMA 0.15"],
    rows,
    f"{label}; block hit rates of e1 in Revision 3; ledger: {checkout.numbers.said}",
)

# %% [markdown]
# ## Exercises
#
# - At the largest capacity everything fits. Predict the regret of each policy there, and then at the
#   smallest.
# - Give `SHAPE` the argument `loop_sessions=10` and replace `"zipf"` by `"loop"`. Predict what LRU
#   hits at half the capacity, and what the optimum does that no policy here can.
# - Find an α for which EMA behaves like LRU here, victim by victim. Which end of the range is it
#   at, and why?
# - `kvtier.simulate.pinned_optimum.turn_hits` takes a `window`. With a window of zero it knows no
#   future. Which of the policies is it then?
