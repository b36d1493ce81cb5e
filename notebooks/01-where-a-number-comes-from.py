# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where a number comes from
#
# A document prints a hit rate. This notebook follows it back: to its record in the ledger, to the
# rule that made it, to what that rule read, and to the simulation itself. At the end the simulation
# is run again, here, and must give the same integers.
#
# Every result is printed by a cell. Nothing in the prose between them is a result.

# %%
from kvtier.evidence.labels import MEANING, Label
from kvtier.publish.notebooks import show
from kvtier.queries import explanation
from kvtier.queries.checkout import Checkout

checkout = Checkout.around(".")
show.fields({"ledger": checkout.numbers.said, "claims": checkout.claims.said})

# %% [markdown]
# The hit rate was simulated, and such values never stand without this:

# %%
show.caveat()

# %% [markdown]
# ## A value in a document
#
# The value was first printed in the technical appendix of v6.0. What that package printed is kept
# as *claims*, each under a name. This one is in the executive summary.

# %%
CLAIM = "appendix.summary.e1_32_ema015"

claim = checkout.claims.by_name[CLAIM]
show.fields(
    {
        "printed": f"{claim['printed']} {claim['unit']}",
        "where": f"{claim['document']}, {claim['section']}",
        "says": claim["says"],
        "checked against": ", ".join(claim["keys"]),
        "verdict": claim["verdict"],
    }
)

# %% [markdown]
# A claim names the key of the number that it is checked against. The verdict is computed in each
# build, from what was printed and what the key now holds.
#
# ## The record
#
# A key leads to one record in the ledger. `explanation.of_number` is what `kvtier explain` prints.

# %%
KEY = claim["keys"][0]

record = explanation.of_number(checkout, KEY)
seeds = record["uncertainty"]
show.fields(
    {
        "key": KEY,
        "printed as": f"{record['display']} {record['unit']}",
        "full precision": record["value"],
        "label": f"{record['label']}: {MEANING[Label(record['label'])]}",
        "status": record["status"],
        "definition": record["definition"],
        "by seed": f"from {seeds['lowest_seed']:.2f} to {seeds['highest_seed']:.2f} {record['unit']}",
    }
)

# %% [markdown]
# The definition says what is divided by what, over which turns and seeds. The label is the class of
# evidence: this value was simulated, and no hardware has confirmed it. The two seeds give no
# interval, only a lowest and a highest value.
#
# ## The rule
#
# The record names the rule that made it. The rule is part of the build's workflow, and the place is
# looked up, not remembered.

# %%
file, _, line = record["rule_at"].partition(":")
text = (checkout.root / file).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
end = next(
    (index for index, one in enumerate(text) if index and one.startswith("rule ")), len(text)
)
print(record["rule_at"])
print("\n".join(text[:end]).strip())

# %% [markdown]
# A rule names its inputs, its outputs and its settings; the work is in the script of the same name.
# Settings come from the configuration, and their values are kept with the number.

# %%
show.fields({**record["params"], "made again by": record["command"]})

# %% [markdown]
# ## What the rule read
#
# A simulated number reads no data: workload and policy follow from the settings and the seed. That
# is why its list of inputs is empty.

# %%
show.fields({"inputs of this number": record["inputs"] or "none"})

# %% [markdown]
# A measured number is another matter. Its record has each file by sha256, and whether the file
# still has that hash is computed now.

# %%
measured = explanation.of_number(checkout, "measured.gb10.vllm.slope")
show.table(
    ["file", "sha256", "now"],
    [(one["path"], one["sha256"][:16] + "…", one["now"]) for one in measured["inputs"]],
    f"{measured['key']}: {measured['display']} {measured['unit']} ({measured['label']})",
)

# %% [markdown]
# ## The same number, made here
#
# Now the simulation. The settings above are all it needs: the shape of the workload, the seeds, the
# policy, and two capacities. The policy and the capacities stand in the definition; the script has
# them from `kvtier.simulate.sweeps`.

# %%
from kvtier.simulate import engine, sweeps
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import ema
from kvtier.workload.synthetic import Shape, generate

