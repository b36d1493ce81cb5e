"""Numbers of the experiments on public traces, from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from kvtier.analytic.breakeven import ASSUMED_FLOP_PER_S
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.simulate import trace_studies
from kvtier.simulate.trace_experiments import LAST_HALF, OPTIMUM, WHOLE, percent
from kvtier.simulate.trace_studies import PUBLISHED_ALPHA

DRAWN = ("lru", "lfu", "ema005", "s3fifo", OPTIMUM)
"""Policies with a number at every capacity."""

TOLD = (
    *("lru", "lfu", "lfu_persistent", "ema015", "ema005", "ema005_persistent", "ema001", "lru2_persistent"),
    *("arc", "sieve", "s3fifo", "gdsf", "priority005", OPTIMUM),
)
"""Policies with numbers at some."""

TOLD_TOKENS = tuple(2**exponent for exponent in (18, 20, 22, 24))
KEPT = {"lfu": "LFU", "ema005": "EMA a=0.05", "ema001": "EMA a=0.01", "lru2": "LRU-2"}
BLOCKS = "blocks of a request's path that were in the cache / blocks of all paths"
SEMANTICS = "lossless residency, an edge loses its deepest blocks first and only from leaves, so each hit is one of the contiguous prefix"
INTERVAL = "95 % percentile interval"


def word(tokens: int) -> str:
    """A capacity as keys have it: ``256k``, ``4m``."""
    ki = tokens // 2**10
    return f"{ki // 2**10}m" if ki % 2**10 == 0 else f"{ki}k"


def provisional(key: str, value: float, unit: str, digits: int, definition: str, uncertainty: Mapping[str, float] | None = None) -> Number:
    """A simulated number."""
    return Number(key, value, unit, digits, Label.SIMULATED, definition, uncertainty or {}, Status.PROVISIONAL)


def interval(row: Mapping[str, Any], name: str) -> dict[str, float]:
    """Ends of a row's interval, if it has them."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return {} if low is None else {"interval_low": low, "interval_high": high, "interval_level": 0.95}


class Counted:
    """What rates of a stream are over, in words."""

    def __init__(self, streams: pl.DataFrame) -> None:
        self.rows = {(row["trace"], row["seed"], row["counted"]): row for row in streams.iter_rows(named=True)}
        # Numbers are of the first composition; the other ones say how much that choice moves.
        self.first = {trace: seed for trace, seed, _ in reversed(self.rows)}

    def about(self, row: Mapping[str, Any]) -> str:
        """Trace, capacity, warm-up."""
        counted = row.get("counted", WHOLE)
        stream = self.rows[row["trace"], row["seed"], counted]
        users = "" if stream["users"] is None else f", composed for {stream['users']} concurrent users with seed {stream['seed']}"
        size = f", {row['capacity_tokens']:,} tokens in blocks of {stream['block_tokens']}" if "capacity_tokens" in row else ""
        warm = "no warm-up, cold start" if counted == WHOLE else f"the {stream['counted_from']:,} requests before warm the cache"
        return f"trace {row['trace']}{users}{size}; {stream['requests']:,} requests count, {warm}; {SEMANTICS}"

    def paired(self, row: Mapping[str, Any]) -> str:
        """How the interval of a difference was drawn."""
        drawn = self.rows[row["trace"], row["seed"], row["counted"]]["parts"]
        return f"{INTERVAL}, paired bootstrap of {drawn}, hits as replayed"

    def of_first(self, table: pl.DataFrame) -> Iterator[dict[str, Any]]:
        """Rows of the first composition."""
        return (row for row in table.iter_rows(named=True) if row["seed"] == self.first[row["trace"]])


def of_streams(counted: Counted) -> list[Number]:
    """Sizes and ceilings."""
    made = []
    for (trace, seed, which), row in counted.rows.items():
        if seed != counted.first[trace]:
            continue
        name = f"sim.traces.{trace}"
        if which == WHOLE:
            made.append(provisional(f"{name}.requests", row["requests"], "requests", 0, f"requests of the trace; {counted.about(row)}"))
            made.append(provisional(f"{name}.blocks", row["blocks"], "blocks", 0, f"blocks of all paths; {counted.about(row)}"))
        end = "" if which == WHOLE else "_last_half"
        for unit, part, whole in (("hit", "ceiling_hits", "blocks"), ("token_hit", "ceiling_tokens", "tokens")):
            what = "blocks read before / blocks of all paths" if unit == "hit" else "tokens in blocks read before / tokens of all inputs"
            about = f"{what}, what a cache without limit hits; {counted.about(row)}"
            made.append(provisional(f"{name}.ceiling{end}.{unit}", percent(row[part], row[whole]), "%", 2, about))
    return made


