# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Audit the audits
#
# A check that has never said no may not be able to. Here defects are planted, one after the other,
# and the audit that should see each is asked. Most are real: the heap of Revision 1, the
# self-eviction of Revision 2 and the bandwidth above the bus all happened in the work that this
# project reproduces. The policy that cheats is invented.
#
# Whatever a planted defect gives is no result. It is shown so that the check can be seen at work.

# %%
from kvtier.publish.ledger import Ledger
from kvtier.publish.notebooks import show
from kvtier.queries.checkout import Checkout

checkout = Checkout.around(".")
ledger = Ledger(checkout.numbers.path, checkout.numbers.by_name)
show.caveat()

# %% [markdown]
# What an audit finds is a `Finding`: how many cases it looked at, and how many broke the rule.
# `require` is what stops a build. This helper shows what it says.

# %%
from kvtier.audit.findings import AuditFailed, Finding, require


def verdict(*findings):
    """What the build would do with these findings."""
    try:
        require(findings)
    except AuditFailed as error:
        return f"the build stops: {error}"
    return f"the build goes on: {sum(finding.checked for finding in findings):,} cases looked at"


print(verdict(Finding("example", "all is well", checked=10, failed=0)))
print(verdict(Finding("example", "one of ten is wrong", checked=10, failed=1)))
print(verdict(Finding("example", "nothing was looked at", checked=0, failed=0)))

# %% [markdown]
# The last line matters: an audit that looks at nothing must not pass.
#
# ## The defect of Revision 1
#
# Revision 1 of the simulator kept scores in a heap. A score that decays falls with time, so the
# entry in the heap is too high; but the search put an entry back only where the score had *risen*
# above it. That is right for counts and wrong for decay. Three blocks are enough to see it.

# %%
from kvtier.simulate import revision1, revision2
from kvtier.simulate.policies import ema

ALPHA = 0.5
READS = [(2, 0), (1, 8), (3, 9)]

old = revision1.Cache("ema", ALPHA, 2)
new = revision2.Hbm(ema(ALPHA), 2)
for block, turn in READS:
    entries = sorted(old.queue)
    gone = {"Revision 1": old.admit(block, turn), "Revision 2": new.admit(block, turn)}

rows = [
    (other, f"{entry:.4f}", f"{entry * (1 - ALPHA) ** (turn - dict(READS)[other]):.6f}")
    for entry, other in entries
]
show.table(
    ["block", "entry in the heap", "score by now"],
    rows,
    f"Turn {turn}, as block {block} comes in. "
    + "; ".join(f"{revision} evicts block {victim}" for revision, (victim,) in gone.items()),
)

# %% [markdown]
# Both entries are equal and the tie goes to the lower number, while the scores of that turn are far
# apart: block two has decayed the furthest, and Revision 1 evicts block one.
#
# ## Ask every victim
#
# The audit shares no code with either heap. It keeps scores of its own from the touches alone, and
# at each eviction looks at every resident block. The workload is that of the build's own audit,
# whose settings stand beside the number in the ledger.

# %%
from kvtier.audit import victims
from kvtier.workload.synthetic import Shape, generate

recorded = ledger["audit.victims.rev1.ema015.wrong"]
settings = recorded.params
workload = generate(
    "zipf", settings["seed"], Shape(settings["sessions"], settings["turns"]), growing=False
)
found, _ = victims.audit(1, ema(0.15), workload, settings["hbm_gib"])
assert found.failed == int(recorded.value)
show.table(
    ["", "evictions", "victims that were not of the smallest score"],
    [(f"{found.subject}, here", found.checked, found.failed), ("in the ledger", "", recorded.text)],
    str(recorded.label),
)

# %% [markdown]
# Nearly every victim is wrong. Revision 1 is retained on purpose, so its finding does not have to
# hold. To see the build stop, hand the same finding in as one that must.

# %%
from dataclasses import replace

print("as retained:      ", verdict(found))
print("if it had to hold:", verdict(replace(found, must_hold=True)))

# %% [markdown]
# And with the corrected search in its place:

# %%
corrected, relative = victims.audit(2, ema(0.15), workload, settings["hbm_gib"])
print(verdict(corrected, relative))

