"""Part 10: the four tiers, and what of a long context fits into which."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10, sqrt

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words
from kvtier.publish.facts import Both, Fact


@dataclass(frozen=True)
class _Tier:
    """A tier as its row shows it."""

    name: str
    medium: str
    holds: str
    capacity: Fact | Both
    gb: float
    latency: Fact
    latency_ns: float
    tone: str


def _tiers(canvas: Canvas) -> list[_Tier]:
    facts = canvas.facts
    near, far, last = (facts.stated(f"appendix.s10.{name}_latency") for name in ("hbm", "cxl", "nvme"))
    shown = (
        ("T0", "pinned HBM", "anchor tokens, staging, block state", facts.stated("appendix.s10.tier0"), near, "blue"),
        ("T1", "evictable HBM", "KV of the sequences that decode now", facts.stated("appendix.s10.tier1"), near, "blue"),
        ("T2", "CXL DRAM", "KV of sequences that wait", facts.both("appendix.s10.cxl_capacity"), far, "green"),
        ("T3", "NVMe", "cold KV, and a copy of everything above", facts.both("appendix.s10.nvme_capacity"), last, "ochre"),
    )
    # Sizes for the marks, in one unit each: what is printed has several.
    return [
        _Tier(
            name, medium, holds, capacity, facts.quote(f"analytic.tier.{name.lower()}.capacity_gb").value,
            latency, facts.quote(f"analytic.tier.{name.lower()}.latency_ns").value, tone,
        )
        for name, medium, holds, capacity, latency, tone in shown
    ]  # fmt: skip


class _Decades:
    """A logarithmic axis: a faint line each decade, of which no number is typed."""

    def __init__(self, canvas: Canvas, left: float, right: float, low: float, high: float) -> None:
        self.canvas, self.left, self.low = canvas, left, log10(low)
        self.step = (right - left) / (log10(high) - self.low)
        self.decades = round(log10(high) - self.low)

    def at(self, value: float) -> float:
        """Place of a value [px]."""
        return self.left + (log10(value) - self.low) * self.step

    def lines(self, top: float, bottom: float) -> None:
        """Draw the decades."""
        for decade in range(self.decades + 1):
            self.canvas.line(self.left + decade * self.step, top, self.left + decade * self.step, bottom, tone="faint")

    def mark(self, value: float, y: float, *, tone: str, sure: bool) -> None:
        """A diamond: solid from a data sheet, hollow if assumed."""
        x, r = self.at(value), 5.5
        d = f"M{x:.2f} {y - r:.2f}L{x + r:.2f} {y:.2f}L{x:.2f} {y + r:.2f}L{x - r:.2f} {y:.2f}Z"
        self.canvas.path(d, bottom=y + r, fill=tone if sure else "paper", stroke=tone, thick=1.5)


def _area(canvas: Canvas, y: float, long: float, tone: str) -> None:
    """A square that stands for a capacity; a small one is filled, to be seen."""
    canvas.rect(0, y, long, long, fill=f"{tone}-tint" if long > 12 else tone, stroke=tone if long > 12 else "none", radius=0)


def hierarchy(canvas: Canvas) -> None:
    """A row a tier: a square with the area of its capacity, what it holds, its access time and bandwidth on logarithmic axes."""
    (_hierarchy_narrow if canvas.narrow else _hierarchy_wide)(canvas)


def _hierarchy_wide(canvas: Canvas) -> None:
    facts, rows = canvas.facts, _tiers(canvas)
    side = 132 / sqrt(max(row.gb for row in rows))
    text, top, tall = 172, 44, 62
    times, rates = _Decades(canvas, 424, 544, 1e2, 1e5), _Decades(canvas, 600, 720, 1e1, 1e4)
    heights = [max(tall, side * sqrt(row.gb) + 20) for row in rows]
    bottom = top + sum(heights) - 8
    for x, words, note in (
        (0, "Capacity", "areas to scale"),
        (text, "What lives there", ""),
        (times.left, "Access time", "log scale, assumed"),
        (rates.left, "Bandwidth", "log scale"),
    ):
        canvas.text(x, 12, words, weight=600)
        canvas.text(x, 28, note, size=12, tone="muted")
    for axis in (times, rates):
        axis.lines(top, bottom)
    y = top
    for row, height in zip(rows, heights, strict=True):
        long, middle = side * sqrt(row.gb), y + 26
        canvas.line(0, y, canvas.width, y, tone="faint")
        _area(canvas, y + 10, long, row.tone)
        canvas.text(text, y + 22, [f"{row.name}  ", row.medium], weight=600)
        canvas.text(times.left - 24, y + 22, [row.capacity], anchor="end", weight=600)
        canvas.paragraph(text, y + 41, 224, row.holds, size=12.5, tone="muted")
        times.mark(row.latency_ns, middle, tone=row.tone, sure=False)
        end = times.at(row.latency_ns) > times.left + 80
        canvas.text(
            times.at(row.latency_ns) + (-11 if end else 11),
            middle + 4.5,
            [row.latency],
            size=12.5,
            anchor="end" if end else "start",
            rim="paper",
        )
        if row.name in ("T0", "T1"):
            bandwidth = facts.stated("appendix.s09.hbm_bandwidth")
            x = rates.at(1000 * bandwidth.value)
            rates.mark(1000 * bandwidth.value, middle, tone=row.tone, sure=True)
            canvas.text(x - 11, middle + 4.5, [bandwidth], size=12.5, anchor="end", rim="paper")
        elif row.name == "T2":
            low, high = (facts.num(f"analytic.tier.t2.bandwidth_{end}_gbps").value for end in ("low", "high"))
            canvas.rect(
                rates.at(low), middle - 4.5, rates.at(high) - rates.at(low), 9, fill="green-tint", stroke="green", dash="3 3", radius=0
            )
            canvas.text(rates.at(low), middle + 23, [facts.stated("appendix.s10.tier_bandwidth")], size=12.5, rim="paper")
        else:
            canvas.text(rates.left, middle + 4.5, "not stated", size=12.5, tone="muted", rim="paper")
        y += height
        if row.name in ("T1", "T2"):
            canvas.arrow(144, y - 12, 144, y + 12, tone="ink")
            canvas.arrow(154, y + 12, 154, y - 12, tone="ink")
    canvas.line(0, y - 8, canvas.width, y - 8, tone="faint")
    notes = ("Down: demoted. Up: fetched.", "Solid mark: data sheet. Hollow: assumed.", "From one vertical line to the next: ten times.")
    for index, words in enumerate(notes):
        canvas.text(text, y - 56 + 17 * index, words, size=12, tone="muted")


def _hierarchy_narrow(canvas: Canvas) -> None:
    facts, rows = canvas.facts, _tiers(canvas)
    side = 96 / sqrt(max(row.gb for row in rows))
    text, y = 112, 30
    canvas.text(0, 12, "Areas to scale. All access times are assumed.", size=12.5)
    for row in rows:
        long = side * sqrt(row.gb)
        canvas.line(0, y, canvas.width, y, tone="faint")
        _area(canvas, y + 12, long, row.tone)
        canvas.text(text, y + 22, [f"{row.name}  ", row.medium], weight=600)
        canvas.text(canvas.width, y + 22, [row.capacity], anchor="end", weight=600)
        at = canvas.paragraph(text, y + 41, canvas.width - text, row.holds, size=12.5, tone="muted")
        rate: Words = "not stated"
        if row.name in ("T0", "T1"):
            rate = [facts.stated("appendix.s09.hbm_bandwidth")]
        elif row.name == "T2":
            rate = [facts.stated("appendix.s10.tier_bandwidth"), ", assumed"]
        canvas.text(text, at + 20, ["access ", row.latency], size=12.5)
        canvas.text(text, at + 38, ["bandwidth ", *([rate] if isinstance(rate, str) else rate)], size=12.5)
        y = max(at + 54, y + long + 26)
    canvas.line(0, y, canvas.width, y, tone="faint")


def layout(canvas: Canvas) -> None:
    """HBM and CXL as bars to one scale, and HBM once more enlarged; the KV of the package's contexts in CXL."""
    facts, narrow = canvas.facts, canvas.narrow
    cxl, hbm = facts.num("analytic.cxl.capacity_gb"), facts.num("analytic.hbm.capacity_gb")
    parts = {name: facts.num(f"analytic.hbm.{name}_gb") for name in ("weights", "activations", "pinned", "evictable")}
    tones = {"weights": "grey", "activations": "ochre-tint", "pinned": "blue-tint", "evictable": "blue-tint"}
    large, scale = canvas.width / hbm.value, canvas.width / cxl.value
    context = facts.num("analytic.kv.llama3_70b.128k.gb").value

    def hbm_bar(top: float, tall: float, strip: float, each: float) -> None:
        x = 0.0
        for name, part in parts.items():
            canvas.rect(x, top, part.value * each, tall, fill=tones[name], radius=0)
            x += part.value * each
        canvas.rect((parts["weights"].value + parts["activations"].value) * each, top, context * each, strip, fill="blue", radius=0)
        canvas.rect(0, top, hbm.value * each, tall, stroke="muted", radius=0)

    # HBM, enlarged.
    canvas.text(
        0, 12, ["HBM, enlarged: " if narrow else "HBM of one device, enlarged: ", facts.stated("appendix.s09.hbm_capacity")], weight=600
    )
    canvas.text(
        canvas.width, 12, "dark: one context" if narrow else "dark: the KV of one context of 128K", anchor="end", size=12.5, tone="blue"
    )
    y, tall = 22, 44
    hbm_bar(y, tall, 10, large)
    starts = {"activations": parts["weights"].value, "pinned": parts["weights"].value + parts["activations"].value}
    starts["evictable"] = starts["pinned"] + parts["pinned"].value
    for name in ("pinned", "evictable"):
        canvas.line(starts[name] * large, y + (10 if name == "evictable" else 0), starts[name] * large, y + tall, tone="muted")
    canvas.text(12, y + 27, ["weights ", facts.published("appendix.s10.weights")])
    evictable = (starts["evictable"] + parts["evictable"].value / 2) * large
    if narrow:
        canvas.text(evictable, y + 31, [facts.stated("appendix.s10.tier1")], size=12, anchor="middle")
    else:
        canvas.text(evictable, y + 31, ["evictable ", facts.stated("appendix.s10.tier1")], anchor="middle")
    under = y + tall
    for name, claim, drop, words in (
        ("activations", "appendix.s10.activations", 18, "activations "),
        ("pinned", "appendix.s10.tier0", 36, "pinned "),
    ):
        at = (starts[name] + parts[name].value / 2) * large
        left = narrow or name == "activations"
        canvas.line(at, under, at, under + (drop if narrow else 18), tone="muted")
        canvas.text(
            at - 5 if left else at + 5,
            under + (drop if narrow else 18),
            [words, facts.stated(claim)],
            size=12.5,
            anchor="end" if left else "start",
        )
    # From the enlarged bar to the same bar at the scale of CXL.
    y = under + (68 if narrow else 56)
    small = hbm.value * scale
    canvas.path(f"M0 {under + 4}V{y - 4}", bottom=y, stroke="faint", dash="3 3")
    canvas.path(f"M{canvas.width} {under + 4}V{under + (42 if narrow else 28)}L{small:.2f} {y - 4}", bottom=y, stroke="faint", dash="3 3")
    hbm_bar(y, 26, 6, scale)
    canvas.text(small + 10, y + 17, "the same, to the scale of the bar below", size=12.5, tone="muted")
    # CXL.
    y += 56
    canvas.text(0, y, ["CXL DRAM: ", facts.stated("appendix.s10.endpoints")], weight=600)
    canvas.text(canvas.width, y, [facts.both("appendix.s10.cxl_capacity_gb")], anchor="end", weight=600)
    y += 10
    canvas.rect(0, y, canvas.width, 44, fill="green-tint", stroke="green", radius=0)
    each, count = context * scale, int(facts.published("appendix.s10.contexts").value)
    for index in range(count):
        canvas.rect(index * each + 1, y + 4, each - 2, 36, fill="blue", radius=0)
    used = count * each
    canvas.text((used + canvas.width) / 2, y + 27, "free", size=12.5, anchor="middle")
    y += 44
    canvas.bracket(1, each - 1, y + 5, depth=5)
    canvas.text(each + 8, y + 18, ["one context of 128K: ", facts.both("appendix.s10.kv_128k_gb")], size=12.5)
    canvas.bracket(1, used - 1, y + 30, depth=5)
    whole = [
        facts.published("appendix.s10.contexts"),
        ": ",
        facts.both("appendix.s10.kv_total"),
        ", ",
        facts.both("appendix.s10.kv_share"),
        " of the tier",
    ]
    canvas.text(1, y + 52, whole, size=12.5, weight=600)


