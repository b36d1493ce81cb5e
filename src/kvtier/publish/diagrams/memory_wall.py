"""Part 5: what one device holds with one long context, and with several."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas
from kvtier.publish.facts import Both, Fact

COUNTS = (("1", "one context"), ("2", "two contexts"), ("4", "four contexts"), ("8", "eight contexts"))
KV_128K = "analytic.kv.llama3_70b.128k.gb"


def stretches(count: int, each: float, start: float, limit: float) -> list[tuple[float, float, bool]]:
    """`count` pieces of length `each` from `start` on, cut where `limit` falls into one: (from, to, whether beyond the limit)."""
    found = []
    for index in range(count):
        low, high = start + index * each, start + (index + 1) * each
        if low < limit < high:
            found += [(low, limit, False), (limit, high, True)]
        else:
            found.append((low, high, low >= limit))
    return found


def one_context(canvas: Canvas) -> None:
    """The HBM of one device, to scale: a bar on a page, a column on a telephone."""
    facts = canvas.facts
    hbm, left_for_kv = facts.stated("appendix.s05.hbm"), facts.num("analytic.hbm.kv_gb")
    used, free = facts.both("appendix.s05.users_1"), facts.both("appendix.s05.free")
    weights, activations = facts.both("appendix.s05.weights", key="analytic.hbm.weights_gb"), facts.stated("appendix.s05.activations")
    kv = facts.both("appendix.s05.kv_128k")
    if canvas.narrow:
        _column(canvas, hbm, left_for_kv, used, free, weights, activations, kv)
        return
    scale = canvas.width / hbm.value
    fixed, kept, end = weights.value * scale, (weights.value + activations.value) * scale, used.value * scale
    canvas.text(0, 14, "Needed for any sequence", size=12.5, tone="muted")
    canvas.text(kept, 14, ["Left for KV: ", left_for_kv], size=12.5, tone="blue")
    canvas.bracket(0.5, kept - 6, 28, up=True)
    canvas.bracket(kept, canvas.width - 0.5, 28, up=True, tone="blue")
    top, tall = 34, 72
    canvas.box(
        0,
        top,
        fixed - 2,
        tall,
        ["Weights: ", weights],
        fill="grey",
        weight=600,
        size=14,
        note="read once in every step, for all sequences together",
    )
    canvas.rect(fixed, top, kept - fixed - 2, tall, fill="ochre-tint")
    per_token = facts.num("analytic.kv.llama3_70b.kib_per_token")
    canvas.box(
        kept, top, end - kept - 2, tall, ["KV: ", kv], fill="blue-tint", weight=600, size=14, note=["128K tokens, ", per_token, " each"]
    )
    canvas.rect(end + 0.5, top + 0.5, canvas.width - end - 1, tall - 1, stroke="muted", dash="3 2")
    foot = top + tall
    for x, words in (((fixed + kept) / 2 - 1, ["activations: ", activations]), ((end + canvas.width) / 2, ["free: ", free])):
        canvas.line(x, foot + 4, x, foot + 14)
        canvas.text(x + 6, foot + 28, words, size=12.5, anchor="end")
    canvas.bracket(0.5, end - 2, foot + 40)
    canvas.text(0, foot + 64, ["In use: ", used, " of ", hbm], weight=600)


def _column(canvas: Canvas, hbm: Fact, left_for_kv: Fact, used: Both, free: Both, weights: Both, activations: Fact, kv: Both) -> None:
    """The same as a column, weights at its foot."""
    top, tall, left, wide = 12, 304, 96, 72
    scale, right = tall / hbm.value, left + wide
    kept = top + (hbm.value - weights.value - activations.value) * scale
    fixed, start = top + (hbm.value - weights.value) * scale, top + (hbm.value - used.value) * scale
    foot = top + tall
    canvas.rect(left + 0.5, top + 0.5, wide - 1, start - top - 2, stroke="muted", dash="3 2", radius=1)
    canvas.rect(left, start, wide, kept - start - 2, fill="blue-tint")
    canvas.rect(left, kept, wide, fixed - kept - 2, fill="ochre-tint", radius=1)
    canvas.rect(left, fixed, wide, foot - fixed, fill="grey")
    for low, high, tone in ((top, kept - 2, "blue"), (kept, foot, "muted")):
        canvas.path(f"M{left - 6} {low + 0.5:.2f}H{left - 12}V{high - 0.5:.2f}H{left - 6}", bottom=high, stroke=tone)
    middle = (top + kept) / 2
    canvas.text(left - 20, middle - 4, "left for KV", size=12, anchor="end", tone="blue")
    canvas.text(left - 20, middle + 12, [left_for_kv], size=12, anchor="end", tone="blue")
    middle = (kept + foot) / 2
    canvas.text(left - 20, middle - 4, "needed for", size=12, anchor="end", tone="muted")
    canvas.text(left - 20, middle + 12, "any sequence", size=12, anchor="end", tone="muted")
    said, per_token = right + 16, canvas.facts.num("analytic.kv.llama3_70b.kib_per_token")
    canvas.line(right + 3, (top + start) / 2 - 1, said - 4, (top + start) / 2 - 1)
    canvas.text(said, (top + start) / 2 + 3, ["free: ", free], size=12.5)
    canvas.text(said, (start + kept) / 2 + 2, ["KV: ", kv], weight=600)
    canvas.text(said, (start + kept) / 2 + 18, [per_token, " a token"], size=12, tone="muted")
    canvas.line(right + 3, (kept + fixed) / 2 - 1, said - 4, (kept + fixed) / 2 - 1)
    canvas.text(said, (kept + fixed) / 2 + 3, ["activations: ", activations], size=12.5)
    canvas.text(said, (fixed + foot) / 2 - 4, ["weights: ", weights], weight=600)
    canvas.text(said, (fixed + foot) / 2 + 12, "read once a step,", size=12, tone="muted")
    canvas.text(said, (fixed + foot) / 2 + 28, "for all sequences", size=12, tone="muted")
    canvas.text(left, foot + 24, ["in use: ", used, " of ", hbm], weight=600)


def several_contexts(canvas: Canvas) -> None:
    """Bars to one scale: weights and activations once, KV once for each context; what lies beyond the HBM in rose."""
    facts, narrow = canvas.facts, canvas.narrow
    hbm, activations = facts.stated("appendix.s05.hbm"), facts.stated("appendix.s05.activations")
    weights = facts.both("appendix.s05.weights", key="analytic.hbm.weights_gb")
    each = facts.num(KV_128K)
    totals = {count: facts.both(f"appendix.s05.users_{count}") for count, _ in COUNTS}
    over = {count: facts.num(f"analytic.users.{count}.over_hbm") for count, _ in COUNTS}
    left, right = (0, 0) if narrow else (108, 116)
    scale = (canvas.width - left - right) / max(total.value for total in totals.values())
    tall, gap = 28, (36 if narrow else 16)
    limit, base = left + hbm.value * scale, weights.value + activations.value
    y = 60 if narrow else 48
    rows = len(COUNTS)
    foot = y + rows * (tall + gap) - gap
    for index, (count, name) in enumerate(COUNTS):
        at = y + index * (tall + gap)
        if narrow:
            canvas.text(0, at - 8, name, size=12.5)
            canvas.text(canvas.width, at - 8, [totals[count], " · ", over[count], " × HBM"], size=12.5, anchor="end")
        else:
            canvas.text(left - 12, at + 18.5, name, anchor="end")
            canvas.text(
                left + totals[count].value * scale + 10, at + 18.5, [totals[count], " · ", over[count], " × HBM"], weight=600, size=12.5
            )
        fixed = weights.value * scale
        if index == 0:
            canvas.box(left, at, fixed - 1, tall, "weights", fill="grey", size=12, pad=2)
        else:
            canvas.rect(left, at, fixed - 1, tall, fill="grey", radius=1)
        canvas.rect(left + fixed, at, max(activations.value * scale - 1, 2), tall, fill="ochre", radius=0)
        for low, high, beyond in stretches(int(count), each.value, base, hbm.value):
            # A cut piece meets itself at the limit; the others stand apart, to be counted.
            apart = 0 if high == hbm.value else 2
            canvas.rect(
                left + low * scale + 1,
                at,
                (high - low) * scale - apart + (0 if low != hbm.value else -1),
                tall,
                fill="rose-tint" if beyond else "blue-tint",
                radius=1,
            )
        if index == 0:
            canvas.text(left + (base + each.value / 2) * scale, at + 18.5, "KV", size=12, anchor="middle")
        if narrow:
            canvas.line(limit, at - 3, limit, at + tall + 3, tone="rose", thick=1.5)
    if narrow:
        canvas.text(limit, 14, ["HBM of one device: ", hbm], size=12.5, tone="rose", anchor="middle")
        canvas.line(limit, 20, limit, 32, tone="rose", thick=1.5)
        canvas.space(foot + 8)
    else:
        canvas.line(limit, 22, limit, foot + 8, tone="rose", thick=1.5)
        canvas.text(limit, 14, ["HBM of one device: ", hbm], size=12.5, tone="rose", anchor="middle")
        canvas.text(limit - 10, foot + 26, "fits", size=12, anchor="end", tone="muted")
        canvas.text(limit + 10, foot + 26, "does not fit", size=12, tone="rose")


DIAGRAMS = (
    Diagram(
        "5.1", "one_context", "One device and one context of 128K, to scale", one_context,
        alt=(
            'HBM of one device, {{ stated("appendix.s05.hbm") }}, as a bar to scale: weights '
            '{{ both("appendix.s05.weights", key="analytic.hbm.weights_gb") }}, activations {{ stated("appendix.s05.activations") }}, '
            'KV of one context of 128K {{ both("appendix.s05.kv_128k") }}, free {{ both("appendix.s05.free") }}. Weights and '
            'activations leave {{ num("analytic.hbm.kv_gb") }} for KV.'
        ),
        caption=(
            "GB are decimal. Activations are a plan, not a measurement. Fragmentation of the allocator, and what the runtime keeps "
            "for itself, are left out: both would have to fit into what is free."
        ),
        source="Llama-3 70B, B200",
    ),
    Diagram(
        "5.2", "several_contexts", "Several contexts of 128K, to scale", several_contexts,
        alt=(
            'Memory for contexts of 128K, weights and activations counted once: one context {{ both("appendix.s05.users_1") }}, two '
            '{{ both("appendix.s05.users_2") }}, four {{ both("appendix.s05.users_4") }}, eight {{ both("appendix.s05.users_8") }}, '
            'which is {{ num("analytic.users.8.over_hbm") }} times the HBM. One device has {{ stated("appendix.s05.hbm") }}: from '
            "two contexts on, KV lies beyond it."
        ),
        caption=(
            'Grey: weights, once. Ochre: activations, {{ stated("appendix.s05.activations") }} at any number, as v6.0 has it; in '
            "truth they grow with the batch. One box: the KV of one context. Each total is given in GB and as a multiple of the HBM. "
            "Contexts share no prefix here."
        ),
        source="Llama-3 70B, B200",
    ),
)  # fmt: skip
