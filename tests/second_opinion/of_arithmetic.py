"""Analytic numbers again, from data/inputs: exact fractions, array sizes, counting loops and root finding instead of the closed forms."""

from __future__ import annotations

import csv
import math
import re
from fractions import Fraction
from functools import cache

import numpy as np
import yaml

from second_opinion.registry import ROOT, second_opinion

GB, GIB, MIB, KIB = 10**9, 2**30, 2**20, 2**10
NAMES = {
    "llama3_70b": "Llama-3 70B", "llama2_70b": "Llama-2 70B", "llama1_65b": "Llama-1 65B", "llama3_70b_fp8": "Llama-3 70B fp8",
    "llama3_8b": "Llama-3 8B", "qwen2_5_7b": "Qwen2.5-7B",
}  # fmt: skip


@cache
def models() -> dict[str, dict[str, str]]:
    lines = (ROOT / "data/inputs/models.csv").read_text(encoding="utf-8").splitlines()
    return {row["model"]: row for row in csv.DictReader(line for line in lines if not line.startswith("#"))}


@cache
def platform() -> dict[str, dict]:
    return yaml.safe_load((ROOT / "data/inputs/platform.yaml").read_text(encoding="utf-8"))


def exact(name: str) -> Fraction:
    """A stated input, without a binary rounding."""
    return Fraction(str(platform()[name]["value"]))


def listed(name: str) -> list[Fraction]:
    return [Fraction(str(item)) for item in platform()[name]["value"]]


def of_model(name: str, column: str) -> int:
    return int(models()[NAMES[name]][column])


def kv_bytes(name: str, tokens: int) -> int:
    """Size of the arrays that hold keys and values: broadcast, so that no memory is taken."""
    element = np.zeros((), dtype={1: np.uint8, 2: np.float16}[of_model(name, "bytes_per_element")])
    shape = (of_model(name, "layers"), of_model(name, "kv_heads"), tokens, of_model(name, "head_dim"))
    return sum(np.broadcast_to(element, shape).nbytes for _ in ("keys", "values"))


CONTEXT = {"4k": 4096, "8k": 8192, "32k": 32768, "128k": 131072, "512k": 524288, "1m": 1048576}


@second_opinion("analytic.kv.*")
def kv(key: str):
    _, _, name, *rest, unit = key.split(".")
    if rest:
        return kv_bytes(name, CONTEXT[rest[0]]) / {"gb": GB, "gib": GIB}[unit]
    tokens = int(exact("block_tokens")) if unit == "block_mib" else 1
    size = kv_bytes(name, tokens)
    return size if unit == "bytes_per_token" else size / {"block_mib": MIB, "kib_per_token": KIB}[unit]


def weights(name: str) -> int:
    """Parameters times two bytes: the stated size is a product."""
    return of_model(name, "parameters") * 2


@second_opinion("analytic.weights.*.gib")
def weights_gib(key: str):
    return weights(key.split(".")[2]) / GIB


@second_opinion("analytic.crossover.*.tokens")
def crossover(key: str):
    """The last whole token by bisection, then the rest of the weights as a part of one."""
    name, low, high = key.split(".")[2], 0, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kv_bytes(name, middle) <= weights(name) else (low, middle)
    return low + (weights(name) - kv_bytes(name, low)) / kv_bytes(name, 1)


def memory(where: str) -> Fraction:
    region = (exact("hbm_pinned") + exact("hbm_evictable")) * GB
    cxl = exact("cxl_endpoints") * exact("cxl_endpoint_capacity") * GB
    node = exact("node_gpus") * exact("node_gpu_capacity") * GIB - weights("llama3_70b") - exact("node_workspace") * GIB
    return {
        "as_weights": Fraction(weights("llama3_70b")),
        "baseline_hbm": exact("baseline_gpus") * exact("hbm_capacity") * GB,
        "hbm_and_cxl": exact("hbm_capacity") * GB + cxl,
        "hbm_kv_region": region,
        "hbm_kv_region_and_cxl": region + cxl,
        "node": node,
    }[where]


@second_opinion("analytic.concurrency.*")
def concurrency(key: str):
    """Whole contexts by handing out memory until the next does not fit."""
    _, _, where, context, form = key.split(".")
    left, size, fit = memory(where), kv_bytes("llama3_70b", CONTEXT[context]), 0
    if form == "exact":
        return float(left / size)
    while left >= size:
        left, fit = left - size, fit + 1
    return fit


@second_opinion("analytic.users.*")
def users(key: str):
    _, _, count, form = key.split(".")
    kv = sum(kv_bytes("llama3_70b", CONTEXT["128k"]) for _ in range(int(count)))
    total = kv + weights("llama3_70b") + exact("hbm_activations") * GB
    hbm, cxl = exact("hbm_capacity") * GB, exact("cxl_endpoints") * exact("cxl_endpoint_capacity") * GB
    forms = {
        "kv_gb": Fraction(kv, GB),
        "total_gb": total / GB,
        "free_gb": (hbm - total) / GB,
        "over_hbm": total / hbm,
        "cxl_percent": 100 * kv / cxl,
    }
    return float(forms[form])


