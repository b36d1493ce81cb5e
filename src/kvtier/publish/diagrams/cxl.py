"""Part 9: what sits behind a CXL link, and how it compares with HBM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words

BAND = 100
"""Width of the band that stands for HBM's bandwidth [px]; the link has the same scale."""


def _endpoints(canvas: Canvas) -> int:
    return int(canvas.facts.stated("appendix.s10.endpoints").value)


def _link_width(canvas: Canvas) -> float:
    hbm, link = canvas.facts.num("analytic.hbm.bandwidth_tbps"), canvas.facts.num("analytic.tier.cxl_link_gbps")
    return BAND * link.value / (1000 * hbm.value)


def _legend(canvas: Canvas, x: float, y: float, step: float) -> None:
    """What a solid and a dashed outline say."""
    for index, (dash, words) in enumerate((("", "from a data sheet"), ("3 3", "planned or assumed: not built, not measured"))):
        canvas.rect(x, y + index * step - 10, 18, 12, stroke="muted", dash=dash, radius=2)
        canvas.text(x + 26, y + index * step, words, size=12, tone="muted")


def _memory(canvas: Canvas, kind: str, left: float, top: float, width: float, height: float) -> None:
    """One kind of memory of an endpoint, planned and not built."""
    claim, tone = {"DRAM": ("appendix.s09.endpoint_capacity", "green"), "NVMe": ("appendix.s10.nvme_per_endpoint", "ochre")}[kind]
    look = {"pad": 2, "size": 13.5} if canvas.narrow else {}
    words = [canvas.facts.stated(claim)]
    canvas.box(left, top, width, height, words, fill=f"{tone}-tint", stroke=tone, dash="3 3", note=kind, **look)


def topology(canvas: Canvas) -> None:
    """HBM, device, link, switch and endpoints; HBM's band and the link have widths to one scale."""
    (_topology_narrow if canvas.narrow else _topology_wide)(canvas)


def _topology_wide(canvas: Canvas) -> None:
    facts, thin = canvas.facts, _link_width(canvas)
    endpoints, tall, gap, top = _endpoints(canvas), 52, 12, 28
    height = endpoints * (tall + gap) - gap
    middle = top + height / 2
    canvas.rect(0, middle - 64, 104, 128, fill="blue-tint", stroke="blue")
    canvas.text(52, middle - 16, "HBM", weight=600, anchor="middle")
    canvas.text(52, middle + 4, [facts.stated("appendix.s09.hbm_capacity")], anchor="middle")
    canvas.text(52, middle + 28, [facts.stated("appendix.s09.hbm_latency"), ","], size=12, anchor="middle", tone="muted")
    canvas.text(52, middle + 44, "assumed", size=12, anchor="middle", tone="muted")
    canvas.rect(104, middle - BAND / 2, 72, BAND, fill="blue", radius=0)
    canvas.text(140, middle + 4, [facts.stated("appendix.s09.hbm_bandwidth")], weight=600, anchor="middle", tone="paper")
    canvas.box(176, middle - 64, 80, 128, "B200", fill="grey", stroke="muted", weight=600)
    # The link, and what is assumed of the memory behind it.
    canvas.rect(256, middle - thin / 2, 152, thin, fill="green", radius=0)
    canvas.text(268, middle - 28, "one link, CXL 3.0", size=12.5)
    canvas.text(268, middle - 11, [facts.stated("appendix.s09.link"), " one way"], size=12.5, weight=600)
    canvas.text(268, middle + 22, "behind it, assumed:", size=12.5, tone="muted")
    canvas.text(268, middle + 39, [facts.stated("appendix.s09.tier_bandwidth")], size=12.5, tone="muted")
    canvas.text(268, middle + 56, [facts.stated("appendix.s09.cxl_latency"), " to access"], size=12.5, tone="muted")
    canvas.text(268, middle + 80, ["high end takes ", facts.num("analytic.tier.t2.links_for_high_bandwidth")], size=12.5, tone="rose")
    canvas.box(408, top, 56, height, "switch", fill="paper", stroke="green", dash="3 3")
    left, part = 496, 108
    canvas.text(left, 14, [facts.stated("appendix.s10.endpoints")], weight=600)
    for index in range(endpoints):
        y = top + index * (tall + gap)
        canvas.rect(464, y + tall / 2 - thin / 2, left - 464, thin, fill="green", radius=0)
        _memory(canvas, "DRAM", left, y, part, tall)
        canvas.line(left + part, y + tall / 2, left + part + 8, y + tall / 2, tone="muted")
        _memory(canvas, "NVMe", left + part + 8, y, part, tall)
    y = top + height
    canvas.bracket(left, left + part, y + 6, depth=5, tone="green")
    canvas.bracket(left + part + 8, canvas.width, y + 6, depth=5, tone="ochre")
    canvas.text(left + part / 2, y + 28, [facts.both("appendix.s09.cxl_capacity_gb")], weight=600, anchor="middle")
    canvas.text(left + part * 1.5 + 8, y + 28, [facts.both("appendix.s10.nvme_capacity")], weight=600, anchor="middle")
    canvas.text(0, 14, "Bandwidth to scale: the link is the hairline right of the device.", size=12.5)
    _legend(canvas, 0, y + 10, 18)