# %% [markdown]
# ## The constraint that Revision 2 breaks
#
# Revision 2 picks the right victim, but from too many. It may evict what it is reading: a sequence
# pushes out its own blocks while it comes in. The study asks for the opposite, *lossless
# residency*. A toy shows it: a prefix of one block, sessions of two, HBM of three.

# %%
import numpy as np

from kvtier.simulate.policies import LRU
from kvtier.workload.turns import Turns

toy = Turns(1, np.array([2, 2]), np.array([0, 1, 1]), np.array([16, 0, 0]))
trail = [[], [], []]
counts = revision2.simulate(toy, LRU, 3, 9, on_evict=lambda turn, block: trail[turn].append(block))
rows = [
    (turn, ", ".join(map(str, trail[turn])) or "none", int(own))
    for turn, own in enumerate(counts.evictions_from_read_set)
]
show.table(["turn", "victims", "of them, what the turn reads"], rows)

# %% [markdown]
# In the first turn its session generates a block, and the shared prefix, which the same turn reads,
# goes to make room. Counted over a workload, by the audit `lossless`:

# %%
from kvtier.audit import lossless
from kvtier.simulate import sweeps
from kvtier.simulate.sweeps import Run

SHAPE, COUNTED_FROM = Shape(sessions=60, turns=250), 125
runs = [Run("e1", policy, hbm_gib=8) for policy in (LRU, ema(0.01))]

for revision in (2, 3):
    table = sweeps.replay(runs, revision, SHAPE, COUNTED_FROM)
    print(f"Revision {revision}:", verdict(*lossless.audit(table, must_hold=True)))

# %% [markdown]
# Revision 3 pins what a turn reads, and passes. In the build the audit runs over every simulation;
# of Revision 2 a failure is known and shown, of Revision 3 it would stop the build.

# %%
rows = [
    (
        f"Revision {revision}",
        ledger[f"audit.lossless.rev{revision}.checked"].text,
        ledger[f"audit.lossless.rev{revision}.failed"].text,
    )
    for revision in (2, 3)
]
label = ledger["audit.lossless.rev2.failed"].label
show.table(["", "evictions", "from the read set"], rows, str(label))

# %% [markdown]
# ## A policy that cheats
#
# Could a policy break the constraint inside Revision 3, where the simulator hands it the pinned
# edges and trusts it? Here is one that ignores them: it evicts from the session that is being read,
# where that still has blocks.

# %%
from kvtier.audit import edge_runs
from kvtier.simulate import eviction, families
from kvtier.simulate.eviction import Named
from kvtier.simulate.families import EdgeRun


class EvictsItsOwn(eviction.Lru):
    """LRU that takes from the session in service first."""

    def asked(self, edge, turn, resident):
        """Note the edge; the session's comes last."""
        self.reading = edge
        super().asked(edge, turn, resident)

    def victim(self, pinned):
        """Take it, pinned or not."""
        return self.reading if self.blocks.get(self.reading) else super().victim(pinned)


honest = EdgeRun(eviction.NAMES["lru"], seed=1, hbm_gib=8)
cheat = EdgeRun(Named(EvictsItsOwn, "LRU that evicts its own", "own"), seed=1, hbm_gib=8)
turns = generate("zipf", 1, SHAPE)

found = {
    run.policy.title: edge_runs.audit(
        families.replay([run], SHAPE, COUNTED_FROM), lambda row: turns
    )
    for run in (honest, cheat)
}
show.table(
    ["policy", "audit", "looked at", "failed", "which says"],
    [
        (title, finding.audit, finding.checked, finding.failed, finding.note)
        for title, findings in found.items()
        for finding in findings
    ],
    "Simulated (provisional), a toy; of the second policy no result",
)

# %%
for title, findings in found.items():
    print(f"{title}: {verdict(*findings)}")

# %% [markdown]
# Two audits look at each run by edges: losslessness, and the optimal bound. The second needs no
# trust at all: whatever the simulator did, more hits than the optimum are impossible. Plant one hit
# too many in the honest table:

# %%
import polars as pl

table = families.replay([honest], SHAPE, COUNTED_FROM)
best = families.replay([EdgeRun(families.OPTIMUM, seed=1, hbm_gib=8)], SHAPE, COUNTED_FROM)
most = best["hits"].item()
for hits in (most, most + 1):
    planted = table.with_columns(hits=pl.lit(hits, dtype=pl.Int64))
    print(f"{hits:,} hits:", verdict(*edge_runs.audit(planted, lambda row: turns)))

