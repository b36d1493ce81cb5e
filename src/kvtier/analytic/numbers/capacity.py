"""Shapes of models; KV of a token, block and context; the HBM plan; memory of many users; contexts that fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from kvtier.analytic import capacity
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.analytic.labelling import derived, restated
from kvtier.analytic.tables.capacity import cxl_bytes, memories
from kvtier.evidence.numbers import Number
from kvtier.units import GB, GIB, K_TOKENS, KIB, MIB

MEMORIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "as_weights": ("memory of the size of the weights", ()),
    "node": ("node memory less one copy of the weights and the workspace", ("node_gpus", "node_gpu_capacity", "node_workspace")),
    "hbm_kv_region": ("pinned and evictable HBM", ("hbm_pinned", "hbm_evictable")),
    "baseline_hbm": ("all HBM of the baseline's devices, weights not subtracted", ("baseline_gpus", "hbm_capacity")),
    "hbm_and_cxl": ("all HBM and CXL DRAM, weights not subtracted", ("hbm_capacity", "cxl_endpoints", "cxl_endpoint_capacity")),
    "hbm_kv_region_and_cxl": (
        "pinned and evictable HBM and CXL DRAM",
        ("hbm_pinned", "hbm_evictable", "cxl_endpoints", "cxl_endpoint_capacity"),
    ),
}
"""Each memory in words, and the inputs that it is made of."""

CXL = ("cxl_endpoints", "cxl_endpoint_capacity")


def context_name(tokens: int) -> str:
    """Context in a key: 8,192 is 8k and 1,048,576 is 1m; any other length is its digits."""
    if tokens % K_TOKENS:
        return str(tokens)
    thousands = tokens // K_TOKENS
    return f"{thousands // K_TOKENS}m" if thousands % K_TOKENS == 0 else f"{thousands}k"


SHAPE = {
    "layers": ("", "layers"),
    "kv_heads": ("", "KV heads of each layer"),
    "head_dim": ("", "elements of a head's key or value"),
    "bytes_per_element": ("B", "size of one stored element of a key or value"),
    "parameters": ("", "parameters"),
}
"""What is repeated of a model's shape: unit, and words; a field that the model does not state has no number."""


def of_shape(model: ModelGeometry) -> Iterator[Number]:
    """Shape of a model as stated: what its KV and its compute follow from."""
    for field, (unit, words) in SHAPE.items():
        value = getattr(model, field)
        if value is not None:
            yield restated(f"analytic.model.{model.key}.{field}", value, unit, 0, model, f"{words}, {model.model}, as stated")


def of_model(model: ModelGeometry, platform: StatedInputs) -> Iterator[Number]:
    """KV of a token and a block, and the weights where the model states them."""
    block = platform["block_tokens"]
    name, formula = f"analytic.kv.{model.key}", "2 x layers x KV heads x head size x bytes an element"
    token = f"KV of one token of {model.model}: {formula}"
    yield derived(f"{name}.bytes_per_token", model.kv_bytes_per_token, "B", 0, [model], token)
    yield derived(f"{name}.kib_per_token", model.kv_bytes_per_token / KIB, "KiB", 0, [model], token)
    words = f"KV of one block of {block.value} tokens of {model.model}"
    yield derived(f"{name}.block_mib", model.kv_bytes(block.value) / MIB, "MiB", 2, [model, block], words)
    if model.weight_bytes is None:
        return
    words = f"weights of {model.model} as loaded"
    yield restated(f"analytic.weights.{model.key}.gb", model.weight_bytes / GB, "GB", 1, model, f"{words}, 10^9 B")
    yield derived(f"analytic.weights.{model.key}.gib", model.weight_bytes / GIB, "GiB", 2, [model], f"{words}, 2^30 B")
    words = f"weight bytes / KV bytes a token of {model.model}: context at which the KV of one sequence is as large as the weights"
    yield derived(f"analytic.crossover.{model.key}.tokens", capacity.crossover_tokens(model), "tokens", 0, [model], words)


def of_contexts(model: ModelGeometry, table: pl.DataFrame) -> Iterator[Number]:
    """KV of one sequence of the model, by context."""
    for row in table.filter(pl.col("model") == model.key).iter_rows(named=True):
        name = f"analytic.kv.{model.key}.{context_name(row['context_tokens'])}"
        words = f"KV of one sequence of {row['context_tokens']:,} tokens of {model.model}"
        yield derived(f"{name}.gib", row["kv_gib"], "GiB", 2, [model], f"{words}, 2^30 B")
        yield derived(f"{name}.gb", row["kv_gb"], "GB", 1, [model], f"{words}, 10^9 B")


