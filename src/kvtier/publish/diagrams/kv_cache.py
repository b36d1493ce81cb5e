"""Part 3: how the KV cache is laid out, and how it grows with the context."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words, measure, plain
from kvtier.publish.facts import Both, Fact

CONTEXTS: tuple[tuple[str, str], ...] = (
    ("4k", "appendix.summary.kv_4k"),
    ("32k", ""),
    ("128k", "appendix.summary.kv_128k_gb"),
    ("512k", ""),
    ("1m", "appendix.summary.kv_1m"),
)
"""Contexts of the bars, and the claims that print their size."""


def one_layer(canvas: Canvas, left: float, y: float) -> tuple[float, float]:
    """Keys and values of one token in one layer, a cell a head; returns the right and lower edge."""
    facts, narrow = canvas.facts, canvas.narrow
    heads, gap, tall = int(facts.stated("appendix.s03.kv_heads").value), 4, 28
    right = canvas.width - (0 if narrow else 152)
    cell = (right - left - gap * (heads - 1)) / heads
    for name, tone, told in (("K", "blue-tint", "keys"), ("V", "green-tint", "values")):
        canvas.text(0, y + tall / 2 + 4, told, size=12.5, tone="muted")
        for head in range(heads):
            canvas.box(left + head * (cell + gap), y, cell, tall, f"{name}{head}", fill=tone, size=12, pad=1)
        y += tall + gap
    return right, y - gap


def token_columns(canvas: Canvas, left: float, y: float, unit: float, layers: int, tall: float) -> tuple[list[float], float]:
    """Blocks of tokens as columns through all layers; returns the left edge of each block and where the last ends."""
    tokens = int(canvas.facts.stated("appendix.s09.block_tokens").value)
    blocks, gap = (2 if canvas.narrow else 3), 8
    edges = [left + block * (tokens * unit + gap) for block in range(blocks)]
    for block, x in enumerate(edges):
        for token in range(tokens):
            fill = "blue" if (block, token) == (0, 0) else "blue-tint"
            canvas.rect(x + token * unit, y, unit - 1, tall, fill=fill, radius=0)
    # Hairlines cut the columns into as many layers as there are.
    end = edges[-1] + tokens * unit
    step = tall / layers
    d = "".join(f"M{left} {y + step * layer:.2f}H{end:.2f}" for layer in range(1, layers))
    canvas.path(d, bottom=y + tall, stroke="paper", thick=0.5)
    return edges, end


def organization(canvas: Canvas) -> None:
    """From a token in one layer, to a column through all layers, to a block of columns, to a context of blocks."""
    facts, narrow = canvas.facts, canvas.narrow
    heads, size = facts.stated("appendix.s03.kv_heads"), facts.stated("appendix.s03.head_dim")
    layers, per_layer = facts.stated("appendix.s03.layers"), facts.num("analytic.layer.kv_kib_per_token")
    token, block = facts.both("appendix.s03.kv_per_token_kib"), facts.num("analytic.kv.llama3_70b.block_mib")
    left = 56 if narrow else 64
    canvas.text(left, 14, "One token, one layer", weight=600)
    top = 26
    right, bottom = one_layer(canvas, left, top)
    if narrow:
        canvas.text(canvas.width, 14, per_layer, weight=600, anchor="end")
    else:
        canvas.text(right + 24, top + 14, [heads, " heads of ", size], size=12.5, tone="muted")
        canvas.text(right + 24, top + 30, "elements, twice", size=12.5, tone="muted")
        canvas.text(right + 24, top + 53, per_layer, weight=600)
    # The cell that is enlarged above: first token, first layer.
    unit, tall = (7 if narrow else 10), 160
    y = bottom + (52 if narrow else 44)
    canvas.path(
        f"M{left} {bottom + 4}L{left} {y - 2}L{left + unit - 1} {y - 2}L{right} {bottom + 4}Z", bottom=y, fill="grey", stroke="none"
    )
    if narrow:
        canvas.text(canvas.width, y - 10, [heads, " heads of ", size, " elements, twice"], size=12, tone="muted", anchor="end")
    edges, end = token_columns(canvas, left, y, unit, int(layers.value), tall)
    canvas.text(0, y + 10, "layer 1", size=12, tone="muted")
    canvas.text(0, y + tall, ["layer 80"], size=12, tone="muted")
    canvas.text(0, y + tall / 2 + 4, layers, size=12)
    blocks, context = facts.num("analytic.gqa.blocks"), facts.both("appendix.summary.kv_128k_gib")
    tokens = facts.stated("appendix.s09.block_tokens")
    across = tokens.value * unit
    canvas.text(end + 10, y + tall / 2 + 4, "…", size=16, tone="muted")
    # Brackets: the token, its block, the context.
    y += tall + 6
    canvas.line(left + unit / 2 - 0.5, y, left + unit / 2 - 0.5, y + (34 if narrow else 12), tone="blue", thick=1.25)
    if narrow:
        canvas.bracket(edges[1], edges[1] + across - 1, y)
        canvas.text(edges[1], y + 22, ["a block: ", block], weight=600, size=12.5)
        canvas.text(left, y + 48, ["a token: ", token], weight=600, size=12.5)
        y += 76
        canvas.text(left, y, [blocks, " hold 128K tokens: ", context], size=12.5)
        return
    canvas.bracket(edges[1], edges[1] + across - 1, y)
    canvas.text(left, y + 26, ["one token: ", token], weight=600)
    canvas.text(left, y + 44, "a column through all layers", size=12, tone="muted")
    canvas.text(edges[1], y + 26, ["one block: ", block], weight=600)
    canvas.text(edges[1], y + 44, tokens, size=12, tone="muted")
    x, middle = right + 24, y - 6 - tall / 2
    canvas.text(x, middle - 14, "and so on:", size=12.5, tone="muted")
    canvas.text(x, middle + 4, [blocks, " hold a"], size=12.5, tone="muted")
    canvas.text(x, middle + 22, "context of 128K", size=12.5, tone="muted")
    canvas.text(x, middle + 44, context, weight=600)


def on_paper(canvas: Canvas, x: float, y: float, words: Words, *, size: float = 13, weight: int = 400, tone: str = "ink") -> None:
    """Words on a strip of paper, which keeps lines off them and off what underlines them."""
    canvas.rect(x - 3, y - 12, measure(plain(words), size, weight) + 4, 18, fill="paper", radius=0)
    canvas.text(x, y, words, size=size, weight=weight, tone=tone)


def scaling(canvas: Canvas) -> None:
    """Bars to one scale: KV of a sequence by context; as lines what is left for KV, the weights, and the HBM of a device."""
    facts, narrow = canvas.facts, canvas.narrow
    rows: list[tuple[str, Fact | Both, bool]] = []
    for context, claim in CONTEXTS:
        key = f"analytic.kv.llama3_70b.{context}.gb"
        rows.append((context.upper(), facts.both(claim, key=key) if claim else facts.num(key), False))
    weights = facts.both("appendix.s03.weights", key="analytic.hbm.weights_gb")
    rows.insert(3, ("", weights, True))
    crossing = facts.both("appendix.s10.crossover")
    hbm = facts.stated("appendix.s03.hbm")
    left_for_kv = facts.both("appendix.s03.hbm_kv", key="analytic.hbm.kv_gb")
    left, room = (48, 64) if narrow else (112, 76)
    scale = (canvas.width - left - room) / max(row[1].value for row in rows)
    top, tall, gap = 76, 20, 14
    bottom = top + len(rows) * (tall + gap) - gap
    # Lines from the farthest label down, so that words stand clear of the other lines.
    for fact, words, y, tone in (
        (hbm, "HBM of one device: ", 14, "rose"),
        (weights, "weights: ", 34, "muted"),
        (left_for_kv, "left for KV: ", 54, "rose"),
    ):
        x = left + fact.value * scale
        canvas.line(x, y - 10, x, bottom + 8, tone=tone, dash="3 3")
        if fact is weights:
            canvas.text(x - 6, y, [words, fact], size=12, anchor="end")
            continue
        on_paper(canvas, x + 6, y, [words, fact], size=12, tone=tone)
    for index, (name, size, crosses) in enumerate(rows):
        y = top + index * (tall + gap)
        long = size.value * scale
        base = y + tall / 2 + 4.5
        if crosses:
            canvas.rect(left, y, long, tall, fill="blue-tint", stroke="blue", radius=1)
            if narrow:
                canvas.text(left + 8, base, crossing, size=12, weight=600)
            else:
                canvas.text(left - 10, base, crossing, anchor="end", size=12.5)
            on_paper(canvas, left + long + 8, base, "as large as the weights", size=12, tone="muted")
            continue
        canvas.text(left - 10, base, name if narrow else f"{name} tokens", anchor="end", size=12.5)
        canvas.rect(left, y, max(long, 1.5), tall, fill="blue", radius=1)
        on_paper(canvas, left + long + 8, base, [size], weight=600)


DIAGRAMS = (
    Diagram(
        "3.1", "kv_organization", "How the KV cache is laid out", organization,
        alt=(
            'In one layer a token has keys and values of {{ stated("appendix.s03.kv_heads") }} KV heads, '
            '{{ stated("appendix.s03.head_dim") }} elements each: {{ num("analytic.layer.kv_kib_per_token") }}. '
            'Through {{ stated("appendix.s03.layers") }} that is a column of '
            '{{ both("appendix.s03.kv_per_token_kib") }}. A block of {{ stated("appendix.s09.block_tokens") }} takes '
            '{{ num("analytic.kv.llama3_70b.block_mib") }}; {{ num("analytic.gqa.blocks") }} hold a context of 128K, '
            '{{ both("appendix.summary.kv_128k_gib") }}.'
        ),
        caption=(
            "Each column is one token, each row one layer; all layers are drawn. The next token of a sequence needs every column, in every "
            "layer. A block is the unit that is placed and moved: the same tokens, in all layers."
        ),
        source="Llama-3 70B, fp16",
    ),
    Diagram(
        "3.2", "kv_scaling", "KV of one sequence by context, to scale", scaling,
        alt=(
            'KV of one sequence: {% for context in ["4k", "32k", "128k", "512k", "1m"] %}{{ context.upper() }} tokens '
            '{{ num("analytic.kv.llama3_70b." ~ context ~ ".gb") }}{{ ", " if not loop.last else "." }}{% endfor %} It is as large as the '
            'weights, {{ num("analytic.hbm.weights_gb") }}, at {{ both("appendix.s10.crossover") }}. A device has '
            '{{ stated("appendix.s03.hbm") }} of HBM, of which {{ both("appendix.s03.hbm_kv", key="analytic.hbm.kv_gb") }} is left for KV.'
        ),
        caption=(
            'GB are decimal. Left for KV: HBM less {{ num("analytic.hbm.weights_gb") }} of weights and '
            '{{ stated("appendix.s03.activations") }} '
            "of activations. One sequence alone: two of 128K do not fit."
        ),
        source="Llama-3 70B, B200",
    ),
)  # fmt: skip