def _topology_narrow(canvas: Canvas) -> None:
    facts, thin = canvas.facts, _link_width(canvas)
    axis, wide = 68, 136
    canvas.text(0, 13, "Bandwidth to scale: the link is the hairline.", size=12.5)
    canvas.box(0, 26, wide, 52, "HBM", fill="blue-tint", stroke="blue", weight=600)
    canvas.text(wide + 16, 48, [facts.stated("appendix.s09.hbm_capacity")])
    canvas.text(wide + 16, 65, [facts.stated("appendix.s09.hbm_latency"), " to access, assumed"], size=12, tone="muted")
    canvas.rect(axis - BAND / 2, 78, BAND, 44, fill="blue", radius=0)
    canvas.text(axis, 105, [facts.stated("appendix.s09.hbm_bandwidth")], weight=600, anchor="middle", tone="paper")
    canvas.box(0, 122, wide, 44, "B200", fill="grey", stroke="muted", weight=600)
    canvas.rect(axis - thin / 2, 166, thin, 112, fill="green", radius=0)
    x = axis + 16
    canvas.text(x, 188, "one link, CXL 3.0", size=12.5)
    canvas.text(x, 205, [facts.stated("appendix.s09.link"), " one way"], size=12.5, weight=600)
    canvas.text(x, 226, ["behind it, assumed: ", facts.stated("appendix.s09.cxl_latency"), ","], size=12.5, tone="muted")
    canvas.text(x, 243, [facts.stated("appendix.s09.tier_bandwidth")], size=12.5, tone="muted")
    canvas.text(x, 264, ["high end takes ", facts.num("analytic.tier.t2.links_for_high_bandwidth")], size=12.5, tone="rose")
    canvas.box(0, 278, canvas.width, 32, "switch", fill="paper", stroke="green", dash="3 3")
    endpoints, gap = _endpoints(canvas), 8
    part = (canvas.width - gap * (endpoints - 1)) / endpoints
    for index in range(endpoints):
        left = index * (part + gap)
        canvas.rect(left + part / 2 - thin / 2, 310, thin, 16, fill="green", radius=0)
        _memory(canvas, "DRAM", left, 326, part, 48)
        canvas.line(left + part / 2, 374, left + part / 2, 382, tone="muted")
        _memory(canvas, "NVMe", left, 382, part, 48)
    canvas.bracket(0, canvas.width, 436, depth=5)
    canvas.text(0, 460, [facts.stated("appendix.s10.endpoints")], size=12.5, weight=600)
    together = ["DRAM ", facts.both("appendix.s09.cxl_capacity_gb"), ", NVMe ", facts.both("appendix.s10.nvme_capacity")]
    canvas.text(canvas.width, 460, together, size=12.5, anchor="end")
    _legend(canvas, 0, 488, 18)


@dataclass(frozen=True)
class _Bar:
    """One of two bars of a row: HBM or CXL."""

    low: float
    high: float
    words: Words
    assumed: bool


def _rows(canvas: Canvas) -> Sequence[tuple[str, _Bar, _Bar, Words]]:
    facts = canvas.facts

    def stated(name: str, *, assumed: bool = True) -> _Bar:
        fact = facts.stated(f"appendix.s09.{name}")
        return _Bar(0, fact.value, [fact], assumed)

    low, high = (facts.num(f"analytic.tier.t2.bandwidth_{end}_gbps").value for end in ("low", "high"))
    fast = facts.stated("appendix.s09.hbm_bandwidth")
    large = facts.both("appendix.s09.cxl_capacity_gb")
    less = ["HBM over CXL: ", facts.both("appendix.s09.bandwidth_ratio", 0), " to ", facts.both("appendix.s09.bandwidth_ratio", 1)]
    more = ["CXL over HBM: ", facts.both("appendix.s09.capacity_ratio")]
    dearer = ["HBM over CXL: ", facts.published("appendix.s09.cost_ratio")]
    span = _Bar(low, high, [facts.stated("appendix.s09.tier_bandwidth")], True)
    return (
        ("Bandwidth", _Bar(0, 1000 * fast.value, [fast], False), span, less),
        ("Access time", stated("hbm_latency"), stated("cxl_latency"), "no ratio: both assumed"),
        ("Capacity", stated("hbm_capacity", assumed=False), _Bar(0, large.value, [large], True), more),
        ("Price", stated("hbm_cost"), stated("cxl_cost"), dearer),
    )


