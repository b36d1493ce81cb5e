"""Score streams, block state, rotary frequencies and envelope, and the softmax example."""

import math

import numpy as np
import polars as pl

from kvtier.analytic import attention, tables
from kvtier.analytic.geometry import ModelGeometry, load_models, reference_model
from kvtier.analytic.inputs import StatedInputs, load_platform
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.units import KIB, MIB


def gqa_state(models: dict[str, ModelGeometry], platform: StatedInputs) -> pl.DataFrame:
    value = platform.value
    used = sum(value(f"state_{part}") for part in ("identity", "score", "timestamp", "count"))
    blocks = attention.block_count(value("state_context"), value("block_tokens"))
    rows = [
        {
            "model": model.key,
            "score_streams": model.score_streams,
            "queries_per_kv_head": None if model.query_heads is None else model.queries_per_kv_head,
            "context_tokens": value("state_context"),
            "blocks": blocks,
            "state_bytes_per_block": value("state_size"),
            "reserved_bytes_per_block": value("state_size") - used,
            "state_bytes": blocks * value("state_size"),
            "kv_bytes": model.kv_bytes(value("state_context")),
            "state_percent": 100 * blocks * value("state_size") / model.kv_bytes(value("state_context")),
        }
        for model in models.values()
    ]
    return tables.GQA_STATE.check(pl.DataFrame(rows, infer_schema_length=None))


def gqa_blocks(platform: StatedInputs) -> pl.DataFrame:
    rows = []
    examples = zip(platform.value("example_blocks"), platform.value("example_touches"), platform.value("example_scores"), strict=True)
    by_score = sorted(examples, key=lambda example: (-example[2], example[0]))
    for rank, (block, touches, score) in enumerate(by_score, start=1):
        first, last = attention.block_positions(block, platform.value("block_tokens"))
        rows.append(
            {
                "rank": rank,
                "block": block,
                "first_position": first,
                "last_position": last,
                "touches": touches,
                "score": float(score),
                "eviction_candidate": rank == len(by_score),
            }
        )
    return tables.GQA_BLOCKS.check(pl.DataFrame(rows))


def rope_bases(model: ModelGeometry, platform: StatedInputs) -> list[float]:
    """The base that the package prints, then the model's own."""
    return list(dict.fromkeys([float(platform.value("rope_base")), float(model.stated("rope_base"))]))


