"""The figures of the page on grouped-query attention: from the heads of every layer to one score a block, and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words, measure, plain
from kvtier.publish.facts import Both, Fact, Facts

Pair = tuple[float, float]

BLOCKS = ("7993", "0", "64", "5563", "2854")
"""Blocks of the published example, hot to cold."""

POLICIES = (("lfu", "LFU", "ochre"), ("ema001", "EMA 0.01", "rose"), ("ema015", "EMA 0.15", "blue"))
"""Slug, name and colour of each policy that was run with its state dropped and kept."""

BUDGETS_GIB = ("8", "16", "32", "64", "128")


def boxes(corners: list[tuple[float, float]], width: float, height: float) -> str:
    """Path of many boxes of one size, by their upper left corners."""
    return "".join(f"M{x:.2f} {y:.2f}h{width:.2f}v{height:.2f}h{-width:.2f}z" for x, y in corners)


def bundle(starts: list[tuple[float, float]], ends: list[float], y: float) -> str:
    """Path of curves that leave each start downwards and end at a height, one beside another."""
    curve = "M{0:.1f} {1:.1f}C{0:.1f} {2:.1f} {3:.1f} {4:.1f} {3:.1f} {5:.1f}"
    return "".join(
        curve.format(x, top, top + 0.6 * (y - top), end, top + 0.25 * (y - top), y) for (x, top), end in zip(starts, ends, strict=True)
    )


def side_of(fraction: float, width: float, height: float) -> float:
    """Side of the square that covers a fraction of an area."""
    return (fraction * width * height) ** 0.5


# From heads to one score

STRONGEST = (2, 53)
"""KV head and layer of the cell that is drawn as the largest: an example."""


@dataclass(frozen=True)
class Field:
    """Where the cells of layers by KV heads were drawn.

    Parameters
    ----------
    feet : list of (x, y)
        Points under its lower edge.
    strongest : int
        Which of them is under the largest cell.
    bottom, middle : float
        Its lower edge, and its middle from left to right.
    """

    feet: list[tuple[float, float]]
    strongest: int
    bottom: float
    middle: float


def _field_wide(canvas: Canvas, heads: int, layers: int, shared: int) -> Field:
    """Query heads, KV heads, and the field: a row for each KV head, a column for each layer."""
    facts = canvas.facts
    top, row, tall = 44, 16, 12
    query, key, left = 56, 148, 232
    pitch = (canvas.width - left + 1.5) / layers
    canvas.text(0, 14, ["Query: ", facts.stated("gqa.title.query_heads")], weight=600)
    canvas.text(key, 14, ["KV: ", facts.stated("gqa.title.kv_heads")], weight=600)
    canvas.text(left, 14, ["× ", facts.stated("gqa.title.layers"), ", a cell for each KV head of each layer"], weight=600)
    canvas.text(canvas.width, 14, ["= ", facts.num("analytic.gqa.score_streams"), " score streams"], weight=600, anchor="end", tone="ochre")
    canvas.text(0, 32, "in every layer", size=12, tone="muted")
    canvas.text(left, 32, "layer 0", size=12, tone="muted")
    canvas.text(canvas.width, 32, f"layer {layers - 1}", size=12, tone="muted", anchor="end")
    for head in range(heads):
        y = top + head * row
        canvas.text(query - 8, y + 10, f"Q{head * shared}–Q{(head + 1) * shared - 1}", size=11, tone="muted", anchor="end")
        canvas.line(query + shared * 9 + 3, y + 6, key - 5, y + 6, tone="faint")
        canvas.rect(key, y, 56, tall, fill="blue-tint", radius=2)
        canvas.text(key + 28, y + 10, f"KV {head}", size=11, anchor="middle")
        canvas.line(key + 61, y + 6, left - 5, y + 6, tone="faint")
    bottom = top + (heads - 1) * row + tall
    queries = [(query + place * 9, top + head * row + 2) for head in range(heads) for place in range(shared)]
    canvas.path(boxes(queries, 7, 8), bottom=bottom, fill="faint", stroke="none")
    cells = [(left + layer * pitch, top + head * row) for head in range(heads) for layer in range(layers)]
    canvas.path(boxes(cells, pitch - 1.5, tall), bottom=bottom, fill="ochre-tint", stroke="none")
    head, layer = STRONGEST
    canvas.path(boxes([cells[head * layers + layer]], pitch - 1.5, tall), bottom=bottom, fill="ochre", stroke="none")
    feet = [(left + index * pitch + (pitch - 1.5) / 2, bottom + 4) for index in range(layers)]
    return Field(feet, layer, bottom, (left + canvas.width) / 2)


def _field_narrow(canvas: Canvas, heads: int, layers: int, shared: int) -> Field:
    """The same with a column for each KV head, the layers one under another."""
    facts = canvas.facts
    left, step = 56, 3
    column = (canvas.width - left + 6) / heads
    wide = column - 6
    canvas.text(0, 14, ["Query: ", facts.stated("gqa.title.query_heads")], weight=600)
    canvas.text(canvas.width, 14, ["KV: ", facts.stated("gqa.title.kv_heads")], weight=600, anchor="end")
    canvas.text(0, 38, "query", size=12, tone="muted")
    for head in range(heads):
        x = left + head * column
        canvas.line(x + wide / 2, 46, x + wide / 2, 54, tone="faint")
        canvas.rect(x, 57, wide, 18, fill="blue-tint", radius=2)
        canvas.text(x + wide / 2, 70.5, f"KV {head}", size=12, anchor="middle")
    each = (wide + 1.5) / 4
    queries = [(left + head * column + (place % 4) * each, 26 + (place // 4) * 9) for head in range(heads) for place in range(shared)]
    canvas.path(boxes(queries, each - 1.5, 7), bottom=42, fill="faint", stroke="none")
    canvas.text(0, 100, ["× ", facts.stated("gqa.title.layers")], weight=600)
    canvas.text(
        canvas.width, 100, ["= ", facts.num("analytic.gqa.score_streams"), " score streams"], weight=600, anchor="end", tone="ochre"
    )
    top = 112
    bottom = top + layers * step - 1
    canvas.text(0, top + 9, "layer 0", size=12, tone="muted")
    canvas.text(0, bottom, f"layer {layers - 1}", size=12, tone="muted")
    cells = [(left + head * column, top + layer * step) for head in range(heads) for layer in range(layers)]
    canvas.path(boxes(cells, wide, step - 1), bottom=bottom, fill="ochre-tint", stroke="none")
    head, layer = STRONGEST
    canvas.path(boxes([cells[head * layers + layer]], wide, step - 1), bottom=bottom, fill="ochre", stroke="none")
    feet = [(left + index * column + wide * part, bottom + 4) for index in range(heads) for part in (0.1, 0.3, 0.5, 0.7, 0.9)]
    return Field(feet, head * 5 + 2, bottom, (left + canvas.width) / 2)


def streams(canvas: Canvas) -> None:
    """Every cell of layers by KV heads is a stream; the largest is the block's score; blocks stand in one order."""
    facts, narrow = canvas.facts, canvas.narrow
    heads, layers = (int(facts.stated(f"gqa.title.{name}").value) for name in ("kv_heads", "layers"))
    shared = int(facts.num("analytic.gqa.queries_per_kv_head").value)
    field = (_field_narrow if narrow else _field_wide)(canvas, heads, layers, shared)
    # The fold: all of them into one, the largest on top.
    y, middle, size = field.bottom + (60 if narrow else 76), field.middle, 24
    ends = [middle - size / 2 + size * (index + 0.5) / len(field.feet) for index in range(len(field.feet))]
    canvas.path(bundle(field.feet, ends, y), bottom=y, stroke="faint", thick=0.75)
    strongest = bundle([field.feet[field.strongest]], [ends[field.strongest]], y)
    canvas.path(strongest, bottom=y, stroke="ochre", thick=1.5)
    canvas.rect(middle - size / 2, y, size, size, fill="ochre", radius=2)
    tokens, block = facts.stated("gqa.title.block_tokens"), facts.num("analytic.kv.llama3_70b.block_mib")
    before, after = middle - size / 2 - 12, middle + size / 2 + 12
    first, second = y + 10, y + 25
    if narrow:
        canvas.text(before, first, "one score: the", weight=600, anchor="end")
        canvas.text(before, second, "largest of all", weight=600, anchor="end")
        canvas.text(after, first, ["for one block:"], size=12.5)
        canvas.text(after, second, [tokens, ", ", block], size=12)
    else:
        canvas.text(before, first, "One score for one block of one sequence:", weight=600, anchor="end")
        canvas.text(before, second, "the largest of all its streams", anchor="end")
        canvas.text(after, first, [tokens, ", ", block], weight=600)
        canvas.text(after, second, "all heads of all layers move as one")
    # The order: bars that fall, the block in its place.
    count = 24 if narrow else 60
    place = count // 3
    pitch = (canvas.width + 2) / count
    base, tall = y + 112, 44
    heights = [tall * (0.9 * 0.94 ** (index * 60 / count) + 0.06) for index in range(count)]
    at, reach = place * pitch + (pitch - 2) / 2, base - heights[place] - 4
    canvas.path(f"M{middle:.1f} {y + size:.1f}V{y + 40:.1f}H{at:.1f}V{reach - 6:.1f}", bottom=reach, stroke="ochre", thick=1.5)
    canvas.arrow(at, reach - 8, at, reach, tone="ochre", thick=1.5)
    for fill, chosen in (("ochre", [place]), ("rose", [count - 1]), ("ochre-tint", [*range(place), *range(place + 1, count - 1)])):
        bars = "".join(boxes([(index * pitch, base - heights[index])], pitch - 2, heights[index]) for index in chosen)
        canvas.path(bars, bottom=base, fill=fill, stroke="none")
    canvas.path(
        boxes([(index * pitch, base + 3) for index in range(count)], pitch - 2, 9), bottom=base + 12, fill="blue-tint", stroke="none"
    )
    canvas.text(0, base + 29, "hot: stays in HBM", size=12.5)
    canvas.text(canvas.width, base + 29, "cold: leaves first", size=12.5, anchor="end", tone="rose")
    words = ["one order over all ", facts.num("analytic.gqa.blocks"), " of a 128K context"]
    canvas.text(canvas.width / 2, base + (50 if narrow else 29), words, size=12.5, weight=600, anchor="middle")


