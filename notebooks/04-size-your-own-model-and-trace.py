# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Size your own model and trace
#
# Three questions before buying memory: how many bytes is the KV of a request, how often would a
# cache of some size have it, and is fetching it faster than computing it again? Here each is asked
# of one model and one trace. Put your own in their place; the cells stay the same.
#
# Sizes follow from a model's shape (*Analytical model*). Hit rates come from replaying a trace that
# is made up below (*Simulated (provisional)*), and rates of compute and links are assumed where
# they stand. Nothing is measured.

# %%
from kvtier.publish.notebooks import show

show.caveat()

# %% [markdown]
# ## The model
#
# The catalogue knows public models by name. A `config.json` of your own is read by
# `kvtier.analytic.model_configs.load`, which gives the same kind of object.

# %%
from kvtier.analytic import quantities
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint, kinds
from kvtier.analytic.kv_formats import FORMATS

model = Catalogue().find("llama-3.1-8b")
footprint = Footprint(model, FORMATS["bf16"])
BLOCK_TOKENS, CONTEXT_TOKENS = 16, 32 * 1024

show.fields(
    {
        "model": f"{model.model}, {kinds(model)}",
        "source": f"{model.source} ({model.label})",
        "KV of a token": quantities.said(footprint.bytes_per_token),
        "KV of a block": quantities.said(footprint.block_bytes(BLOCK_TOKENS)),
        f"KV of {CONTEXT_TOKENS:,} tokens": quantities.said(
            footprint.sequence_bytes(CONTEXT_TOKENS)
        ),
    }
)

# %% [markdown]
# By hand it is keys and values, for each layer, KV head and element. The ledger has the same
# integer, from its own rule.

# %%
from kvtier.publish.ledger import Ledger
from kvtier.queries.checkout import Checkout

(group,) = model.cached
by_hand = 2 * group.layers * group.kv_heads * group.head_dim * FORMATS["bf16"].vector_bytes(1)

checkout = Checkout.around(".")
ledger = Ledger(checkout.numbers.path, checkout.numbers.by_name)
recorded = ledger["analytic.size.llama3_1_8b.bytes_per_token"]
assert by_hand == footprint.bytes_per_token == recorded.value
show.fields(
    {
        "layers, heads, elements": f"{group.layers} · {group.kv_heads} · {group.head_dim}",
        "by hand": f"{by_hand:,} B",
        "in the ledger": f"{recorded.text} ({recorded.label})",
    }
)

# %% [markdown]
# ## What a device leaves for it
#
# Weights come first. What they leave is the room for KV: a capacity, not a number of users served.

# %%
from kvtier.analytic import devices
from kvtier.commands import models

device = devices.device("H100")
weight_bytes, weights_from = models.weights(model, None)
fitted = devices.fit(
    footprint, device.memory_bytes, weight_bytes, CONTEXT_TOKENS, block_tokens=BLOCK_TOKENS
)
show.fields(
    {
        "device": f"{device.name}: {device.source}",
        "weights": f"{quantities.in_unit(weight_bytes, 'GiB')} ({weights_from})",
        "left for KV": quantities.in_unit(fitted.kv_bytes, "GiB"),
        "blocks": f"{fitted.blocks:,}",
        f"sequences of {CONTEXT_TOKENS:,} tokens": fitted.sequences,
    }
)

# %% [markdown]
# ## A trace
#
# A trace needs no text: arrival, lengths, and identities of the prompt's blocks, equal for equal
# tokens *from the start of the prompt*. This one is made up: a few applications, each with a system
# prompt of its own, and sessions that come back with all they have said so far.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np

APPLICATIONS, SESSIONS, REQUESTS = 3, 120, 900
SYSTEM_BLOCKS, SEED = 60, 7