def of_hbm(model: ModelGeometry, platform: StatedInputs, partition: pl.DataFrame) -> Iterator[Number]:
    """One device and its planned parts."""
    size, speed = platform["hbm_capacity"], platform["hbm_bandwidth"]
    yield restated("analytic.hbm.capacity_gb", size.value, "GB", 0, size, "HBM of one device, data sheet")
    yield restated("analytic.hbm.bandwidth_tbps", speed.value / 1000, "TB/s", 0, speed, "HBM, data sheet")
    for row in partition.iter_rows(named=True):
        part = model if row["part"] == "weights" else platform[f"hbm_{row['part']}"]
        yield restated(f"analytic.hbm.{row['part']}_gb", row["gb"], "GB", 0, part, f"HBM planned for {row['part']}")
    region = partition.filter("holds_kv")["gb"].sum()
    sources = platform.entries("hbm_pinned", "hbm_evictable")
    yield derived("analytic.hbm.kv_gb", region, "GB", 0, sources, "HBM for KV: pinned plus evictable")


def of_users(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Memory that sequences of one length need, against one device and the CXL tier."""
    needed = [model, *platform.entries("hbm_activations")]
    on_device = [*needed, *platform.entries("hbm_capacity")]
    for row in table.iter_rows(named=True):
        name = f"analytic.users.{row['users']}"
        who = f"{row['users']} sequences of {row['context_tokens']:,} tokens"
        words = f"weights, activations and the KV of {who}"
        yield derived(f"{name}.total_gb", row["total_gb"], "GB", 0, needed, words)
        yield derived(f"{name}.free_gb", row["free_gb"], "GB", 0, on_device, f"HBM of one device less {words}")
        words = f"memory for {who}, weights and activations / HBM of one device"
        yield derived(f"{name}.over_hbm", row["total_over_hbm"], "", 1, on_device, words)
        yield derived(f"{name}.kv_gb", row["kv_gb"], "GB", 0, [model], f"KV of {who}")
        sources = [model, *platform.entries(*CXL)]
        yield derived(f"{name}.cxl_percent", row["kv_over_cxl_percent"], "%", 0, sources, f"KV of {who} / CXL DRAM")


def of_concurrency(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Contexts that fit in each memory."""
    for row in table.iter_rows(named=True):
        memory, inputs = MEMORIES[row["memory"]]
        name = f"analytic.concurrency.{row['memory']}.{context_name(row['context_tokens'])}"
        sources = [model, *platform.entries(*inputs)]
        words = f"{memory} / KV of {row['context_tokens']:,} tokens"
        claim = "capacity only, not served users"
        yield derived(f"{name}.exact", row["contexts"], "", 2, sources, f"{words}, exact ratio; {claim}")
        whole = f"whole contexts that fit: {words} = {row['contexts']:.6g}, rounded down, for a part of a context serves nobody; {claim}"
        yield derived(f"{name}.whole", row["whole_contexts"], "", 0, sources, whole)
    node, inputs = MEMORIES["node"]
    available = memories(model, platform)["node"]
    yield derived("analytic.node.kv_gib", available / GIB, "GiB", 1, [model, *platform.entries(*inputs)], node)


def of_expansion(platform: StatedInputs) -> Iterator[Number]:
    """HBM of one device and the CXL tier."""
    hbm_gb, cxl_gb = platform.value("hbm_capacity"), cxl_bytes(platform) / GB
    cxl = platform.entries(*CXL)
    both = [*platform.entries("hbm_capacity"), *cxl]
    yield derived("analytic.cxl.capacity_gb", cxl_gb, "GB", 0, cxl, "CXL endpoints x capacity of each")
    words = "(HBM + CXL DRAM) / HBM of one device"
    yield derived("analytic.expansion.ratio", capacity.expansion(hbm_gb, cxl_gb), "", 1, both, words)
    yield derived("analytic.expansion.total_gb", hbm_gb + cxl_gb, "GB", 0, both, "HBM of one device + CXL DRAM")
    yield derived("analytic.expansion.cxl_over_hbm", cxl_gb / hbm_gb, "", 1, both, "CXL DRAM / HBM of one device")


def numbers(
    models: Mapping[str, ModelGeometry], model: ModelGeometry, platform: StatedInputs, tables: Mapping[str, pl.DataFrame]
) -> Iterator[Number]:
    """All numbers of the topic; `tables` as :func:`kvtier.analytic.tables.capacity.build` makes them."""
    block = platform["block_tokens"]
    yield restated("analytic.block.tokens", block.value, "tokens", 0, block, "tokens of one KV block, as stated")
    for each in models.values():
        yield from of_shape(each)
        yield from of_model(each, platform)
    yield from of_contexts(model, tables["capacity"])
    yield from of_hbm(model, platform, tables["hbm_partition"])
    yield from of_users(model, platform, tables["users"])
    yield from of_concurrency(model, platform, tables["concurrency"])
    yield from of_expansion(platform)