# What the score orders


def ordering(canvas: Canvas) -> None:
    """The example's blocks, hot to cold, with where they lie; what leaves with the coldest and what stays of it."""
    facts, narrow = canvas.facts, canvas.narrow
    tokens = facts.stated("gqa.description.context_tokens")
    strip, long, bar, most = (0, 132, 156, 128) if narrow else (96, 156, 484, 188)
    row, top = (52, 44) if narrow else (36, 40)
    if narrow:
        canvas.text(0, 14, "Block, and its place in", size=12, tone="muted")
        canvas.text(0, 30, tokens, size=12, tone="muted")
    else:
        canvas.text(0, 16, "Block", size=12, tone="muted")
        canvas.text(strip, 16, ["Place in ", tokens], size=12, tone="muted")
        canvas.text(276, 16, "Positions", size=12, tone="muted")
        canvas.line(0, 26, canvas.width, 26, tone="faint")
    canvas.text(bar, 30 if narrow else 16, "Score", size=12, tone="muted")
    for index, block in enumerate(BLOCKS):
        last = index == len(BLOCKS) - 1
        tone, mark = ("rose", "rose") if last else ("ink", "blue")
        first, end = (facts.num(f"analytic.gqa.block_{block}.{side}_position") for side in ("first", "last"))
        score, touches = (facts.stated(f"gqa.description.block_{block}_{name}") for name in ("score", "touches"))
        lane = top + index * row + (20 if narrow else 8)
        words = lane - 8 if narrow else lane + 10
        canvas.text(0, words, f"Block {block}", weight=600, tone=tone)
        canvas.rect(strip, lane, long, 12, fill="blue-tint", radius=1)
        canvas.rect(strip + first.value / tokens.value * (long - 3), lane - 2, 3, 16, fill=mark, radius=0)
        if not narrow:
            canvas.text(276, words, [first, "–", end], size=12.5, tone="muted")
        canvas.text(bar if narrow else 396, words, touches, size=12.5, tone="muted")
        canvas.rect(bar, lane, score.value * most, 12, fill="rose" if last else "ochre", radius=1)
        canvas.text(bar + score.value * most + 6, lane + 10, score, weight=600, size=12.5, tone=tone)
    bottom = top + len(BLOCKS) * row
    canvas.line(0, bottom + 4, canvas.width, bottom + 4, tone="rose", dash="3 3")
    canvas.text(0, bottom + 26, "Eviction candidate: the lowest score", weight=600, tone="rose")
    _kept(canvas, bottom + 42)