def of_policies(table: pl.DataFrame, counted: Counted) -> list[Number]:
    """Hit rates, margins over LRU, shares of the way to the optimum; at how many capacities a policy is ahead, and the extremes."""
    made: list[Number] = []
    margins: dict[tuple[str, str], list[Number]] = {}
    for row in counted.of_first(table):
        slug, tokens, whole = row["policy"], row["capacity_tokens"], row["counted"] == WHOLE
        name = f"sim.traces.{row['trace']}.{word(tokens)}.{slug}"
        told = slug in TOLD and tokens in TOLD_TOKENS
        which = "the optimum, which knows all requests" if slug == OPTIMUM else row["title"]
        about, paired = counted.about(row), counted.paired(row)
        margin = provisional(
            f"{name}.margin",
            row["margin_points"],
            "points",
            2,
            f"block hit rate of {which} minus that of LRU; {about}; {paired}",
            interval(row, "margin"),
        )
        if whole:
            if told or slug in DRAWN:
                made.append(provisional(f"{name}.hit", row["hit_percent"], "%", 2, f"{BLOCKS}; {which}; {about}"))
            if slug not in ("lru", OPTIMUM):
                margins.setdefault((row["trace"], slug), []).append(margin)
            if told and slug != "lru":
                made.append(margin)
            if told and slug not in ("lru", OPTIMUM) and row["closed"] is not None:
                words = f"(hits of {which} - LRU) / (optimum - LRU): 0 is LRU, 1 the optimum, below 0 is worse than LRU; {about}; {paired}"
                made.append(provisional(f"{name}.closed", row["closed"], "", 3, words, interval(row, "closed")))
            if told and slug in ("lru", "ema005", OPTIMUM):
                words = f"tokens in blocks that were in the cache / tokens of all inputs; {which}; {about}"
                made.append(provisional(f"{name}.token_hit", row["hit_token_percent"], "%", 2, words))
        elif told and slug in ("lru", "ema005", OPTIMUM):
            made.append(provisional(f"{name}.last_half_hit", row["hit_percent"], "%", 2, f"{BLOCKS}; {which}; {about}"))
            if slug == "ema005":
                made.append(Number(**{**vars(margin), "key": f"{name}.last_half_margin"}))
    for (trace, slug), found in margins.items():
        if slug in TOLD:
            made += _ahead(f"sim.traces.{trace}.{slug}", found)
    sizes = table["capacity_tokens"].unique().sort().to_list()
    about = f"sizes of the cache, from {sizes[0]:,} to {sizes[-1]:,} tokens, the same for every trace"
    return [*made, provisional("sim.traces.capacities", len(sizes), "capacities", 0, about)]


def _ahead(name: str, margins: list[Number]) -> list[Number]:
    ahead = sum(one.uncertainty["interval_low"] > 0 for one in margins)
    behind = sum(one.uncertainty["interval_high"] < 0 for one in margins)
    which = f"of {len(margins)} capacities, those at which the {INTERVAL} of the margin over LRU, whole trace, "
    counts = {
        "ahead": (ahead, "is above zero"),
        "behind": (behind, "is below zero"),
        "unsettled": (len(margins) - ahead - behind, "has zero in it"),
    }
    made = [provisional(f"{name}.{key}", value, "", 0, which + words) for key, (value, words) in counts.items()]
    for key, choose in (("best_margin", max), ("worst_margin", min)):
        one = choose(margins, key=lambda number: number.value)
        at = one.key.split(".")[3]
        words = f"{'highest' if choose is max else 'lowest'} margin over LRU of all capacities, at {at} tokens: {one.definition}"
        made.append(provisional(f"{name}.{key}", one.value, one.unit, one.digits, words, one.uncertainty))
    return made


