"""KV bytes by model and context, the memory plan of one device, and how many contexts fit."""

import polars as pl

from kvtier.analytic import capacity, tables
from kvtier.analytic.geometry import ModelGeometry, load_models, reference_model
from kvtier.analytic.inputs import StatedInputs, load_platform
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.units import GB, GIB, K_TOKENS, KIB, MIB

SHORT_TOKENS, LONG_TOKENS = 8 * K_TOKENS, 128 * K_TOKENS


def context_name(tokens: int) -> str:
    """8,192 is 8k and 1,048,576 is 1m; any other length is its digits."""
    if tokens % K_TOKENS:
        return str(tokens)
    thousands = tokens // K_TOKENS
    return f"{thousands // K_TOKENS}m" if thousands % K_TOKENS == 0 else f"{thousands}k"


def whole_bytes(value: float, unit: int) -> int:
    return round(value * unit)


def by_context(models: dict[str, ModelGeometry], contexts_tokens: list[int], block_tokens: int) -> pl.DataFrame:
    rows = [
        {
            "model": model.key,
            "context_tokens": tokens,
            "kv_bytes_per_token": model.kv_bytes_per_token,
            "block_bytes": model.kv_bytes(block_tokens),
            "kv_bytes": model.kv_bytes(tokens),
            "kv_gib": model.kv_bytes(tokens) / GIB,
            "kv_gb": model.kv_bytes(tokens) / GB,
            "weight_bytes": model.weight_bytes,
            "crossover_tokens": None if model.weight_bytes is None else capacity.crossover_tokens(model),
        }
        for model in models.values()
        for tokens in contexts_tokens
    ]
    return tables.CAPACITY.check(pl.DataFrame(rows, infer_schema_length=None))