@second_opinion("analytic.hbm.kv_gb")
def hbm_kv(_: str):
    """What is planned for neither weights nor activations."""
    left = exact("hbm_capacity") - Fraction(weights("llama3_70b"), GB) - exact("hbm_activations")
    assert left == exact("hbm_pinned") + exact("hbm_evictable")
    return int(left)


@second_opinion("analytic.cxl.capacity_gb", "analytic.tier.t2.capacity_gb", "analytic.tier.t3.capacity_gb")
def endpoints(key: str):
    kind = "nvme" if "t3" in key else "cxl"
    return sum(int(exact(f"{kind}_endpoint_capacity")) for _ in range(int(exact(f"{kind}_endpoints"))))


@second_opinion("analytic.expansion.*")
def expansion(key: str):
    hbm, cxl = exact("hbm_capacity"), sum(exact("cxl_endpoint_capacity") for _ in range(int(exact("cxl_endpoints"))))
    return {"ratio": float(1 + cxl / hbm), "cxl_over_hbm": float(cxl / hbm), "total_gb": int(hbm + cxl)}[key.split(".")[2]]


@second_opinion("analytic.decode.read_gb", "analytic.decode.strawman_tbps", "analytic.decode.hbm_ms")
def decode(key: str):
    read = Fraction(weights("llama3_70b") + kv_bytes("llama3_70b", CONTEXT["128k"]))
    per_s = read / (exact("decode_budget") / 1000)
    return float(
        {"read_gb": read / GB, "strawman_tbps": per_s / 10**12, "hbm_ms": 1000 * read / (exact("hbm_bandwidth") * GB)}[key.split(".")[2]]
    )


@second_opinion("analytic.ema.alpha*")
def half_life(key: str):
    """By bisection on how much of a score is left, not by its logarithm."""
    _, _, alpha, form = key.split(".")
    alpha = float(f"0.{alpha.removeprefix('alpha0')}")
    low, high = 0.0, 1e5
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - alpha) ** middle > 0.5 else (low, middle)
    return low if form == "half_life_steps" else low / float(exact("decode_rate"))


@second_opinion("analytic.ema.example.*")
def ema_example(key: str):
    """The weighted sum that the recursion unrolls to."""
    _, _, _, token, alpha, step = key.split(".")
    attention, alpha = listed(f"ema_example_{token}"), Fraction(f"0.{alpha.removeprefix('alpha0')}")
    steps = int(step.removeprefix("step"))
    return float(sum(alpha * (1 - alpha) ** (steps - at) * attention[at] for at in range(steps + 1)))


