"""`kvtier size`: KV bytes of a model, and what of it fits a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kvtier.commands.answer import as_json, show, show_json

if TYPE_CHECKING:
    from kvtier.analytic.layouts import Layout
    from kvtier.terminal import Block


@click.command()
@click.argument("word", metavar="[MODEL|CONFIG]", required=False)
@click.option("--list", "listed", is_flag=True, help="The models of the catalogue.")
@click.option("--context", default="8K", show_default=True, help="Tokens of a sequence; K is 1,024.")
@click.option("--batch", default="1", show_default=True, help="Sequences.")
@click.option("--dtype", default="bf16", show_default=True, help="Of the cache: fp32, bf16, fp16, fp8, int8, int4, int2, q8_0, q4_0.")
@click.option("--group", type=int, help="Elements under one scale; 0: no scale is kept for a token.")
@click.option("--scale-bytes", type=int, help="Bytes of a group's scale and zero point.")
@click.option("--tp", type=int, default=1, show_default=True, help="Ranks of tensor parallelism.")
@click.option("--block-tokens", default="16", show_default=True, help="Tokens of a block.")
@click.option("--device", help="Memory of one rank: 80 GiB, 80 GB, or H100 and others by name.")
@click.option("--utilization", default="0.9", show_default=True, help="Share of the device that is planned with.")
@click.option("--workspace", default="1 GiB", show_default=True, help="Of that share, what is neither weights nor KV.")
@click.option("--weights-dtype", help="Of the weights: fp32, bf16, fp16, fp8, int8, int4, mxfp4.  [default: as published]")
@click.option("--parameters", help="Number of parameters, such as 8.03B, where the source has none or another.")
@as_json
def size(word: str | None, listed: bool, in_json: bool, **options: Any) -> None:
    """KV bytes of a token, a block and a sequence, and how many sequences fit a device.

    MODEL is a name of the catalogue (--list); CONFIG is a config.json of a Hugging Face checkpoint, or a folder with one. Where layers have
    windows, two figures are given: window-aware, each layer holding what it needs, and paged, all layers in unified pages.

    \b
    Examples:
      kvtier size llama-3.1-8b --context 128K
      kvtier size gpt-oss-20b --context 8K --batch 32
      kvtier size deepseek-v3 --tp 8 --dtype fp8 --json
      kvtier size qwen3-32b --context 32K --tp 4 --device "80 GiB"
      kvtier size ./checkpoint/config.json --parameters 8.03B --device H100
      kvtier size --list
    """
    from kvtier.commands import models

    if listed == bool(word):
        raise click.UsageError("a MODEL, a CONFIG, or --list alone")
    if listed:
        rows = _list()
        shown: list[Block] = [_list_table(rows)]
        answer: object = rows
    else:
        answer = _answer(models.model(word, options.pop("parameters")), **options)
        shown = _blocks(answer)
    if in_json:
        show_json(answer)
    else:
        show(*shown)


def _list() -> list[dict[str, Any]]:
    from kvtier.analytic.catalogue import Catalogue
    from kvtier.analytic.footprint import Footprint, kinds
    from kvtier.analytic.kv_formats import FORMATS

    return [
        {
            "model": layout.model,
            "kv_bytes_per_token": Footprint(layout, FORMATS["bf16"]).bytes_per_token,
            "parameters": layout.parameters,
            "context_tokens": layout.context_tokens,
            "layers": kinds(layout),
            "label": str(layout.label),
            "source": layout.source,
        }
        for layout in Catalogue().values()
    ]


def _list_table(rows: list[dict[str, Any]]) -> Block:
    from kvtier.terminal import Table

    heads = ["Model", "KV a token, B", "Parameters, 10^9", "Context", "Layers"]
    cells = [
        (
            row["model"],
            f"{row['kv_bytes_per_token']:,}",
            f"{row['parameters'] / 1e9:,.4g}" if row["parameters"] else "",
            f"{row['context_tokens']:,}" if row["context_tokens"] else "",
            row["layers"],
        )
        for row in rows
    ]
    return Table(heads, cells, frozenset(heads[1:4]), f"{len(rows)} models; KV in bf16, all layers")


def _answer(
    layout: Layout,
    *,
    context: str,
    batch: str,
    dtype: str,
    group: int | None,
    scale_bytes: int | None,
    tp: int,
    block_tokens: str,
    device: str | None,
    utilization: str,
    workspace: str,
    weights_dtype: str | None,
) -> dict[str, Any]:
    """Everything that is printed, sizes in bytes of one rank."""
    from dataclasses import asdict, replace

    from kvtier.analytic import devices, quantities
    from kvtier.analytic.footprint import Footprint, kinds
    from kvtier.analytic.kv_formats import FORMATS, named
    from kvtier.commands import models

    tokens, sequences = quantities.tokens(context), quantities.tokens(batch, "--batch")
    in_block = quantities.tokens(block_tokens, "--block-tokens")
    stored = named(dtype, FORMATS, "--dtype")
    if group is not None:
        stored = replace(stored, group=group or None, scale_bytes=0 if group == 0 else stored.scale_bytes or 4)
    if scale_bytes is not None:
        stored = replace(stored, scale_bytes=scale_bytes)
    found = Footprint(layout, stored, tp)
    weight_bytes, weights_from = models.weights(layout, weights_dtype)
    aware, paged = found.sequence_bytes(tokens), found.paged_bytes(tokens)
    answer: dict[str, Any] = {
        "model": layout.model,
        "layers": kinds(layout),
        "source": layout.source,
        "label": str(layout.label),
        "cached_as": stored.said,
        "tp": tp,
        "windowed": layout.windowed,
        "kv_bytes_per_token": found.bytes_per_token,
        "kv_bytes_per_token_in_all": found.bytes_per_token_in_all,
        "bytes_per_token_beyond_windows": found.slope_bytes,
        "window_bytes": found.window_bytes,
        "state_bytes": found.state_bytes,
        "block_tokens": in_block,
        "block_bytes": found.block_bytes(in_block),
        "pieces": [asdict(piece) | {"layer_bytes": piece.layer_bytes} for piece in found.pieces(in_block)],
        "context_tokens": tokens,
        "batch": sequences,
        "sequence_bytes": aware,
        "sequence_bytes_paged": paged,
        "batch_bytes": sequences * aware,
        "batch_bytes_paged": sequences * paged,
        "weight_bytes": weight_bytes,
        "weights_from": weights_from,
    }
    if weight_bytes is not None:
        share = -(-weight_bytes // tp)
        crossing = found.crossover(share)
        answer |= {
            "crossover_tokens": None if crossing is None else float(crossing),
            "crossover_tokens_paged": float(found.crossover_paged(share)),
        }
    notes = [*layout.notes, *(f"not counted: {words}" for words in layout.not_counted)]
    if layout.context_tokens is not None and tokens > layout.context_tokens:
        notes.append(f"the model's stated context is {layout.context_tokens:,} tokens")
    if device is not None:
        one = devices.device(device)
        share = quantities.amount(utilization, "--utilization", "a share above 0 and at most 1")
        work = 0 if workspace.strip() == "0" else quantities.size_bytes(workspace, "--workspace")
        if weight_bytes is None:
            notes.append(f"weights not subtracted: {weights_from}")
        fitted = devices.fit(
            found, one.memory_bytes, weight_bytes or 0, tokens, block_tokens=in_block, utilization=share, workspace_bytes=work
        )
        answer["device"] = {"name": one.name, "source": one.source, "utilization": float(share)} | asdict(fitted)
    return answer | {"notes": notes}


def _blocks(answer: dict[str, Any]) -> list[Block]:
    from kvtier.analytic.quantities import in_unit, said
    from kvtier.terminal import Fields

    rank = f", one of {answer['tp']} ranks" if answer["tp"] > 1 else ""
    about = Fields(
        [
            ("model", answer["model"]),
            ("layers", answer["layers"]),
            ("cached as", answer["cached_as"]),
            ("source", f"{answer['source']} ({answer['label']})"),
        ]
    )
    context, batch = f"{answer['context_tokens']:,}", f"{answer['batch']:,}"

    def both(aware: int, paged: int) -> str:
        return f"{said(aware)} window-aware\n{said(paged)} paged, all layers in unified pages" if answer["windowed"] else said(aware)

    beyond = f"{said(answer['window_bytes'])} fixed, full windows\n{said(answer['bytes_per_token_beyond_windows'])} for each further token"
    pieces = "\n".join(
        f"{said(piece['layer_bytes'])} in each of {piece['layers']} layers: "
        + (f"{piece['copies']} copies of {said(piece['part_bytes'][0])}" if piece["copies"] > 1 else "one copy")
        for piece in answer["pieces"]
    )
    kv = Fields(
        [
            ("a token", said(answer["kv_bytes_per_token"])),
            ("a token, all ranks", said(answer["kv_bytes_per_token_in_all"]) if answer["tp"] > 1 else ""),
            ("windows", beyond if answer["windowed"] else ""),
            ("state, a sequence", said(answer["state_bytes"]) if answer["state_bytes"] else ""),
            (f"a block of {answer['block_tokens']:,} tokens", said(answer["block_bytes"])),
            ("its pieces", pieces),
            (f"a sequence of {context} tokens", both(answer["sequence_bytes"], answer["sequence_bytes_paged"])),
            (f"{batch} sequences", both(answer["batch_bytes"], answer["batch_bytes_paged"]) if answer["batch"] > 1 else ""),
        ],
        f"KV{rank}",
    )
    rows = []
    if answer["weight_bytes"] is not None:
        crossing, paged = answer["crossover_tokens"], answer["crossover_tokens_paged"]
        aware = f"{crossing:,.0f} tokens" if crossing is not None else "never: windows bound it"
        rows = [
            ("weights", f"{said(answer['weight_bytes'])}: {answer['weights_from']}"),
            ("one sequence as large", f"{aware} window-aware\n{paged:,.0f} tokens paged" if answer["windowed"] else aware),
        ]
    blocks: list[Block] = [about, kv, Fields(rows, f"Weights{rank and ', all ranks'}") if rows else ""]
    if "device" in answer:
        fit = answer["device"]
        fits = f"{fit['sequences_paged']:,} of {context} tokens"
        aware = f"{fit['sequences']:,} of {context} tokens window-aware\n{fits} paged" if answer["windowed"] else fits
        device = Fields(
            [
                ("memory", f"{said(fit['memory_bytes'])}: {fit['source']}"),
                ("planned with", f"{in_unit(fit['usable_bytes'], 'GiB')}, {100 * fit['utilization']:g}% of it"),
                ("weights", f"{in_unit(fit['weight_bytes'], 'GiB')}"),
                ("workspace", f"{in_unit(fit['workspace_bytes'], 'GiB')}"),
                ("left for KV", said(fit["kv_bytes"])),
                ("blocks that fit", f"{fit['blocks']:,}, so {fit['tokens']:,} tokens"),
                ("sequences that fit", f"{aware}; a capacity, not served users"),
            ],
            f"{fit['name']}{rank}",
        )
        blocks.append(device)
    blocks += [f"note: {words}" for words in answer["notes"]]
    return [block for block in blocks if block]
