"""Numbers of the experiments: what each change of the cached KV does to the logits of the small model.

Label Illustrative: which change is lossless carries over to any model, the sizes are those of a tiny one with random weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number

PREFIX = "model.lossless"

CASES = {
    ("tier round trip", "every block exported, dropped, put back"): "round_trip.same_slots",
    ("tier round trip", "the same, put back last block first: other slots"): "round_trip.other_slots",
    ("tier round trip", "attention reads the blocks last to first"): "round_trip.other_order",
    ("tier round trip", "one bit flipped on the way"): "round_trip.one_bit",
    ("streamed attention", "online softmax over chunks of 16 tokens"): "streamed.even_chunks",
    ("streamed attention", "online softmax over chunks of 1, 2, 4, 8, 16 tokens"): "streamed.uneven_chunks",
    ("streamed attention", "a softmax each chunk, outputs averaged"): "streamed.softmax_each_chunk",
    ("dropped entries", "one KV head of one layer left out"): "dropped.one_head",
    ("dropped entries", "one token of one KV head of one layer left out"): "dropped.one_head_and_token",
    ("dropped entries", "one block missed and fetched"): "dropped.one_block_fetched",
    ("recomputed block", "third block with all that comes before it"): "recomputed.with_context",
    ("recomputed block", "the same, prefill having been in blocks too"): "recomputed.after_prefill_in_blocks",
    ("recomputed block", "first block, which nothing comes before"): "recomputed.first_block",
    ("recomputed block", "third block with the second alone"): "recomputed.with_one_block",
    ("recomputed block", "third block with nothing before it"): "recomputed.without_context",
    ("fp8 rounding", "KV of the context rounded to e4m3"): "fp8.rounded",
    ("fp8 rounding", "KV that e4m3 holds exactly, rounded again"): "fp8.on_the_grid",
    ("prefill schedule", "in one go, a second time"): "prefill.again",
    ("prefill schedule", "in blocks of 16"): "prefill.in_blocks",
    ("prefill schedule", "token by token"): "prefill.by_token",
    ("prefill schedule", "in blocks of 16 that see no earlier block"): "prefill.blocks_apart",
}
"""Place of a row in the keys, by experiment and what was done."""

SIGNIFICANT = 6
"""Digits kept of a difference: more are those of one C library."""


def _decimals(value: float) -> int:
    """Decimals that show two significant digits; none of zero."""
    return max(0, 1 - math.floor(math.log10(value))) if value else 0


def numbers(table: pl.DataFrame) -> Iterator[Number]:
    """Relative difference of the logits and changed likeliest tokens of each row.

    Parameters
    ----------
    table : polars.DataFrame
        Columns ``experiments.EXPERIMENTS``.

    Raises
    ------
    InputError
        If a row is of no known case, a case is missing, or a difference is not as expected.
    """
    found = {(row["experiment"], row["done"]): row for row in table.iter_rows(named=True)}
    if found.keys() != CASES.keys():
        odd = min(found.keys() ^ CASES.keys())
        raise InputError("experiments", " / ".join(odd), "a row without a case, or a case without a row", "one row a case")
    for case, row in found.items():
        if not row["holds"]:
            raise InputError("experiments", " / ".join(case), f"a difference of {row['max_abs_difference']:g}", row["expected"])
        key, what = f"{PREFIX}.{CASES[case]}", f"{row['experiment']}: {row['done']}; transformer with random weights, {row['dtype']}"
        percent = float(f"{100 * row['relative_difference']:.{SIGNIFICANT}g}")
        words = f"largest difference of the logits over the largest logit; {what}, {row['positions']} positions"
        yield Number(f"{key}.difference", percent, "%", _decimals(percent), Label.ILLUSTRATIVE, words)
        words = f"positions, of {row['positions']}, at which another token is the likeliest; {what}"
        yield Number(f"{key}.changed", row["greedy_changed"], "", 0, Label.ILLUSTRATIVE, words)