@second_opinion("analytic.gqa.block_*")
def positions(key: str):
    """Positions of a context, dealt out to blocks."""
    _, _, block, which = key.split(".")
    tokens = int(exact("block_tokens"))
    held = [position for position in range(int(exact("state_context"))) if position // tokens == int(block.removeprefix("block_"))]
    return {"first_position": min, "last_position": max}[which](held)


@second_opinion(*(f"analytic.gqa.{name}" for name in (
    "blocks", "queries_per_kv_head", "score_streams", "state_bytes", "state_kib", "state_percent", "retracted_state_mib",
    "retracted_state_percent", "reserved_bytes_per_block",
)))  # fmt: skip
def gqa(key: str):
    layers, heads, tokens = of_model("llama3_70b", "layers"), of_model("llama3_70b", "kv_heads"), int(exact("state_context"))
    blocks = len(range(0, tokens, int(exact("block_tokens"))))
    state = np.broadcast_to(np.zeros((), dtype=np.uint8), (blocks, int(exact("state_size")))).nbytes
    scores = np.broadcast_to(np.zeros((), dtype=f"V{exact('state_per_head_position')}"), (layers, heads, tokens)).nbytes
    used = sum(exact(f"state_{field}") for field in ("identity", "score", "timestamp", "count"))
    return {
        "blocks": blocks,
        "queries_per_kv_head": of_model("llama3_70b", "query_heads") // heads,
        "score_streams": np.broadcast_to(0, (layers, heads)).size,
        "state_bytes": state,
        "state_kib": state / KIB,
        "state_percent": 100 * state / kv_bytes("llama3_70b", tokens),
        "retracted_state_mib": scores / MIB,
        "retracted_state_percent": 100 * scores / kv_bytes("llama3_70b", tokens),
        "reserved_bytes_per_block": int(exact("state_size") - used),
    }[key.split(".")[2]]


@second_opinion("analytic.prefetch.window_ms")
def window(_: str):
    return int(exact("decode_budget") - exact("decode_compute"))


@second_opinion("analytic.prefetch.*gbps.*")
def prefetch(key: str):
    """Whole positions by counting down the bytes that the window carries."""
    _, _, bandwidth, form = key.split(".")
    carried = Fraction(window(key), 1000) * int(bandwidth.removesuffix("gbps")) * GB
    token = kv_bytes("llama3_70b", 1)
    whole = max(count for count in range(20_000) if count * token <= carried)
    block = kv_bytes("llama3_70b", int(exact("block_tokens")))
    return {"gb": float(carried / GB), "positions": float(carried / token), "whole_positions": whole, "blocks": float(carried / block)}[
        form
    ]


def moved_us(gbps: Fraction) -> Fraction:
    """Time of a block on a link, from the nanoseconds that a byte takes [µs]."""
    return kv_bytes("llama3_70b", int(exact("block_tokens"))) * (1 / gbps) / 1000


def computed_ms(mfu: Fraction) -> Fraction:
    """Time of a block's forward compute, two operations a parameter and token [ms]."""
    operations = sum(2 * of_model("llama3_70b", "parameters") for _ in range(int(exact("block_tokens"))))
    return operations / (mfu * exact("peak_compute") * 10**12) * 1000


def mfu_of(word: str) -> Fraction:
    return Fraction(int(word.removeprefix("mfu")), 100)


@second_opinion("analytic.transfer.*gbps.us")
def transfer(key: str):
    return float(moved_us(Fraction(int(key.split(".")[2].removesuffix("gbps")))))


@second_opinion("analytic.regeneration.mfu*.ms")
def regeneration(key: str):
    return float(computed_ms(mfu_of(key.split(".")[2])))


@second_opinion("analytic.regeneration.simulator_mfu")
def simulator_mfu(_: str):
    return float(100 * exact("simulator_compute") / exact("peak_compute"))


BANDWIDTHS = ("cxl_bandwidth_low", "cxl_link_bandwidth", "cxl_bandwidth_high")


def over_move() -> list[Fraction]:
    return [1000 * computed_ms(mfu) / moved_us(exact(name)) for mfu in listed("mfu") for name in BANDWIDTHS]


@second_opinion("analytic.regenerate_over_move.*")
def regenerate_over_move(key: str):
    """Both are products of one power each, so the ends of the range are found by trying all pairs."""
    _, _, form, *bandwidth = key.split(".")
    if form in ("min", "max"):
        return float({"min": min, "max": max}[form](over_move()))
    if form == "from_printed_times":
        slowest, link = computed_ms(min(listed("mfu"))), moved_us(exact("cxl_link_bandwidth"))
        return float(f"{float(slowest):.1f}") * 1000 / float(f"{float(link):.0f}")
    return float(1000 * computed_ms(mfu_of(form)) / moved_us(Fraction(int(bandwidth[0].removesuffix("gbps")))))


@second_opinion("analytic.tier.hbm_over_cxl_bandwidth.*")
def bandwidth_ratio(key: str):
    return float(exact("hbm_bandwidth") / exact(f"cxl_bandwidth_{key.split('.')[3]}"))


@second_opinion("analytic.tier.t2.links_for_high_bandwidth")
def links(_: str):
    return float(exact("cxl_bandwidth_high") / exact("cxl_link_bandwidth"))


STATED = {
    "analytic.regeneration.peak_tflops": "peak_compute",
    "analytic.tier.cxl_link_gbps": "cxl_link_bandwidth",
    "analytic.tier.t2.bandwidth_high_gbps": "cxl_bandwidth_high",
    "analytic.tier.t2.bandwidth_low_gbps": "cxl_bandwidth_low",
    "analytic.tier.t2.latency_ns": "cxl_latency",
}


@second_opinion(*STATED)
def stated(key: str):
    """Read as text from the file, not through a parser of inputs."""
    line = next(
        line for line in (ROOT / "data/inputs/platform.yaml").read_text(encoding="utf-8").splitlines() if line.startswith(f"{STATED[key]}:")
    )
    return int(re.search(r"value: (\d+)", line)[1])


@second_opinion("analytic.rope.base*.theta_*")
def theta(key: str):
    """One ratio multiplied up, not a power for each pair."""
    _, _, base, pair = key.split(".")
    ratio = math.exp(-2 / 128 * math.log(int(base.removeprefix("base"))))
    return math.prod(ratio for _ in range(int(pair.removeprefix("theta_"))))


@second_opinion("analytic.rope.base*.envelope.*")
def envelope(key: str):
    """Partial sums of the rotary phases as complex numbers, added one by one."""
    _, _, base, _, distance = key.split(".")
    step, total, sizes = -2 / 128 * math.log(int(base.removeprefix("base"))), 0j, []
    for pair in range(64):
        angle = int(distance) * math.exp(pair * step)
        total += complex(math.cos(angle), math.sin(angle))
        sizes.append(abs(total))
    # At distance 0 the sum after j pairs is j.
    return math.fsum(sizes) / sum(range(1, 65))


@second_opinion("analytic.softmax.*")
def softmax(key: str):
    """As odds against each other token, not by a common normaliser."""
    _, _, token, form = key.split(".")
    scores = dict(zip(platform()["softmax_tokens"]["value"], listed("softmax_scores"), strict=True))
    if form == "share_percent":
        return float(100 * scores[token] / sum(scores.values()))
    return 100 / math.fsum(math.exp(float(other - scores[token])) for other in scores.values())