DIAGRAMS = (
    Diagram(
        "10.1", "four_tiers", "Four tiers, from pinned HBM to NVMe", hierarchy,
        alt=(
            'Pinned HBM: {{ stated("appendix.s10.tier0") }}. Evictable HBM: {{ stated("appendix.s10.tier1") }}. Both '
            '{{ stated("appendix.s10.hbm_latency") }} to access, assumed, at {{ stated("appendix.s09.hbm_bandwidth") }}. CXL DRAM: '
            '{{ both("appendix.s10.cxl_capacity") }}, {{ stated("appendix.s10.cxl_latency") }}, '
            '{{ stated("appendix.s10.tier_bandwidth") }}, all assumed. NVMe: {{ both("appendix.s10.nvme_capacity") }}, '
            '{{ stated("appendix.s10.nvme_latency") }}, assumed; its bandwidth is not stated.'
        ),
        caption=(
            "HBM holds the weights besides; they have no tier. An access time says when the first bytes come. A block is so large "
            "that bandwidth decides when the last do."
        ),
        source="the package's plan",
        limits="No tier was measured. Capacities are planned, access times assumed.",
    ),
    Diagram(
        "10.2", "memory_layout", "Where the KV of long contexts would lie", layout,
        alt=(
            'HBM of {{ stated("appendix.s09.hbm_capacity") }}: weights {{ printed("appendix.s10.weights") }}, activations '
            '{{ stated("appendix.s10.activations") }}, pinned {{ stated("appendix.s10.tier0") }}, evictable '
            '{{ stated("appendix.s10.tier1") }}. CXL of {{ both("appendix.s10.cxl_capacity_gb") }} with the KV of '
            '{{ printed("appendix.s10.contexts") }} of 128K, {{ both("appendix.s10.kv_128k_gb") }} each and '
            '{{ both("appendix.s10.kv_total") }} together, {{ both("appendix.s10.kv_share") }} of the tier.'
        ),
        caption=(
            "Capacity arithmetic, not users served: under dense attention a context must be in HBM whole for each of its steps. "
            'Pinned and evictable HBM, {{ num("analytic.hbm.kv_gb") }}, hold '
            '{{ num("analytic.concurrency.hbm_kv_region.128k.whole") }} such context at a time.'
        ),
        source="Llama-3 70B, B200",
    ),
)  # fmt: skip