settings = record["params"]
shape, first = Shape(settings["sessions"], settings["turns"]), settings["counted_from"]
policy = ema(0.15)
hbm_blocks, cxl_blocks = (
    capacity_blocks(sweeps.SIMULATED_HBM_GIB),
    capacity_blocks(sweeps.SIMULATED_CXL_GIB),
)

counted = {}
for seed in settings["seeds"]:
    turns = generate("zipf", seed, shape)
    counts = engine.simulate(turns, policy, hbm_blocks, cxl_blocks)
    counted[seed] = int(counts.hits[first:].sum()), int(turns.read_blocks[first:].sum())

show.table(
    ["seed", "hits", "blocks read"],
    [(seed, *both) for seed, both in counted.items()],
    "Simulated (provisional), made in this cell",
)

# %% [markdown]
# The build keeps the same counts in a table, one row a run. They are integers, so they are equal or
# they are not; there is no tolerance to choose. From a checkout without a build there is no such
# table, and the comparison below rests on the ledger alone.

# %%
import polars as pl

table = checkout.root / "results/simulate/revision2/e1.parquet"
if table.is_file():
    runs = pl.read_parquet(table).filter(
        pl.col("policy") == policy.name,
        pl.col("alpha").eq_missing(policy.alpha),
        pl.col("hbm_gib") == sweeps.SIMULATED_HBM_GIB,
    )
    of_build = {
        row["seed"]: (row["hits"], row["hits"] + row["fetched"] + row["recomputed"])
        for row in runs.sort("seed").iter_rows(named=True)
    }
    assert of_build == counted
    print(f"the build's table has the same integers, {len(of_build)} runs of {len(counted)}")
else:
    print("nothing is built; `make` writes the table")

# %% [markdown]
# The value in the ledger is the mean over seeds of hits over blocks read. Written as a fraction of
# integers it has no rounding at all, and the nearest floating-point number is the one in the
# ledger.

# %%
from fractions import Fraction

exact = sum(Fraction(100 * hits, read) for hits, read in counted.values()) / len(counted)
assert float(exact) == record["value"]
assert f"{float(exact):,.2f}" == record["display"]
show.fields({"exact": exact, "as float": float(exact), "in the ledger": record["value"]})

# %% [markdown]
# ## A second opinion
#
# `engine` is compiled and handles runs of blocks at a time. `revision2` is plain Python and touches
# every block; it is the one to check with a pencil. What a turn hits depends only on the turns
# before it, so the first turns alone are a fair test.

# %%
from dataclasses import replace

from kvtier.simulate import revision2

beginning = replace(turns, session=turns.session[:60], decode_tokens=turns.decode_tokens[:60])
by_block = revision2.simulate(beginning, policy, hbm_blocks, cxl_blocks)
by_extent = engine.simulate(beginning, policy, hbm_blocks, cxl_blocks)
for field in ("hits", "fetched", "recomputed", "evictions", "evictions_from_read_set"):
    assert (getattr(by_block, field) == getattr(by_extent, field)).all()
assert (by_block.hits == counts.hits[: len(by_block.hits)]).all()
show.fields(
    {
        "turns": len(beginning.session),
        "evictions": f"{int(by_block.evictions.sum()):,}",
        "counts that differ": "none, in any turn",
    }
)

# %% [markdown]
# ## And what rests on it
#
# The other direction: which claims would have to be judged again if this number moved.

# %%
show.table(
    ["claim", "printed", "verdict"],
    [(one["id"], one["printed"], one["verdict"]) for one in record["claims"]],
)

# %% [markdown]
# ## Exercises
#
# - Change the policy to `LRU` (from `kvtier.simulate.policies`) and `KEY` to that of LRU at the
#   same budget. Predict which of the assertions fails if you change only one of the two.
# - Take a claim whose verdict is *contradicted*: `kvtier claims --verdict contradicted` lists them.
#   Follow it to its record. Is the printed value or the recomputed one the better supported, and by
#   what?
# - Add one turn to `shape`. Predict whether the hits of the first seed change by a little or
#   altogether. Why? (The order of draws in `kvtier.workload.synthetic` tells.)
# - Change one digit in a copy of a measured file and compute its sha256. What would `now` say, and
#   which numbers would then be in doubt?