def of_seeds(policies: pl.DataFrame) -> list[Number]:
    """How far compositions of one trace lie apart."""
    made = []
    for (trace,), rows in policies.filter(pl.col("seed").is_not_null()).group_by("trace", maintain_order=True):
        at = rows.filter(pl.col("counted") == WHOLE).group_by("capacity_tokens", "policy")
        apart = at.agg(
            hit=pl.col("hit_percent").max() - pl.col("hit_percent").min(),
            margin=pl.col("margin_points").max() - pl.col("margin_points").min(),
        )
        seeds = rows["seed"].n_unique()
        for name in ("hit", "margin"):
            words = f"largest difference of the {name} between {seeds} compositions of trace {trace}, over all policies and capacities"
            made.append(provisional(f"sim.traces.{trace}.seeds_apart.{name}", apart[name].max(), "points", 2, words))
    return made


def of_alphas(alphas: pl.DataFrame, policies: pl.DataFrame, counted: Counted) -> list[Number]:
    """Best half-life by trace and capacity, what the published alpha loses, and how long a block stays under LRU."""
    made: list[Number] = []
    warm = alphas.filter((pl.col("counted") == LAST_HALF) & ~pl.col("persistent"))
    residence = {(row["trace"], row["capacity_tokens"]): row for row in counted.of_first(policies.filter(pl.col("policy") == "lru"))}
    losses, bests = [], []
    for (trace, tokens), rows in warm.group_by("trace", "capacity_tokens", maintain_order=True):
        most = rows["hits"].max()
        tied = rows.filter(pl.col("hits") == most)
        # Of equals the published alpha, else the one nearest to it, the shorter half-life first.
        best = min(tied.iter_rows(named=True), key=lambda row: (abs(_log_ratio(row["alpha"])), -row["alpha"]))
        about, name = counted.about(best), f"sim.traces.{trace}.{word(tokens)}.alpha"
        published = rows.filter(pl.col("alpha") == PUBLISHED_ALPHA).row(0, named=True)
        tried = f"of {len(rows)} tried, of {len(tied)} as good the nearest to {PUBLISHED_ALPHA:g}; state dropped; {about}"
        loss = provisional(
            f"{name}.published_loss",
            round(best["hit_percent"] - published["hit_percent"], 6),
            "points",
            2,
            f"block hit rate of EMA at its best alpha minus that at {PUBLISHED_ALPHA:g}; {tried}",
        )
        half_life = provisional(
            f"{name}.best_half_life", best["half_life_requests"], "requests", 1, f"half-life with most block hits, {tried}"
        )
        made += [
            provisional(f"{name}.best", best["alpha"], "", 5, f"alpha with most block hits, {tried}"),
            half_life,
            loss,
            provisional(
                f"{name}.worst_loss",
                round(best["hit_percent"] - rows["hit_percent"].min(), 6),
                "points",
                2,
                f"block hit rate of EMA at its best alpha minus that at its worst; {tried}",
            ),
        ]
        losses.append(loss)
        if len(tied) < len(rows):
            bests.append(half_life)
        row = residence[trace, tokens]
        stream = counted.rows[trace, row["seed"], row["counted"]]
        if row["evictions"]:
            stays = row["capacity_blocks"] * stream["requests"] / row["evictions"]
            words = f"capacity over evictions a request under LRU, which is a block's mean stay (Little's law); {counted.about(row)}"
            made.append(provisional(f"{name}.residence", round(stays, 6), "requests", 0, words))
            seconds = row["capacity_blocks"] * stream["span_s"] / row["evictions"]
            made.append(provisional(f"{name}.residence_s", round(seconds, 6), "s", 0, words.replace("a request", "a second")))
    for key, choose, among, what in (
        ("shortest_half_life", min, bests, "shortest best half-life, where not all alphas are equal"),
        ("longest_half_life", max, bests, "longest best half-life, where not all alphas are equal"),
        ("published_loss", max, losses, f"most that alpha {PUBLISHED_ALPHA:g} loses to the best alpha"),
    ):
        one = choose(among, key=lambda number: number.value)
        made.append(provisional(f"sim.traces.alpha.{key}", one.value, one.unit, one.digits, f"{what}: {one.key}; {one.definition}"))
    return made


def _log_ratio(alpha: float) -> float:
    return max(alpha / PUBLISHED_ALPHA, PUBLISHED_ALPHA / alpha) - 1