rng = np.random.default_rng(SEED)
popularity = 1 / np.sqrt(np.arange(1, SESSIONS + 1))
tokens = [SYSTEM_BLOCKS * BLOCK_TOKENS] * SESSIONS
clock_s, lines = 0.0, [{"trace": "kvtier", "version": 1, "block_tokens": BLOCK_TOKENS}]
for session in rng.choice(SESSIONS, size=REQUESTS, p=popularity / popularity.sum()).tolist():
    clock_s += float(rng.exponential(1.0))
    tokens[session] += int(rng.integers(100, 1500))
    own = tokens[session] // BLOCK_TOKENS - SYSTEM_BLOCKS
    answer = int(rng.integers(50, 400))
    lines.append(
        {
            "time_s": round(clock_s, 3),
            "input_tokens": tokens[session],
            "output_tokens": answer,
            "session": session,
            # Runs of [first identity, length]: the application's prompt, then the session's own.
            "runs": [
                [session % APPLICATIONS * SYSTEM_BLOCKS, SYSTEM_BLOCKS],
                [1_000_000 * (session + 1), own],
            ],
        }
    )
    tokens[session] += answer

folder = tempfile.TemporaryDirectory()
file = Path(folder.name, "requests.jsonl")
file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
print(json.dumps(lines[0]))
print(json.dumps(lines[1]))

# %%
from kvtier.workload import traces

trace = traces.load(file)
all_bytes = trace.unique_blocks * footprint.block_bytes(BLOCK_TOKENS)
show.fields(
    {
        "requests": f"{trace.requests:,} over {trace.time_us[-1] / 1e6:,.0f} s",
        "blocks read": f"{trace.block_accesses:,}, of them {trace.unique_blocks:,} different",
        "KV of all different blocks": quantities.in_unit(all_bytes, "GiB"),
    }
)

# %% [markdown]
# A fault in a trace is told in one line. Here the third request claims to come before the second.

# %%
from kvtier.errors import InputError

broken = Path(folder.name, "broken.jsonl")
early = {**lines[3], "time_s": 0.0}
broken.write_text(
    "".join(json.dumps(line) + "\n" for line in [*lines[:3], early]), encoding="utf-8"
)
try:
    traces.load(broken)
except InputError as error:
    print(str(error).replace(folder.name, "..."))

folder.cleanup()

# %% [markdown]
# ## How often a cache would have it
#
# Replay the trace at several sizes of HBM, under several policies, with the optimum of each size.
# The first half of the requests warms the cache and is not counted.

# %%
from kvtier.simulate import eviction, replays
from kvtier.units import GIB

POLICIES = ("lru", "lfu", "ema005", "s3fifo")
HBM_GIB = (4, 8, 12, 16, 24, 32, 48)