def hbm_partition(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    size = platform.value("hbm_capacity")
    parts = capacity.hbm_parts_gb(
        model.stated("weight_bytes") / GB,
        platform.value("hbm_activations"),
        platform.value("hbm_pinned"),
        platform.value("hbm_evictable"),
        size,
    )
    rows = [
        {"part": part, "gb": float(gb), "share_percent": 100 * gb / size, "holds_kv": part in ("pinned", "evictable")}
        for part, gb in parts.items()
    ]
    return tables.HBM_PARTITION.check(pl.DataFrame(rows))


def by_users(model: ModelGeometry, platform: StatedInputs, users: list[int], context_tokens: int = LONG_TOKENS) -> pl.DataFrame:
    hbm = whole_bytes(platform.value("hbm_capacity"), GB)
    activations = whole_bytes(platform.value("hbm_activations"), GB)
    cxl = cxl_bytes(platform)
    kv = model.kv_bytes(context_tokens)
    rows = []
    for count in users:
        total = capacity.footprint_bytes(model.stated("weight_bytes"), activations, kv, count)
        rows.append(
            {
                "users": count,
                "context_tokens": context_tokens,
                "weights_gb": model.stated("weight_bytes") / GB,
                "activations_gb": activations / GB,
                "kv_gb": count * kv / GB,
                "total_gb": total / GB,
                "free_gb": (hbm - total) / GB,
                "total_over_hbm": total / hbm,
                "kv_over_cxl_percent": 100 * count * kv / cxl,
            }
        )
    return tables.USERS.check(pl.DataFrame(rows))


def cxl_bytes(platform: StatedInputs) -> int:
    return platform.value("cxl_endpoints") * whole_bytes(platform.value("cxl_endpoint_capacity"), GB)


def memories(model: ModelGeometry, platform: StatedInputs) -> dict[str, int]:
    """Memories in which contexts are counted [B]."""
    hbm = whole_bytes(platform.value("hbm_capacity"), GB)
    kv_region = whole_bytes(platform.value("hbm_pinned") + platform.value("hbm_evictable"), GB)
    return {
        "as_weights": model.stated("weight_bytes"),
        "node": capacity.node_kv_bytes(
            platform.value("node_gpus"),
            whole_bytes(platform.value("node_gpu_capacity"), GIB),
            model.stated("weight_bytes"),
            whole_bytes(platform.value("node_workspace"), GIB),
        ),
        "hbm_kv_region": kv_region,
        "baseline_hbm": platform.value("baseline_gpus") * hbm,
        "hbm_and_cxl": hbm + cxl_bytes(platform),
        "hbm_kv_region_and_cxl": kv_region + cxl_bytes(platform),
    }


def concurrency(
    model: ModelGeometry, platform: StatedInputs, contexts_tokens: tuple[int, ...] = (SHORT_TOKENS, LONG_TOKENS)
) -> pl.DataFrame:
    rows = [
        {
            "memory": memory,
            "context_tokens": tokens,
            "available_bytes": available,
            "kv_bytes": model.kv_bytes(tokens),
            "contexts": capacity.contexts(available, model.kv_bytes(tokens)),
            "whole_contexts": capacity.whole_contexts(available, model.kv_bytes(tokens)),
        }
        for memory, available in memories(model, platform).items()
        for tokens in contexts_tokens
    ]
    return tables.CONCURRENCY.check(pl.DataFrame(rows))


MEMORY_WORDS = {
    "as_weights": "memory of the size of the weights",
    "node": "node memory less one copy of the weights and the workspace",
    "hbm_kv_region": "pinned and evictable HBM",
    "baseline_hbm": "all HBM of the baseline's devices, weights not subtracted",
    "hbm_and_cxl": "all HBM and CXL DRAM, weights not subtracted",
    "hbm_kv_region_and_cxl": "pinned and evictable HBM and CXL DRAM",
}


def ledger(
    models: dict[str, ModelGeometry],
    model: ModelGeometry,
    platform: StatedInputs,
    frames: dict[str, pl.DataFrame],
) -> list[Number]:
    analytical = Label.ANALYTICAL
    block_tokens = platform.value("block_tokens")
    found = []
    for each in models.values():
        name = f"analytic.kv.{each.key}"
        formula = "2 x layers x KV heads x head size x bytes an element"
        found += [
            Number(f"{name}.bytes_per_token", each.kv_bytes_per_token, "B", 0, analytical, f"KV of one token of {each.model}: {formula}"),
            Number(
                f"{name}.kib_per_token", each.kv_bytes_per_token / KIB, "KiB", 0, analytical, f"KV of one token of {each.model}: {formula}"
            ),
            Number(
                f"{name}.block_mib",
                each.kv_bytes(block_tokens) / MIB,
                "MiB",
                2,
                analytical,
                f"KV of one block of {block_tokens} tokens of {each.model}",
            ),
        ]
        if each.weight_bytes is not None:
            found += [
                Number(
                    f"analytic.weights.{each.key}.gb",
                    each.weight_bytes / GB,
                    "GB",
                    1,
                    analytical,
                    f"weights of {each.model} as loaded, 10^9 B",
                ),
                Number(
                    f"analytic.weights.{each.key}.gib",
                    each.weight_bytes / GIB,
                    "GiB",
                    2,
                    analytical,
                    f"weights of {each.model} as loaded, 2^30 B",
                ),
                Number(
                    f"analytic.crossover.{each.key}.tokens",
                    capacity.crossover_tokens(each),
                    "tokens",
                    0,
                    analytical,
                    f"weight bytes / KV bytes a token of {each.model}: context at which the KV of one sequence is as large as the weights",
                ),
            ]
    for row in frames["capacity"].filter(pl.col("model") == model.key).iter_rows(named=True):
        name = f"analytic.kv.{model.key}.{context_name(row['context_tokens'])}"
        words = f"KV of one sequence of {row['context_tokens']:,} tokens of {model.model}"
        found += [
            Number(f"{name}.gib", row["kv_gib"], "GiB", 2, analytical, f"{words}, 2^30 B"),
            Number(f"{name}.gb", row["kv_gb"], "GB", 1, analytical, f"{words}, 10^9 B"),
        ]

    hbm = platform["hbm_capacity"]
    found += [
        Number("analytic.hbm.capacity_gb", hbm.value, "GB", 0, hbm.label, "HBM of one device, data sheet"),
        Number(
            "analytic.hbm.bandwidth_tbps",
            platform.value("hbm_bandwidth") / 1000,
            "TB/s",
            0,
            platform["hbm_bandwidth"].label,
            "HBM, data sheet",
        ),
    ]
    for row in frames["hbm_partition"].iter_rows(named=True):
        label = analytical if row["part"] == "weights" else platform[f"hbm_{row['part']}"].label
        found.append(Number(f"analytic.hbm.{row['part']}_gb", row["gb"], "GB", 0, label, f"HBM planned for {row['part']}"))
    kv_region = frames["hbm_partition"].filter("holds_kv")["gb"].sum()
    found.append(Number("analytic.hbm.kv_gb", kv_region, "GB", 0, analytical, "HBM for KV: pinned plus evictable"))

    for row in frames["users"].iter_rows(named=True):
        name = f"analytic.users.{row['users']}"
        who = f"{row['users']} sequences of {row['context_tokens']:,} tokens"
        found += [
            Number(f"{name}.total_gb", row["total_gb"], "GB", 0, analytical, f"weights, activations and the KV of {who}"),
            Number(
                f"{name}.free_gb", row["free_gb"], "GB", 0, analytical, f"HBM of one device less weights, activations and the KV of {who}"
            ),
            Number(
                f"{name}.over_hbm",
                row["total_over_hbm"],
                "",
                1,
                analytical,
                f"memory for {who}, weights and activations / HBM of one device",
            ),
            Number(f"{name}.kv_gb", row["kv_gb"], "GB", 0, analytical, f"KV of {who}"),
            Number(f"{name}.cxl_percent", row["kv_over_cxl_percent"], "%", 0, analytical, f"KV of {who} / CXL DRAM"),
        ]
    for row in frames["concurrency"].iter_rows(named=True):
        name = f"analytic.concurrency.{row['memory']}.{context_name(row['context_tokens'])}"
        words = f"{MEMORY_WORDS[row['memory']]} / KV of {row['context_tokens']:,} tokens; capacity only, not served users"
        found += [
            Number(f"{name}.exact", row["contexts"], "", 2, analytical, words),
            Number(f"{name}.whole", row["whole_contexts"], "", 0, analytical, f"{words}, rounded down"),
        ]
    node = memories(model, platform)["node"]
    found += [
        Number("analytic.node.kv_gib", node / GIB, "GiB", 1, analytical, MEMORY_WORDS["node"]),
        Number(
            "analytic.cxl.capacity_gb",
            cxl_bytes(platform) / GB,
            "GB",
            0,
            platform["cxl_endpoint_capacity"].label,
            "CXL endpoints x capacity of each",
        ),
        Number(
            "analytic.expansion.ratio",
            capacity.expansion(hbm.value, cxl_bytes(platform) / GB),
            "",
            1,
            analytical,
            "(HBM + CXL DRAM) / HBM of one device",
        ),
        Number("analytic.expansion.total_gb", hbm.value + cxl_bytes(platform) / GB, "GB", 0, analytical, "HBM of one device + CXL DRAM"),
        Number("analytic.expansion.cxl_over_hbm", cxl_bytes(platform) / GB / hbm.value, "", 1, analytical, "CXL DRAM / HBM of one device"),
    ]
    return found


def build(
    models: dict[str, ModelGeometry], model: ModelGeometry, platform: StatedInputs, contexts_tokens: list[int], users: list[int]
) -> dict[str, pl.DataFrame]:
    return {
        "capacity": by_context(models, contexts_tokens, platform.value("block_tokens")),
        "hbm_partition": hbm_partition(model, platform),
        "users": by_users(model, platform, users),
        "concurrency": concurrency(model, platform),
    }


if __name__ == "__main__":
    with reporting(snakemake):
        models, platform = load_models(snakemake.input.models), load_platform(snakemake.input.platform)
        model = reference_model(models, snakemake.input.models)
        frames = build(models, model, platform, snakemake.params.context_tokens, snakemake.params.users)
        for name, frame in frames.items():
            write_atomically(snakemake.output[name], frame.write_csv())
        numbers.write(snakemake.output.numbers, ledger(models, model, platform, frames), snakemake)