def rope_frequencies(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    rows = [
        {"base": base, "pair": pair, "theta": float(theta), "wavelength_tokens": 2 * math.pi / float(theta)}
        for base in rope_bases(model, platform)
        for pair, theta in enumerate(attention.rope_frequencies(model.head_dim, base))
    ]
    return tables.ROPE_FREQUENCIES.check(pl.DataFrame(rows))


def rope(model: ModelGeometry, platform: StatedInputs, distances_tokens: list[int]) -> pl.DataFrame:
    rows = [
        {"base": base, "distance_tokens": distance, "envelope": attention.rope_envelope(distance, model.head_dim, base)}
        for base in rope_bases(model, platform)
        for distance in distances_tokens
    ]
    return tables.ROPE.check(pl.DataFrame(rows))


def softmax_example(platform: StatedInputs) -> pl.DataFrame:
    scores = np.asarray(platform.value("softmax_scores"), dtype=np.float64)
    frame = pl.DataFrame(
        {
            "position": list(range(scores.size)),
            "token": platform.value("softmax_tokens"),
            "score": scores,
            "softmax_percent": 100 * attention.softmax(scores),
            "share_percent": 100 * scores / scores.sum(),
        }
    )
    return tables.SOFTMAX.check(frame)


def build(
    models: dict[str, ModelGeometry], model: ModelGeometry, platform: StatedInputs, distances_tokens: list[int]
) -> dict[str, pl.DataFrame]:
    return {
        "gqa_state": gqa_state(models, platform),
        "gqa_blocks": gqa_blocks(platform),
        "rope_frequencies": rope_frequencies(model, platform),
        "rope": rope(model, platform, distances_tokens),
        "softmax": softmax_example(platform),
    }


def two_digits(value: float) -> int:
    """Decimals that show two significant digits."""
    return max(0, 1 - math.floor(math.log10(value)))


def ledger(model: ModelGeometry, platform: StatedInputs, frames: dict[str, pl.DataFrame]) -> list[Number]:
    analytical, illustrative = Label.ANALYTICAL, Label.ILLUSTRATIVE
    state = frames["gqa_state"].row(by_predicate=pl.col("model") == model.key, named=True)
    context = f"{state['context_tokens']:,} tokens of {model.model}"
    size = platform["state_size"]
    per_head = platform.value("state_per_head_position") * state["context_tokens"] * state["score_streams"]
    found = [
        Number("analytic.gqa.score_streams", state["score_streams"], "", 0, analytical, f"layers x KV heads of {model.model}"),
        Number(
            "analytic.gqa.queries_per_kv_head", model.queries_per_kv_head, "", 0, analytical, f"query heads / KV heads of {model.model}"
        ),
        Number(
            "analytic.gqa.blocks", state["blocks"], "blocks", 0, analytical, f"{context} / {platform.value('block_tokens')} tokens a block"
        ),
        Number(
            "analytic.gqa.state_bytes_per_block", size.value, "B", 0, size.label, "identity key, score, timestamp, count and reserved space"
        ),
        Number(
            "analytic.gqa.reserved_bytes_per_block",
            state["reserved_bytes_per_block"],
            "B",
            0,
            analytical,
            "block state less its four fields",
        ),
        Number("analytic.gqa.state_bytes", state["state_bytes"], "B", 0, analytical, f"state of all blocks of {context}"),
        Number("analytic.gqa.state_kib", state["state_bytes"] / KIB, "KiB", 0, analytical, f"state of all blocks of {context}"),
        Number(
            "analytic.gqa.state_percent", state["state_percent"], "%", 4, analytical, f"state of all blocks / KV of {context}; payload only"
        ),
        Number(
            "analytic.gqa.retracted_state_mib",
            per_head / MIB,
            "MiB",
            0,
            illustrative,
            f"retracted derivation: {platform.value('state_per_head_position')} B for each position and score stream of {context}",
        ),
        Number(
            "analytic.gqa.retracted_state_percent",
            100 * per_head / state["kv_bytes"],
            "%",
            1,
            illustrative,
            f"retracted derivation: state of each position and score stream / KV of {context}",
        ),
    ]
    for row in frames["gqa_blocks"].iter_rows(named=True):
        words = f"position of block {row['block']}, rank {row['rank']} by example score"
        name = f"analytic.gqa.block_{row['block']}"
        found += [
            Number(f"{name}.first_position", row["first_position"], "", 0, illustrative, f"first {words}"),
            Number(f"{name}.last_position", row["last_position"], "", 0, illustrative, f"last {words}"),
        ]
    pairs = model.head_dim // 2
    for row in frames["rope_frequencies"].filter(pl.col("pair").is_in([0, pairs // 2, pairs - 1])).iter_rows(named=True):
        found.append(
            Number(
                f"analytic.rope.base{row['base']:.0f}.theta_{row['pair']}",
                row["theta"],
                "rad/position",
                two_digits(row["theta"]),
                analytical,
                f"base^(-2i/d), i = {row['pair']}, d = {model.head_dim}, base {row['base']:,.0f}",
            )
        )
    for row in frames["rope"].iter_rows(named=True):
        found.append(
            Number(
                f"analytic.rope.base{row['base']:.0f}.envelope.{row['distance_tokens']}",
                row["envelope"],
                "",
                3,
                analytical,
                f"mean |S_j| of the rotary phases at distance {row['distance_tokens']:,} / at distance 0, "
                f"d = {model.head_dim}, base {row['base']:,.0f}",
            )
        )
    for row in frames["softmax"].iter_rows(named=True):
        name = f"analytic.softmax.{row['token']}"
        label = platform.label("softmax_scores")
        found += [
            Number(
                f"{name}.percent",
                row["softmax_percent"],
                "%",
                0,
                label,
                f"exp({row['score']:g}) / sum of the exponentials of the example's scores",
            ),
            Number(
                f"{name}.share_percent",
                row["share_percent"],
                "%",
                0,
                label,
                f"{row['score']:g} / sum of the example's scores; not a softmax",
            ),
        ]
    return found


if __name__ == "__main__":
    with reporting(snakemake):
        models, platform = load_models(snakemake.input.models), load_platform(snakemake.input.platform)
        model = reference_model(models, snakemake.input.models)
        frames = build(models, model, platform, snakemake.params.distance_tokens)
        for name, frame in frames.items():
            write_atomically(snakemake.output[name], frame.write_csv())
        numbers.write(snakemake.output.numbers, ledger(model, platform, frames), snakemake)