block_bytes = footprint.block_bytes(trace.block_tokens)
setting = replays.Setting(block_bytes=block_bytes, counted_from=trace.requests // 2)
capacities = [gib * GIB // block_bytes for gib in HBM_GIB]
rows = replays.sweep(trace, [eviction.NAMES[slug] for slug in POLICIES], capacities, setting)

reachable, read = replays.ceiling(trace, setting.counted_from)
print(f"{len(rows)} replays; a cache without limit would hit {reachable:,} of {read:,} blocks")
assert all(row["hits"] <= row["optimum_hits"] <= reachable for row in rows)

# %%
import polars as pl

from kvtier.publish import replay_report, series
from kvtier.publish.notebooks import figures

names = {slug: series.title(slug) for slug in POLICIES}
curves = pl.DataFrame(
    [
        {
            "policy": names[row["policy"]],
            "alpha": None,
            "capacity": float(HBM_GIB[capacities.index(row["capacity_blocks"])]),
            "hits": row["hits"],
            "reads": row["blocks"],
            "optimum_hits": row["optimum_hits"],
        }
        for row in rows
    ],
    schema_overrides={"alpha": pl.Float64},
)
figures.policies_by_capacity(
    curves,
    capacity=16.0,
    unit="GiB",
    source="a trace made up here",
    caption="One replay, no interval. Regret: hit rate of the optimum less that of the policy.",
    colours={names[slug]: colour for slug, colour in replay_report.palette(POLICIES).items()},
)

# %% [markdown]
# Where the curves are flat, more memory buys nothing; where the dashed line is far above the
# others, a better policy could. Both depend on this trace, which was made up.
#
# ## What a tier below would save
#
# A block that HBM has lost can be fetched from a tier below instead of computed again. Bandwidth,
# setup and prefill rate are assumptions here: replace them by what you have measured.

# %%
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.queueing import Link
from kvtier.simulate.serving import AtRate, LinkedTier

ASSUMED_GBPS, ASSUMED_SETUP_US, ASSUMED_PREFILL_TPS = 64.0, 0.3, 8000.0
TIER_GIB, HBM_WITH_TIER_GIB = 64, 8

prefill = AtRate(ASSUMED_PREFILL_TPS)
tier = LinkedTier(Tier("CXL", TIER_GIB * GIB // block_bytes), Link(ASSUMED_GBPS, ASSUMED_SETUP_US))
found = []
for tiers in ((), (tier,)):
    with_tiers = replays.Setting(block_bytes, setting.counted_from, tiers, prefill=prefill)
    (row,) = replays.sweep(
        trace, [eviction.NAMES["lru"]], [HBM_WITH_TIER_GIB * GIB // block_bytes], with_tiers
    )
    found.append(
        (
            "HBM and CXL" if tiers else "HBM alone",
            f"{row['hit_percent']:.1f}%",
            f"{row['tiers'][0]['hit_percent']:.1f}%" if tiers else "",
            f"{100 * row['recomputed_blocks'] / row['blocks']:.1f}%",
            f"{row['stall_ms_mean']:,.0f} ms",
        )
    )
title = (
    f"Simulated (provisional); LRU, HBM {HBM_WITH_TIER_GIB} GiB, CXL {TIER_GIB} GiB at "
    f"{ASSUMED_GBPS:g} GB/s and prefill at {ASSUMED_PREFILL_TPS:,.0f} tokens/s, all assumed"
)
show.table(["", "hit in HBM", "in CXL", "computed again", "mean stall"], found, title)

# %% [markdown]
# The mean stall includes tokens that are new in each request, which no tier can have.
#
# ## Load it, or compute it again
#
# Loading takes as long as the link needs for the bytes; computing takes the FLOP of a prefill at
# what the device reaches of its peak. Between them is one bandwidth at which both take as long.

# %%
from fractions import Fraction

from kvtier.analytic import breakeven

ASSUMED_PEAK, ASSUMED_MFU = Fraction(989 * 10**12), Fraction(2, 5)
CONTEXTS = (1024, 8192, 32768, 131072)


def both_ways(context):
    """The KV of a prompt, loaded and computed again."""
    kv_bytes = footprint.sequence_bytes(context)
    return breakeven.from_compute(model, kv_bytes, context, ASSUMED_PEAK, ASSUMED_MFU)


rows = [
    (
        f"{context:,}",
        quantities.in_unit(both.kv_bytes, "GiB"),
        f"{float(both.recompute_s) * 1e3:,.0f} ms",
        f"{float(both.load_s(Fraction(ASSUMED_GBPS))) * 1e3:,.0f} ms",
        f"{float(both.bandwidth_gbps):,.1f} GB/s",
    )
    for context in CONTEXTS
    for both in [both_ways(context)]
]
title = (
    f"Analytical model; {float(ASSUMED_PEAK) / 1e12:g} TFLOP/s at MFU {float(ASSUMED_MFU):g} "
    f"and a link of {ASSUMED_GBPS:g} GB/s, all assumed; no queueing"
)
heads = ["tokens", "KV", "compute again", "load on the link", "loading wins above"]
show.table(heads, rows, title)

# %% [markdown]
# Attention grows with the square of the context and its KV does not, so the longest prompts are the
# ones most worth keeping. Ask for the break-even of the shortest on a link that is too slow for it,
# and the answer is a refusal.

# %%
SLOW_GBPS = Fraction(2)
try:
    both_ways(CONTEXTS[0]).within(SLOW_GBPS)
except InputError as error:
    print(error)

# %% [markdown]
# ## Exercises
#
# - Put your model in: `Catalogue().find(...)`, or `model_configs.load("config.json")`. Predict
#   which of the tables below it change, and which do not.
# - Give all sessions one application. Predict whether the optimum rises, and at which sizes of HBM.
# - Make the popularity of sessions uniform. Which policy gains on LRU, and which loses?
# - Halve the assumed prefill rate. Predict by how much the stall with the tier changes, and then
#   that of HBM alone. Why are they not the same?
# - The same answers without a notebook: `kvtier size`, `kvtier simulate`, `kvtier breakeven`.