def _kept(canvas: Canvas, y: float) -> None:
    """Payload out to the lower tier and back; the state in its table all the while."""
    facts, narrow = canvas.facts, canvas.narrow
    tall, left, gap = (44, 84, 32) if narrow else (44, 96, 48)
    places = (("HBM", "blue-tint"), ("CXL, once evicted", "green-tint"), ("HBM again, to be read", "blue-tint"))[: 2 if narrow else 3]
    each = (canvas.width - left - gap * (len(places) - 1)) / len(places)
    middle = y + tall / 2
    below = y + tall + 16
    for at, words, key in ((y, "payload", "analytic.kv.llama3_70b.block_mib"), (below, "state", "analytic.gqa.state_bytes_per_block")):
        canvas.text(0, at + 19, words, weight=600)
        canvas.text(0, at + 36, facts.num(key), size=12.5)
    for index, (name, tone) in enumerate(places):
        x = left + index * (each + gap)
        canvas.box(x, y, each, tall, name, fill=tone, size=12.5)
        if index and narrow:
            canvas.arrow(x - gap + 5, middle - 5, x - 5, middle - 5)
            canvas.arrow(x - 5, middle + 5, x - gap + 5, middle + 5)
        elif index:
            canvas.arrow(x - gap + 5, middle, x - 5, middle)
    note = "its score goes on where it stopped"
    canvas.box(left, below, canvas.width - left, tall, "kept, under the block's identity", fill="ochre-tint", size=13.5, note=note)


