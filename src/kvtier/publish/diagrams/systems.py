"""Part 16: memory of the two systems, to scale, with the contexts that it holds."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words, measure
from kvtier.publish.facts import Both, Fact


@dataclass(frozen=True)
class Stretch:
    """A memory of a system: its size, how it is drawn, and whether the published count has it."""

    name: str
    size: Fact
    gigabytes: float
    fill: str
    tone: str
    counted: bool = True
    parts: int = 1


def contexts_in(gigabytes: float, context_gb: float) -> int:
    """Whole contexts that a memory holds."""
    return int(gigabytes // context_gb)


def _system(
    canvas: Canvas, y: float, title: str, hardware: Words, count: Both, stretches: tuple[Stretch, ...], scale: float, context: float
) -> float:
    """One system: its memories end to end, contexts as cells; returns where the next thing may start."""
    narrow = canvas.narrow
    tall = 40 if narrow else 52
    canvas.text(0, y, title, size=15, weight=600)
    canvas.text(canvas.width, y, [count], size=15, weight=600, anchor="end")
    canvas.text(0, y + 19, hardware, size=12.5, tone="muted")
    canvas.text(
        canvas.width, y + 19, "contexts of 128K, by capacity" if not narrow else "contexts of 128K", size=12.5, anchor="end", tone="muted"
    )
    top, x = y + 32, 0.0
    for stretch in stretches:
        wide = stretch.gigabytes * scale
        canvas.rect(x, top, wide, tall, fill=stretch.fill, stroke=stretch.tone, radius=0, dash="" if stretch.counted else "4 3")
        for part in range(1, stretch.parts):
            canvas.line(x + part * wide / stretch.parts, top, x + part * wide / stretch.parts, top + tall, tone=stretch.tone)
        x += wide
    counted = sum(stretch.gigabytes for stretch in stretches if stretch.counted)
    inset = 5 if narrow else 7
    # Cells lie over the memories that are counted as over one: where two meet, a context lies in both.
    for cell in range(contexts_in(counted, context)):
        left = cell * context * scale
        canvas.rect(left + 1, top + inset, context * scale - 2, tall - 2 * inset, fill="blue", radius=0)
    start = counted * scale
    for stretch in stretches:
        if not stretch.counted:
            for cell in range(contexts_in(stretch.gigabytes, context)):
                left = start + cell * context * scale
                canvas.rect(left + 1, top + inset, context * scale - 2, tall - 2 * inset, stroke="faint", radius=0)
    x = free = 0.0
    base = top + tall + 17
    for stretch in stretches:
        at = max(x, free)
        canvas.text(at, base, stretch.name, size=12.5)
        canvas.text(at, base + 17, stretch.size, size=12.5, weight=600)
        free = at + max(measure(stretch.name, 12.5), measure(stretch.size.text, 12.5, 600)) + 14
        x += stretch.gigabytes * scale
    return base + 17


def comparison(canvas: Canvas) -> None:
    """Baseline and proposal, memory to one scale, each context a cell; host memory drawn though the count leaves it out."""
    facts, narrow = canvas.facts, canvas.narrow
    context = facts.num("analytic.kv.llama3_70b.128k.gb")
    baseline_hbm, host = facts.published("appendix.s16.baseline_hbm"), facts.stated("appendix.s16.host_dram")
    hbm, cxl = facts.num("analytic.hbm.capacity_gb"), facts.num("analytic.cxl.capacity_gb")
    devices = facts.stated("appendix.s16.baseline_gpus")
    host_gb = 1000 * host.value
    baseline = (
        Stretch("HBM", baseline_hbm, baseline_hbm.value, "blue-tint", "blue", parts=int(devices.value)),
        Stretch("host DRAM" if narrow else "host DRAM, left out of the published count", host, host_gb, "grey", "muted", counted=False),
    )
    proposal = (Stretch("HBM", hbm, hbm.value, "blue-tint", "blue"), Stretch("CXL DRAM", cxl, cxl.value, "green-tint", "green"))
    scale = (canvas.width - 1) / (baseline_hbm.value + host_gb)
    y = 16.0
    y = _system(canvas, y, "Baseline", ["B200: ", devices], facts.both("appendix.s16.baseline_contexts"), baseline, scale, context.value)
    if narrow:
        y = canvas.paragraph(0, y + 22, canvas.width, "The published count leaves host DRAM out.", size=12.5, tone="rose")
    y += 44
    endpoints = facts.stated("appendix.s16.endpoints")
    hardware: Words = ["one B200, ", endpoints] if narrow else ["one B200, a CXL switch, ", endpoints]
    note = "One context lies across HBM and CXL DRAM: counted in each by itself, one fewer fits."
    if not narrow:
        x = (hbm.value + cxl.value) * scale + 28
        canvas.paragraph(x, y + 46, canvas.width - x, note, size=12.5, tone="muted")
    y = _system(canvas, y, "Proposal", hardware, facts.both("appendix.s16.contexts"), proposal, scale, context.value)
    if narrow:
        y = canvas.paragraph(0, y + 22, canvas.width, note, size=12.5, tone="muted")
    # What the cells are, and what is not taken off.
    y += 38
    weights = facts.num("analytic.hbm.weights_gb")
    keys: tuple[tuple[float, str, str, Words], ...] = (
        (context.value, "blue", "none", ["KV of one 128K context, ", context]),
        (weights.value, "grey", "muted", ["weights, ", weights, ": subtracted nowhere"]),
    )
    x = 0.0
    for size, fill, stroke, words in keys:
        canvas.rect(x, y - 12, size * scale, 15, fill=fill, stroke=stroke, radius=0)
        wide = canvas.text(x + size * scale + 8, y, words, size=12.5)
        if narrow:
            y += 24
        else:
            x += size * scale + 8 + wide + 36
    canvas.space(y - (20 if narrow else 0) + 4)


DIAGRAMS = (
    Diagram(
        "16.1", "systems", "Two systems, memory to scale", comparison,
        alt=(
            'Memory of two systems to one scale, with contexts of 128K as cells of {{ num("analytic.kv.llama3_70b.128k.gb") }}. '
            'Baseline: {{ stated("appendix.s16.baseline_gpus") }} B200 with {{ printed("appendix.s16.baseline_hbm") }} of HBM, '
            'which holds {{ both("appendix.s16.baseline_contexts") }}, and {{ stated("appendix.s16.host_dram") }} of host DRAM, '
            'which the count leaves out. Proposal: {{ num("analytic.hbm.capacity_gb") }} of HBM and {{ '
            'num("analytic.cxl.capacity_gb") }} of CXL DRAM, which hold {{ both("appendix.s16.contexts") }}.'
        ),
        caption=(
            'Whole contexts over all memory counted, weights not subtracted: a capacity, and no number of users served. Outlined '
            'cells are contexts that the host DRAM of the baseline would hold ({{ verdict("appendix.s16.baseline_contexts") }}).'
        ),
        source="Llama-3 70B, fp16",
        limits="Capacity alone: bandwidth, scheduling and cost are not in it.",
    ),
)  # fmt: skip