# %% [markdown]
# ## A bandwidth above the bus
#
# The last defect is of a measurement. A batch of sequences with identical tokens shared one copy of
# KV in memory, while the size axis counted a copy for each. The slope came out too small, and the
# bandwidth inferred from it too large, by a factor of the batch. Nothing in the timings looked odd;
# only the memory bus said no. What the campaign noted:

# %%
recorded = ledger["measured.gb10.bugs.shared_prefix_kv_gbps"]
bus = ledger["measured.gb10.bus_gbps"]
show.table(
    ["", "label", "definition"],
    [(one.text, one.label, one.definition) for one in (recorded, bus)],
)

# %% [markdown]
# Planted on the retained grid of batches and contexts: step times as they would be if the sequences
# of a batch shared a copy, sizes as if they did not. The cost of KV is the one measured on that
# grid, which is not the grid of the run above; so the factor is another. What the fit as timed
# implies is of the class Analytical model; the planted line is Illustrative.

# %%
from kvtier.audit.physical_bound import AboveTheBus, Bandwidth, UnexpectedWeights
from kvtier.audit.physical_bound import physical_bound, resident_weights
from kvtier.measure import fit, retained
from kvtier.measure.platform import read_platform
from kvtier.units import bytes_to_gib

folder = checkout.root / "data/measured/gb10-2026-08-19"
platform = read_platform(folder / "platform.yaml")
per_token = platform.model.kv_bytes_per_token
steps = retained.read_decode_steps(folder / "decode_vllm_fa2.csv")

measured = fit.two_term(retained.kv_gib(steps, per_token), steps["step_ms"].to_list(), "as timed")
grid = steps.select("batch", "context_tokens").rows()
one_copy = [bytes_to_gib(context * per_token) for _, context in grid]
planted_ms = [measured.step_ms(gib) for gib in one_copy]
planted = fit.two_term(retained.kv_gib(steps, per_token), planted_ms, "one shared copy")

for line in (measured, planted):
    path = Bandwidth(line.source, "KV path", fit.kv_path_gbps(line).value)
    try:
        passed = physical_bound([path], platform.bus_gbps)
        print("passed: ", f"{passed[0].subject}, {passed[0].value:.1f} of {passed[0].bound:g} GB/s")
    except AboveTheBus as error:
        print("refused:", error)

# %% [markdown]
# The same campaign once loaded weights in another type than asked, in silence. The bound of that is
# the number of parameters: it fixes how many bytes the weights of a type can take.

# %%
resident = ledger["measured.gb10.bugs.fp32_resident_gib"]
try:
    resident_weights(
        resident.value * 2**30, platform.model.stated("parameters"), "float16", "the recorded run"
    )
    print("passed")
except UnexpectedWeights as error:
    print("refused:", error)

# %% [markdown]
# ## What the build's audits looked at
#
# Of each audit of the simulations: how many cases, and how many failed. A failure of Revision 1 or
# Revision 2 is a finding about that revision; one of Revision 3 would have stopped the build.

# %%
AUDITS = ("conservation", "compulsory", "optimum", "monotonicity", "lossless")
rows = [
    (
        audit,
        f"Revision {found['revision']}",
        ledger[f"audit.{audit}.rev{found['revision']}.checked"].text,
        ledger[f"audit.{audit}.rev{found['revision']}.failed"].text,
    )
    for audit in AUDITS
    for found in ledger.matches(f"audit.{audit}.rev<revision>.checked")
    if found["revision"].isdigit()
]
title = str(ledger["audit.optimum.rev3.checked"].label)
show.table(["audit", "of", "looked at", "failed"], rows, title)

# %% [markdown]
# ## Exercises
#
# - Judge Revision 1 under `LFU` with `victims.audit`. Predict the number of wrong victims first:
#   the search is wrong for scores that fall. Do counts fall?
# - In the example of three blocks, give the blocks other numbers. For which numbering is the heap
#   right by luck?
# - Write a policy that is bad but honest, such as one that evicts what was read last. Which audits
#   does it pass? What do audits not tell, then?
# - Raise the bus in the last check until the planted line passes. What did the check rest on, and
#   where would you look that value up?