def of_state(policies: pl.DataFrame, counted: Counted) -> list[Number]:
    """What keeping the state of evicted edges gains."""
    made = []
    rows = {
        (row["trace"], row["capacity_tokens"], row["policy"]): row for row in counted.of_first(policies.filter(pl.col("counted") == WHOLE))
    }
    gains: dict[tuple[str, str], list[Number]] = {}
    for trace, tokens, slug in rows:
        if slug in KEPT:
            one, kept = rows[trace, tokens, slug], rows[trace, tokens, f"{slug}_persistent"]
            words = f"block hit rate of {KEPT[slug]} with state kept at eviction minus that with state dropped; {counted.about(one)}"
            key = f"sim.traces.{trace}.{word(tokens)}.kept.{slug}"
            gain = provisional(key, round(kept["hit_percent"] - one["hit_percent"], 6), "points", 2, words)
            gains.setdefault((trace, slug), []).append(gain)
            if tokens in TOLD_TOKENS:
                made.append(gain)
    for (trace, slug), found in gains.items():
        for key, choose in (("most", max), ("least", min)):
            one = choose(found, key=lambda number: number.value)
            words = f"{'largest' if choose is max else 'smallest'} over all capacities: {one.key}; {one.definition}"
            made.append(provisional(f"sim.traces.{trace}.kept.{slug}.{key}", one.value, one.unit, one.digits, words))
    return made


def of_orders(table: pl.DataFrame, counted: Counted) -> list[Number]:
    """What taking the first blocks of an edge first costs a cache that can use contiguous prefixes alone."""
    made = []
    rows = {
        (row["trace"], row["capacity_tokens"], row["policy"], row["suffix_first"]): row
        for row in counted.of_first(table.filter(pl.col("counted") == WHOLE))
    }
    for trace, tokens, slug, suffix_first in rows:
        if suffix_first and tokens in TOLD_TOKENS and slug in ("lru", "lfu"):
            one, other = rows[trace, tokens, slug, True], rows[trace, tokens, slug, False]
            for field, what in (("prefix_hit_percent", "prefix_loss"), ("hit_percent", "block_loss")):
                unit = "contiguous-prefix" if what == "prefix_loss" else "block"
                words = (
                    f"{unit} hit rate of {one['title']} with the deepest block of a leaf first minus that with the first block of any edge "
                    f"first; {counted.about(one).rpartition(';')[0]}"
                )
                key = f"sim.traces.{trace}.{word(tokens)}.order.{slug}.{what}"
                made.append(provisional(key, round(one[field] - other[field], 6), "points", 2, words))
    return made


CHOICES = {
    "own": "weights and alpha with most hits in the first half",
    "others": "weights and alpha with the best mean rate on the other traces",
    "published": "the published weights and alpha",
    "recency": "all weight on recency",
    "best": "weights and alpha with most hits in that same half, which no one can know",
}


def of_weights(table: pl.DataFrame, counted: Counted) -> list[Number]:
    """The priority, tested on the second half."""
    made = []
    rows = {(row["trace"], row["capacity_tokens"], row["choice"]): row for row in table.iter_rows(named=True)}
    for (trace, tokens, choice), row in rows.items():
        about = counted.about({**row, "counted": LAST_HALF})
        settings = f"wR, wE, wN = {row['recency']:g}, {row['ema']:g}, {row['anchor']:g}, alpha {row['alpha']:g}"
        name = f"sim.traces.{trace}.{word(tokens)}.weights.{choice}"
        words = f"{BLOCKS}; priority with {CHOICES[choice]}: {settings}; N is 1 for edges at the root; {about}"
        made.append(provisional(f"{name}_hit", row["test_percent"], "%", 2, words))
        if choice not in ("published", "recency"):
            published = rows[trace, tokens, "published"]
            gain = round(row["test_percent"] - published["test_percent"], 6)
            words = f"minus that of the published weights: {words}; {counted.paired({**row, 'counted': LAST_HALF})}"
            made.append(provisional(f"{name}_gain", gain, "points", 2, words, interval(row, "gain")))
    grid = len(trace_studies.points()) * len(trace_studies.WEIGHT_ALPHAS)
    made.append(provisional("sim.traces.weights.tried", grid, "settings", 0, "weights of step 0.2 and the published ones, times alphas"))
    return made


