"""KV of the models in the catalogue, by context: what each layer needs, and what unified pages spend."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS
from kvtier.analytic.layouts import Layout
from kvtier.errors import InputError
from kvtier.frames import Table
from kvtier.units import GIB

STORED = FORMATS["bf16"]
"""Of every row."""

SIZE = Table(
    "size",
    {
        "model": pl.String(),
        "name": pl.String(),
        "context_tokens": pl.Int64(),
        "stated_context_tokens": pl.Int64(),
        "bytes_per_token": pl.Int64(),
        "bytes_per_token_beyond_windows": pl.Int64(),
        "fixed_bytes": pl.Int64(),
        "sequence_bytes": pl.Int64(),
        "paged_bytes": pl.Int64(),
        "sequence_gib": pl.Float64(),
        "paged_gib": pl.Float64(),
        "ranks": pl.Int64(),
        "rank_bytes_per_token": pl.Int64(),
        "all_ranks_bytes_per_token": pl.Int64(),
    },
    nullable=frozenset({"stated_context_tokens", "rank_bytes_per_token", "all_ranks_bytes_per_token"}),
)
"""One row a model and context. Bytes of ranks are null where the heads cannot be dealt out to so many; a context above the stated one is
arithmetic alone."""


def on_ranks(layout: Layout, ranks: int) -> Footprint | None:
    """The cache dealt out to `ranks`; None where its heads cannot be."""
    try:
        return Footprint(layout, STORED, ranks)
    except InputError:
        return None


def by_model(catalogue: Mapping[str, Layout], contexts_tokens: list[int], ranks: int) -> pl.DataFrame:
    """``SIZE``: models in order, contexts within each.

    Parameters
    ----------
    catalogue : mapping of str to Layout
    contexts_tokens : list of int
    ranks : int
        Of tensor parallelism, for the columns of a rank.
    """
    rows = []
    for key, layout in catalogue.items():
        alone, dealt = Footprint(layout, STORED), on_ranks(layout, ranks)
        for tokens in contexts_tokens:
            sequence, paged = alone.sequence_bytes(tokens), alone.paged_bytes(tokens)
            rows.append(
                {
                    "model": key,
                    "name": layout.model,
                    "context_tokens": tokens,
                    "stated_context_tokens": layout.context_tokens,
                    "bytes_per_token": alone.bytes_per_token,
                    "bytes_per_token_beyond_windows": alone.slope_bytes,
                    "fixed_bytes": alone.fixed_bytes,
                    "sequence_bytes": sequence,
                    "paged_bytes": paged,
                    "sequence_gib": sequence / GIB,
                    "paged_gib": paged / GIB,
                    "ranks": ranks,
                    "rank_bytes_per_token": dealt and dealt.bytes_per_token,
                    "all_ranks_bytes_per_token": dealt and dealt.bytes_per_token_in_all,
                }
            )
    return SIZE.check(pl.DataFrame(rows, infer_schema_length=None))


def build(catalogue: Mapping[str, Layout], contexts_tokens: list[int], ranks: int) -> dict[str, pl.DataFrame]:
    """The table of the topic by name."""
    return {"size": by_model(catalogue, contexts_tokens, ranks)}