def comparison(canvas: Canvas) -> None:
    """Pairs of bars, HBM and CXL, each pair to its own scale; assumed values have dashed outlines."""
    narrow = canvas.narrow
    left, tall, gap = (36 if narrow else 160), 14, 5
    longest = (canvas.width - left) - (106 if narrow else 250)
    y = 12
    for name, hbm, cxl, ratio in _rows(canvas):
        if narrow:
            canvas.text(0, y, name, weight=600)
            y += 10
        else:
            canvas.text(0, y + 11, name, weight=600)
        scale = longest / max(hbm.high, cxl.high)
        for bar, medium, tone in ((hbm, "HBM", "blue"), (cxl, "CXL", "green")):
            canvas.text(left - 8, y + tall - 3, medium, size=12, tone="muted", anchor="end")
            start, long = left + bar.low * scale, (bar.high - bar.low) * scale
            if bar.assumed:
                canvas.rect(start, y + 0.5, long, tall - 1, fill=f"{tone}-tint", stroke=tone, dash="3 3", radius=0)
            else:
                canvas.rect(start, y, long, tall, fill=tone, radius=0)
            canvas.text(left + bar.high * scale + 8, y + tall - 3, bar.words, size=12.5)
            y += tall + gap
        if narrow:
            canvas.text(left, y + 12, ratio, size=12, tone="muted")
            y += 44
        else:
            canvas.text(canvas.width - 152, y - 2 * (tall + gap) + 11, ratio, size=12.5, tone="muted")
            y += 24
    canvas.space(y - 24)
    _legend(canvas, 0, y + (4 if narrow else 8), 18)


DIAGRAMS = (
    Diagram(
        "9.1", "cxl_topology", "A device, one link, and the memory behind it", topology,
        alt=(
            'A B200 with {{ stated("appendix.s09.hbm_capacity") }} of HBM at {{ stated("appendix.s09.hbm_bandwidth") }}. One CXL '
            'link of {{ stated("appendix.s09.link") }} leads to a switch and {{ stated("appendix.s10.endpoints") }}, each with '
            '{{ stated("appendix.s09.endpoint_capacity") }} of DRAM and {{ stated("appendix.s10.nvme_per_endpoint") }} of NVMe: '
            '{{ both("appendix.s09.cxl_capacity_gb") }} and {{ both("appendix.s10.nvme_capacity") }} together. Assumed of the memory '
            'behind the link: {{ stated("appendix.s09.tier_bandwidth") }} and {{ stated("appendix.s09.cxl_latency") }} to access. '
            "HBM and its band are drawn solid, all behind the link dashed."
        ),
        caption=(
            "One direction of the link is drawn. How switch and endpoints share it, and what each endpoint delivers by itself, the "
            "package does not say."
        ),
        source="B200, CXL 3.0",
    ),
    Diagram(
        "9.2", "hbm_against_cxl", "HBM and CXL DRAM side by side", comparison,
        alt=(
            'Bandwidth: HBM {{ stated("appendix.s09.hbm_bandwidth") }}, CXL {{ stated("appendix.s09.tier_bandwidth") }}, assumed. '
            'Access time: {{ stated("appendix.s09.hbm_latency") }} and {{ stated("appendix.s09.cxl_latency") }}, both assumed. '
            'Capacity: {{ stated("appendix.s09.hbm_capacity") }} and {{ both("appendix.s09.cxl_capacity_gb") }}, planned. Price: '
            '{{ stated("appendix.s09.hbm_cost") }} and {{ stated("appendix.s09.cxl_cost") }}, illustrative.'
        ),
        caption=(
            "Each pair of bars has its own scale, from zero. The bar of CXL's bandwidth spans the assumed range. Prices are list "
            "prices of the medium; controllers, switch and power are left out."
        ),
        source="B200, CXL 3.0",
        limits="Illustrative, as its prices are; the table gives the class of each value.",
    ),
)  # fmt: skip