def of_times(table: pl.DataFrame) -> list[Number]:
    """Time to first token with and without a tier below; mean over the seeds of the spread."""
    made = []
    for _, rows in table.group_by("trace", "policy", "bandwidth_gbps", maintain_order=True):
        row = rows.row(0, named=True)
        link = f"{row['bandwidth_gbps']:g}gbps" if row["tier_tokens"] else "no_tier"
        tier = (
            f"CXL of {row['tier_tokens']:,} tokens at {row['bandwidth_gbps']:g} GB/s, assumed, one link for all"
            if row["tier_tokens"]
            else "no tier below"
        )
        name = f"sim.traces.{row['trace']}.time.{link}.{row['policy']}"
        about = (
            f"trace {row['trace']}, {row['title']}, HBM of {row['hbm_tokens']:,} tokens, {tier}; Llama-3 70B, {row['servers']} servers of "
            f"{ASSUMED_FLOP_PER_S / 1e12:g} TFLOP/s, assumed; prefill alone, first come first served; "
            f"all {row['requests']:,} requests, cold start; arrivals spread inside the clock's ticks, "
            f"mean of seeds {', '.join(map(str, rows['spread_seed']))}"
        )
        for field, unit_word in (("ttft_ms_mean", "ttft"), ("ttft_ms_p95", "ttft_p95")):
            values = rows[field]
            if values.null_count():
                continue
            ends = {"lowest_seed": values.min() / 1e3, "highest_seed": values.max() / 1e3}
            words = f"arrival to the end of prefill, {'mean' if unit_word == 'ttft' else '95th percentile'} of requests; {about}"
            made.append(provisional(f"{name}.{unit_word}", round(values.mean() / 1e3, 6), "s", 2, words, ends))
        made.append(
            provisional(f"{name}.load", row["load"], "", 2, f"work over what the servers could do in the span of arrivals; {about}")
        )
        if row["tier_tokens"]:
            share = percent(row["fetched"], row["blocks"])
            made.append(provisional(f"{name}.fetched", share, "%", 2, f"blocks read from the tier / blocks of all paths; {about}"))
    return made


def of_block_sizes(table: pl.DataFrame, counted: Counted) -> list[Number]:
    """Token hit rates in coarser blocks."""
    made = []
    for row in counted.of_first(table.filter(pl.col("counted") == WHOLE)):
        size, tokens = row["block_tokens"], row["capacity_tokens"]
        stream = {key: row[key] for key in ("trace", "seed")}
        about = counted.about(stream)
        if row["policy"] == "lru" and tokens == TOLD_TOKENS[1]:
            name = f"sim.traces.{row['trace']}.block{size}"
            words = f"tokens beyond the last whole block of {size} / tokens of all inputs; {about}"
            made.append(provisional(f"{name}.without", percent(row["tokens_without_block"], row["tokens"]), "%", 2, words))
            words = f"tokens in whole blocks of {size} read before / tokens of all inputs; {about}"
            made.append(provisional(f"{name}.ceiling", percent(row["ceiling_tokens"], row["tokens"]), "%", 2, words))
        if row["policy"] in ("lru", OPTIMUM) and tokens in TOLD_TOKENS:
            name = f"sim.traces.{row['trace']}.block{size}.{word(tokens)}.{row['policy']}.token_hit"
            whole = f"tokens in whole blocks of {size} that were in the cache / tokens of all inputs"
            words = f"{whole}; {row['title']}, {tokens:,} tokens; {about}"
            made.append(provisional(name, row["hit_token_percent"], "%", 2, words))
    return made


def of_tables(tables: Mapping[str, pl.DataFrame]) -> Iterable[Number]:
    """All numbers.

    Parameters
    ----------
    tables : mapping of str to polars.DataFrame
        By the names of the retained tables.
    """
    counted = Counted(tables["streams"])
    return [
        *of_streams(counted),
        *of_policies(tables["policies"], counted),
        *of_seeds(tables["policies"]),
        *of_alphas(tables["alphas"], tables["policies"], counted),
        *of_state(tables["policies"], counted),
        *of_orders(tables["orders"], counted),
        *of_weights(tables["weights"], counted),
        *of_times(tables["times"]),
        *of_block_sizes(tables["block_sizes"], counted),
    ]
