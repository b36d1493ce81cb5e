"""KV of the models in the catalogue. A definition begins with the model's name and a colon: documents take the name from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from kvtier.analytic.labelling import derived
from kvtier.analytic.layouts import Kind, Layout
from kvtier.analytic.numbers.capacity import context_name
from kvtier.evidence.numbers import Number


def of_model(key: str, layout: Layout, rows: pl.DataFrame) -> Iterator[Number]:
    """One model: a token, a token on ranks, sequences by context up to the stated one; two figures where layers have windows."""
    name, first = f"analytic.size.{key}", rows.row(0, named=True)

    def number(field: str, value: float, unit: str, digits: int, words: str) -> Number:
        return derived(f"{name}.{field}", value, unit, digits, [layout], f"{layout.model}: {words}")

    token = "KV of one token in all layers that cache, bf16"
    yield number("bytes_per_token", first["bytes_per_token"], "B", 0, token)
    if layout.windowed:
        words = "KV of one token beyond every window, in the layers that see the whole context alone, bf16"
        yield number("beyond_windows_bytes_per_token", first["bytes_per_token_beyond_windows"], "B", 0, words)
    ranks = first["ranks"]
    if first["rank_bytes_per_token"] is not None:
        dealt = f"{token}, on one of {ranks} ranks of tensor parallelism: heads split, replicated where they are fewer; a latent replicated"
        yield number(f"tp{ranks}_bytes_per_token", first["rank_bytes_per_token"], "B", 0, dealt)
        yield number(
            f"tp{ranks}_all_bytes_per_token", first["all_ranks_bytes_per_token"], "B", 0, f"{token}, on all {ranks} ranks together"
        )
    for row in rows.iter_rows(named=True):
        if layout.context_tokens is not None and row["context_tokens"] > layout.context_tokens:
            continue
        context, words = context_name(row["context_tokens"]), f"KV of one sequence of {row['context_tokens']:,} tokens, bf16"
        states = ", and its states" if row["fixed_bytes"] and any(group.kind is Kind.STATE for group in layout.groups) else ""
        held = ", each layer holding what its window needs" if layout.windowed else ""
        yield number(f"{context}.gib", row["sequence_gib"], "GiB", 2, f"{words}{held}{states}")
        if layout.windowed:
            yield number(f"{context}.paged_gib", row["paged_gib"], "GiB", 2, f"{words}, all layers in unified pages{states}")


def numbers(catalogue: Mapping[str, Layout], tables: Mapping[str, pl.DataFrame]) -> Iterator[Number]:
    """All numbers of the topic."""
    by_model = tables["size"].partition_by("model", as_dict=True, maintain_order=True)
    for (key,), rows in by_model.items():
        yield from of_model(key, catalogue[key], rows)