# The state, to scale


def state(canvas: Canvas) -> None:
    """The bytes of a block's state, one cell each; then all states against all payload, as areas."""
    facts, narrow = canvas.facts, canvas.narrow
    fields: tuple[tuple[str, Fact, str], ...] = (
        ("identity", facts.stated("gqa.s3.identity_bytes"), "blue-tint"),
        ("score", facts.stated("gqa.s3.score_bytes"), "ochre-tint"),
        ("last touch", facts.stated("gqa.s3.timestamp_bytes"), "faint"),
        ("count", facts.stated("gqa.description.touch_count_bytes"), "faint"),
        ("reserved", facts.num("analytic.gqa.reserved_bytes_per_block"), "grey"),
    )
    a_row, size = (16, 328 / 16) if narrow else (64, 720 / 64)
    tall, step = (18, 42) if narrow else (24, 24)
    canvas.text(0, 14, ["State of one block: ", facts.num("analytic.gqa.state_bytes_per_block")], weight=600)
    canvas.text(canvas.width, 14, "a cell is a byte", size=12, tone="muted", anchor="end")
    top, byte = 26, 0
    for name, fact, tone in fields:
        cells = [byte + index for index in range(int(fact.value))]
        corners = [((cell % a_row) * size, top + (cell // a_row) * step) for cell in cells]
        canvas.path(boxes(corners, size - 1.5, tall), bottom=corners[-1][1] + tall, fill=tone, stroke="none")
        x, y = corners[0]
        if narrow:
            canvas.text(x, y + tall + 14, [f"{name}, ", fact], size=12)
        else:
            canvas.bracket(x, corners[-1][0] + size - 1.5, y + tall + 4, depth=4)
            canvas.text(x, y + tall + 23, [name], size=12.5)
            canvas.text(x, y + tall + 39, [fact], size=12.5, tone="muted")
        byte += len(cells)
    # All blocks of a context as one area, and all their state as one square in it.
    y = top + (4 * step + 26 if narrow else tall + 76)
    blocks, kv = facts.num("analytic.gqa.blocks"), facts.num("analytic.kv.llama3_70b.128k.gib")
    total, share = facts.num("analytic.gqa.state_kib"), facts.num("analytic.gqa.state_percent")
    canvas.text(0, y, ["KV of a 128K context: ", kv], weight=600)
    if narrow:
        canvas.text(0, y + 17, ["a cell is one of ", blocks, "; areas to scale"], size=12, tone="muted")
        y += 17
    else:
        canvas.text(canvas.width, y, ["a cell is one of ", blocks, "; areas are to scale"], size=12, tone="muted", anchor="end")
    top = y + 12
    across, down = (64, 128) if narrow else (128, 64)
    wide, tall = canvas.width, 384 if narrow else 256
    cell, deep = wide / across, tall / down
    canvas.rect(0, top, wide, tall, fill="blue-tint", radius=0)
    grid = "".join(f"M{index * cell:.2f} {top:.2f}v{tall}" for index in range(1, across))
    grid += "".join(f"M0 {top + index * deep:.2f}h{wide:g}" for index in range(1, down))
    canvas.path(grid, bottom=top + tall, stroke="paper", thick=0.5)
    side = side_of(share.value / 100, wide, tall)
    column, line = (9, 102) if narrow else (22, 32)
    spot = (column * cell, top + line * deep)
    canvas.rect(spot[0], spot[1], side, side, fill="ink", radius=0)
    # The magnifier: one block, enlarged, with the same square.
    zoom = 12.0
    lens_wide, lens_tall = cell * zoom, deep * zoom
    x, lens = (96, top + 232) if narrow else (216, top + 80)
    pad = 14
    frame = canvas.width - x + pad - 12 if narrow else 404
    canvas.rect(x - pad, lens - pad, frame, lens_tall + 2 * pad, fill="paper", stroke="muted")
    canvas.line(spot[0] + cell + 3, spot[1] + deep / 2, x - pad, lens + lens_tall / 2)
    canvas.rect(spot[0] - 3, spot[1] - 3, cell + 6, deep + 6, stroke="muted", radius=1)
    canvas.rect(x, lens, lens_wide, lens_tall, fill="blue-tint", radius=0)
    canvas.rect(x, lens, side * zoom, side * zoom, fill="ink", radius=0)
    words = x + lens_wide + 14
    if narrow:
        canvas.text(words, lens + lens_tall / 2 - 4, ["state of all: ", total], size=12.5, weight=600)
        canvas.text(words, lens + lens_tall / 2 + 12, "in one block, enlarged", size=12, tone="muted")
    else:
        canvas.text(words, lens + lens_tall / 2 - 6, ["The state of all blocks together: ", total], weight=600)
        told = ["drawn inside one block, enlarged; ", share, " of the field"]
        canvas.text(words, lens + lens_tall / 2 + 12, told, size=12.5, tone="muted")


# What keeping it buys


RING, DISC = 5.0, 3.0
"""Radius of the mark of a dropped state, and of a kept one, which is seen inside the other where the two coincide [px]."""


def circle(x: float, y: float, r: float) -> str:
    """Path of a circle."""
    return f"M{x - r:.2f} {y:.2f}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z"


def _pair(canvas: Canvas, xs: Pair, y: float, tone: str, labels: tuple[Words, Words], bands: Sequence[Pair] = ()) -> None:
    """State dropped as a ring, kept as a disc; a band for each interval; values outside of the two, the kept one in bold."""
    for low, high in bands:
        canvas.rect(low, y - 9, max(high - low, 1), 18, fill=f"{tone}-tint", radius=1)
    dropped, kept = xs
    canvas.line(dropped, y, kept, y, tone=tone, thick=1.5)
    canvas.path(circle(dropped, y, RING), bottom=y + RING, fill="paper", stroke=tone, thick=1.5)
    canvas.path(circle(kept, y, DISC), bottom=y + RING, fill=tone, stroke=tone, thick=1.5)
    ends = [end for band in bands for end in band] + [x + side * (RING + 1) for x in xs for side in (-1, 1)]
    first, second = (labels[0], 400), (labels[1], 600)
    (lower, light), (upper, heavy) = (first, second) if dropped <= kept else (second, first)
    for x, words, weight, anchor in ((min(ends) - 4, lower, light, "end"), (max(ends) + 4, upper, heavy, "start")):
        wide = measure(plain(words), 12, weight)
        # Lines of reference pass behind the words, and behind the space in them.
        canvas.rect(x - wide - 2 if anchor == "end" else x - 2, y - 7, wide + 4, 14, fill="paper", radius=0)
        canvas.text(x, y + 4.5, words, size=12, weight=weight, anchor=anchor)


def _intervals(facts: Facts, keys: Sequence[str], zero: float, scale: float) -> list[Pair]:
    """Where the intervals of numbers begin and end."""
    ends = [facts.quote(key).uncertainty for key in keys]
    return [(zero + end["interval_low"] * scale, zero + end["interval_high"] * scale) for end in ends]


def _legend(canvas: Canvas, y: float) -> None:
    starts = (6, 116, 208) if canvas.narrow else (6, 182, 276)
    marks = ((RING, "paper", "state dropped" if canvas.narrow else "state dropped at eviction", 400), (DISC, "ink", "state kept", 600))
    for x, (r, fill, words, weight) in zip(starts, marks, strict=False):
        canvas.path(circle(x, y - 4, r), bottom=y, fill=fill, stroke="ink", thick=1.5)
        canvas.text(x + 10, y, words, size=12.5, weight=weight)
    canvas.rect(starts[-1], y - 13, 10, 18, fill="faint", radius=1)
    canvas.text(starts[-1] + 16, y, "95 % interval", size=12.5)


def persistence(canvas: Canvas) -> None:
    """Hit rate with the state dropped and kept, in both revisions, on one scale; LRU and the optimum beside."""
    facts, narrow = canvas.facts, canvas.narrow
    left, right = (0, canvas.width) if narrow else (132, 532)
    scale = (right - left) / 68
    _legend(canvas, 14)
    lru, best = facts.num("sim.rev3.e1.32.lru.hit"), facts.num("sim.rev3.e1.32.min.hit")
    group, step, top = (136, 56, 80) if narrow else (80, 32, 80)
    bottom = top + len(POLICIES) * group - 16
    canvas.text(0, 50, "Hit rate, from zero", size=12, tone="muted")
    for fact, words, tone, side in ((lru, "LRU ", "muted", -5), (best, "optimum ", "green", 5)):
        x = left + fact.value * scale
        canvas.line(x, 40, x, bottom, tone=tone, dash="3 3" if tone == "muted" else "")
        canvas.text(x + side, 50, [words, fact], size=12, tone=tone, anchor="end" if side < 0 else "start", rim="paper")
    if not narrow:
        canvas.line(left, 60, left, bottom, tone="faint")
        canvas.text(canvas.width, 50, "gained by keeping it", size=12, tone="muted", anchor="end")
    for index, (slug, name, tone) in enumerate(POLICIES):
        y = top + index * group
        if index:
            canvas.line(0, y - 16, canvas.width, y - 16, tone="faint")
        for revision in (2, 3):
            line = y + 4 + (revision - 2) * step
            keys = [f"sim.rev{revision}.e5.{end}.{slug}.hit" for end in ("reset", "persistent")]
            values = [facts.num(key) for key in keys]
            shown: list[Fact | Both] = list(values)
            if revision == 2 and slug != "ema015":
                shown = [facts.both(f"gqa.buys.{slug}_{end}") for end in ("dropped", "persistent")]
            kept = f"sim.rev3.e5.gain.{slug}.hit"
            gain = facts.both(f"gqa.buys.{slug}_gain") if revision == 2 else facts.num(kept, "plus_minus")
            if narrow:
                canvas.text(0, line + 4, f"{name}, Revision {revision}", size=12.5, weight=600, rim="paper")
                canvas.text(canvas.width, line + 4, ["gain ", gain], size=12, anchor="end", rim="paper")
                line += 26
            else:
                if revision == 2:
                    canvas.text(0, line + 4.5, name, weight=600)
                canvas.text(left - 12, line + 4.5, f"Revision {revision}", size=12, tone="muted", anchor="end")
                canvas.text(canvas.width, line + 4.5, gain, size=12.5, anchor="end", weight=400 if revision == 2 else 600)
            xs = (left + values[0].value * scale, left + values[1].value * scale)
            _pair(canvas, xs, line, tone, (shown[0], shown[1]), _intervals(facts, keys, left, scale) if revision == 3 else ())


def by_budget(canvas: Canvas) -> None:
    """Lead over LRU with the state dropped and kept, by budget, up to the optimum."""
    facts, narrow = canvas.facts, canvas.narrow
    left, right = (60, canvas.width) if narrow else (76, canvas.width)
    low, high = (-11.0, 15.5) if narrow else (-9.0, 18.0)
    scale = (right - left) / (high - low)
    zero = left - low * scale
    _legend(canvas, 14)
    canvas.text(zero - 6, 46, "LRU", size=12, tone="muted", anchor="end")
    canvas.text(zero + 6, 46, "over LRU, points →" if narrow else "hits more than LRU, in points →", size=12, tone="muted")
    step, group, top = 22, 92, 68
    canvas.line(zero, 36, zero, top + len(BUDGETS_GIB) * group - 14, tone="muted", dash="3 3")
    for index, budget in enumerate(BUDGETS_GIB):
        y = top + index * group
        canvas.line(0, y - 10, canvas.width, y - 10, tone="faint")
        canvas.text(0, y + 8, f"{budget} GiB", weight=600)
        best = facts.num(f"sim.rev3.e1.{budget}.min.margin", "bare")
        x = zero + best.value * scale
        canvas.line(x, y - 2, x, y + 74, tone="green")
        fits = x + 5 + measure(f"optimum {best.text}", 12) <= canvas.width
        place, anchor = (x + 5, "start") if fits else (x - 5, "end")
        canvas.text(place, y + 8, ["optimum ", best], size=12, tone="green", rim="paper", anchor=anchor)
        for rank, (slug, name, tone) in enumerate(POLICIES):
            line = y + 24 + rank * step
            canvas.text(left - 8, line + 4.5, name, size=12, tone="muted", anchor="end")
            keys = [f"sim.rev3.e1.{budget}.{slug}{end}.margin" for end in ("", "_persistent")]
            dropped, kept = (facts.num(key, "bare") for key in keys)
            xs = (zero + dropped.value * scale, zero + kept.value * scale)
            _pair(canvas, xs, line, tone, (dropped, kept), _intervals(facts, keys, zero, scale))


# What may be left out


def _leaves(unit: int, row: int, column: int) -> bool:
    """Whether a head's part of a token leaves: two tokens of all heads, all tokens of one head, or pairs picked head by head."""
    picked = (row * 73 + column * 151 + row * column * 37) % 101 < 44
    return (column in (8, 9), row == 3, picked and 0 < column < 16)[unit]


def units(canvas: Canvas) -> None:
    """Three units of eviction, over the same matrix of heads and tokens."""
    facts, narrow = canvas.facts, canvas.narrow
    block, all_streams = facts.num("analytic.kv.llama3_70b.block_mib"), facts.num("analytic.gqa.score_streams")
    panels: tuple[tuple[str, Words, str, str, str], ...] = (
        ("A block, whole", ["all heads of its tokens, ", block], "Same result", "It is back before a step reads it.", "green"),
        ("A stream", ["one of ", all_streams, ", for all tokens"], "Another result", "Each step reads each head.", "rose"),
        (
            "Pairs of head and token",
            ["dropped, as each head decides"],
            "Another result, by design",
            "Lossy: it owes a test of accuracy.",
            "ochre",
        ),
    )
    columns, rows, gap, deep = 20, 8, 36, 11
    wide = canvas.width if narrow else (canvas.width - 2 * gap) / 3
    pitch = (wide + 2) / columns
    for unit, (title, note, verdict, reason, tone) in enumerate(panels):
        x, y = (0, unit * 208) if narrow else (unit * (wide + gap), 0)
        canvas.text(x, y + 14, title, weight=600)
        canvas.text(x, y + 31, note, size=12, tone="muted")
        top = y + 42
        cells = [(row, column) for row in range(rows) for column in range(columns)]
        foot = top + rows * deep
        stay = [(x + column * pitch, top + row * deep) for row, column in cells if not _leaves(unit, row, column)]
        leave = [(x + column * pitch + 0.5, top + row * deep + 0.5) for row, column in cells if _leaves(unit, row, column)]
        canvas.path(boxes(stay, pitch - 2, deep - 2), bottom=foot, fill="blue-tint", stroke="none")
        canvas.path(boxes(leave, pitch - 3, deep - 3), bottom=foot, stroke=tone)
        canvas.text(x, foot + 14, "tokens →", size=12, tone="muted")
        canvas.text(x + wide, foot + 14, "a row is a head", size=12, tone="muted", anchor="end")
        canvas.text(x, foot + 40, verdict, weight=600, tone=tone)
        canvas.paragraph(x, foot + 57, wide, reason, size=12.5)


DIAGRAMS = (
    Diagram(
        "gqa.1",
        "gqa_streams",
        "From query heads to one score a block",
        streams,
        alt='In every layer {{ stated("gqa.description.query_heads") }} of queries share {{ stated("gqa.description.kv_heads") }} of keys '
        'and values, {{ num("analytic.gqa.queries_per_kv_head") }} queries each. Over {{ stated("gqa.description.layers") }} that makes '
        '{{ num("analytic.gqa.score_streams") }} score streams, drawn as a field of small cells. All cells fold into one, the largest, '
        'which is the score of one block of {{ stated("gqa.description.block_tokens") }} and '
        '{{ num("analytic.kv.llama3_70b.block_mib") }}. The {{ num("analytic.gqa.blocks") }} of a 128K context stand in one order by '
        "score; the coldest leaves first.",
        caption="A cell is a stream: the attention that the query heads of one KV head of one layer pay to the tokens of a block. Which "
        "cell is the largest is an example, and the bars are schematic.",
        source="Llama-3 70B",
        limits="Counts follow from the geometry of the model. No attention was measured or simulated.",
    ),
    Diagram(
        "gqa.2",
        "gqa_ordering",
        "What the score puts in order",
        ordering,
        alt='Hot to cold: {% for block in ["7993", "0", "64", "5563", "2854"] %}block {{ block }}, positions '
        '{{ num("analytic.gqa.block_" ~ block ~ ".first_position") }} to {{ num("analytic.gqa.block_" ~ block ~ ".last_position") }}, '
        '{{ stated("gqa.description.block_" ~ block ~ "_touches") }}, score '
        '{{ stated("gqa.description.block_" ~ block ~ "_score") }}{{ "; " if not loop.last else ". " }}{% endfor %}'
        'The last is the eviction candidate. Its payload of {{ num("analytic.kv.llama3_70b.block_mib") }} leaves HBM for CXL and comes '
        'back; its state of {{ num("analytic.gqa.state_bytes_per_block") }} is kept.',
        caption="Positions follow from the numbers of the blocks; touches and scores are the example of v6.0, and no run produced them. If "
        "each step reads every block of its sequence, a later block cannot be touched more often than block 0; here block 7993 is.",
        source="example of v6.0",
        limits="Illustrative: no attention was measured.",
    ),
    Diagram(
        "gqa.3",
        "gqa_state",
        "The state of a block, and of all blocks, to scale",
        state,
        alt='State of one block, {{ num("analytic.gqa.state_bytes_per_block") }}: identity '
        '{{ stated("gqa.description.identity_bytes") }}, score {{ stated("gqa.description.score_bytes") }}, last touch '
        '{{ stated("gqa.description.timestamp_bytes") }}, count of touches {{ stated("gqa.description.touch_count_bytes") }}, reserved '
        '{{ num("analytic.gqa.reserved_bytes_per_block") }}. Below, a field of {{ num("analytic.gqa.blocks") }} is the KV of a 128K '
        'context, {{ num("analytic.kv.llama3_70b.128k.gib") }}; their states together, {{ num("analytic.gqa.state_kib") }} '
        'or {{ num("analytic.gqa.state_percent") }} of it, are a dot in one cell, shown again enlarged.',
        caption="As a bar across this page the state would be thinner than a hundredth of a pixel; as an area it is the dot. The sizes "
        "of the fields are a design. The index that finds a block by its identity is not counted.",
        source="Llama-3 70B, fp16",
        limits="Bytes alone. What the state costs to maintain was not measured.",
    ),
    Diagram(
        "gqa.4",
        "gqa_persistence",
        "What keeping the state buys",
        persistence,
        alt="Hit rate with the state dropped at eviction, then kept. {% for slug, name in [('lfu', 'LFU'), ('ema001', 'EMA 0.01'), "
        "('ema015', 'EMA 0.15')] %}{{ name }}: Revision 2 {{ num('sim.rev2.e5.reset.' ~ slug ~ '.hit') }} and "
        "{{ num('sim.rev2.e5.persistent.' ~ slug ~ '.hit') }}, Revision 3 {{ plus_minus('sim.rev3.e5.reset.' ~ slug ~ '.hit') }} and "
        "{{ plus_minus('sim.rev3.e5.persistent.' ~ slug ~ '.hit') }}, a gain of {{ plus_minus('sim.rev3.e5.gain.' ~ slug ~ '.hit') }}. "
        "{% endfor %}In Revision 3 LRU has {{ num('sim.rev3.e1.32.lru.hit') }}, the optimum {{ num('sim.rev3.e1.32.min.hit') }}.",
        caption="Blocks read that were in HBM over blocks read, second half of the turns. Revision 2: one seed, as "
        'published. Revision 3: {{ num("sim.rev3.e5.seeds") }}; a gain is taken seed by seed, so its interval is narrower than those of '
        "its two ends. LRU and the optimum are of Revision 3. Those of Revision 2 may evict what they read, so it does not bound them.",
        source="zipf, HBM 32 GiB",
    ),
    Diagram(
        "gqa.5",
        "gqa_persistence_by_budget",
        "What keeping the state buys, by budget",
        by_budget,
        alt="Lead over LRU in points with the state dropped, then kept. {% for budget in ['8', '16', '32', '64', '128'] %}"
        "{{ budget }} GiB: {% for slug, name in [('lfu', 'LFU'), ('ema001', 'EMA 0.01'), ('ema015', 'EMA 0.15')] %}{{ name }} "
        "{{ bare('sim.rev3.e1.' ~ budget ~ '.' ~ slug ~ '.margin') }} and "
        "{{ bare('sim.rev3.e1.' ~ budget ~ '.' ~ slug ~ '_persistent.margin') }}, "
        "{% endfor %}optimum {{ bare('sim.rev3.e1.' ~ budget ~ '.min.margin') }}. {% endfor %}",
        caption='Hit rate less that of LRU, seed by seed, mean of {{ num("sim.rev3.e5.seeds") }}. The budget is of HBM; a state is kept '
        "for each block.",
        source="Revision 3, zipf",
    ),
    Diagram(
        "gqa.6",
        "gqa_units",
        "What may leave: a block, a stream, a pair",
        units,
        alt='Three matrices of heads by tokens. A block of {{ num("analytic.kv.llama3_70b.block_mib") }} leaves, all heads of its tokens: '
        "the same result, for it is back before a step reads it. A whole row leaves, one of "
        '{{ num("analytic.gqa.score_streams") }} streams: another result. Single pairs of head and token leave: another result, by design.',
        caption="A row that is fetched back in time would be lossless too; but each step reads each row, so no row is ever colder than "
        "another, and an order among rows orders nothing.",
        source="Llama-3 70B",
        limits="A scheme. Which pairs a method drops is not modelled here.",
    ),
)
