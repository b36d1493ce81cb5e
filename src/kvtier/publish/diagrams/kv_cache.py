"""Part 3: how the KV cache is laid out, and how it grows with the context."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, measure

CONTEXTS = ("4k", "32k", "128k", "512k", "1m")
HEADS = 8


def organization(canvas: Canvas) -> None:
    """Keys and values of each KV head in a layer; layers stacked; a token is a column through all of them."""
    facts, narrow = canvas.facts, canvas.narrow
    heads = int(facts.stated("appendix.s03.kv_heads").value)
    left, gap = 64 if narrow else 84, 3
    cell = (canvas.width - left - gap * (heads - 1)) / heads
    tall = 30 if narrow else 34
    y = 14
    canvas.text(left, y, "One layer, one token", weight=600)
    canvas.text(canvas.width, y, ["KV heads: ", facts.stated("appendix.s03.kv_heads")], anchor="end", tone="muted", size=12)
    y += 12
    for name, tone, told in (("K", "blue-tint", "keys"), ("V", "green-tint", "values")):
        canvas.text(0, y + tall / 2 + 4, told, size=12.5, tone="muted")
        for head in range(heads):
            x = left + head * (cell + gap)
            canvas.box(x, y, cell, tall, f"{name} h{head}" if not narrow else f"{name}{head}", fill=tone, size=12, pad=1)
        y += tall + gap
    y += 3
    canvas.bracket(left, left + cell, y, depth=5)
    canvas.text(left, y + 20, ["elements of a head: ", facts.stated("appendix.s03.head_dim")], size=12, tone="muted")
    y += 44
    # The stack: one sheet a layer, the first in front.
    sheets, step = 5, 5
    canvas.text(0, y + 26, "all", size=12.5, tone="muted")
    canvas.text(0, y + 41, "layers", size=12.5, tone="muted")
    wide = canvas.width - left - sheets * step
    for sheet in range(sheets, -1, -1):
        canvas.rect(left + sheet * step, y + (sheets - sheet) * step, wide, 40, fill="paper", stroke="muted")
    top = y + sheets * step
    parts = 16
    for token in range(parts):
        canvas.rect(left + 6 + token * (wide - 12) / parts, top + 6, (wide - 12) / parts - 2, 28, fill="blue-tint" if token else "blue", radius=1)
    y = top + 40
    canvas.bracket(left + 6, left + wide - 8, y + 4, depth=5)
    canvas.text(left, y + 25, ["one block: ", facts.num("analytic.kv.llama3_70b.block_mib"), ", ", facts.stated("appendix.s09.block_tokens")], size=12.5)
    canvas.text(left, y + 43, ["one token (dark), through ", facts.stated("appendix.s03.layers"), ": ", facts.num("analytic.kv.llama3_70b.kib_per_token")], size=12.5)


def scaling(canvas: Canvas) -> None:
    """Bars to one scale: KV of a sequence by context, the HBM of a device and what it leaves for KV as lines."""
    facts = canvas.facts
    sizes = {context: facts.num(f"analytic.kv.llama3_70b.{context}.gb") for context in CONTEXTS}
    hbm, left_for_kv = facts.num("analytic.hbm.capacity_gb"), facts.num("analytic.hbm.kv_gb")
    left, right = (46 if canvas.narrow else 92), 70
    scale = (canvas.width - left - right) / max(fact.value for fact in sizes.values())
    top, tall, gap = 46, 22, 12
    bottom = top + len(CONTEXTS) * (tall + gap) - gap
    for fact, words, y in ((left_for_kv, "left for KV: ", 34), (hbm, "HBM of one device: ", 14)):
        x = left + fact.value * scale
        canvas.line(x, y + 4, x, bottom + 6, tone="rose", dash="3 3")
        label = [words, fact]
        canvas.text(x + 5, y, label, size=12, tone="rose")
        canvas.line(x, y - 9, x, y + 4, tone="rose", dash="3 3")
    for index, context in enumerate(CONTEXTS):
        y = top + index * (tall + gap)
        name = context.upper() + ("" if canvas.narrow else " tokens")
        canvas.text(left - 10, y + 15.5, name, anchor="end", size=12.5)
        long = sizes[context].value * scale
        canvas.rect(left, y, max(long, 1.5), tall, fill="blue", radius=1)
        text = sizes[context].text
        inside = long > 260 and left + long + measure(text, 13, 600) + 8 > canvas.width
        canvas.text(left + long - 8 if inside else left + long + 7, y + 15.5, [sizes[context]], weight=600, anchor="end" if inside else "start", tone="paper" if inside else "ink", rim="" if inside else "paper")


DIAGRAMS = (
    Diagram(
        "3.1", "kv_organization", "How the KV cache is laid out", organization,
        alt='{{ stated("appendix.s03.layers") }}, each with keys and values of {{ stated("appendix.s03.kv_heads") }} KV heads of {{ stated("appendix.s03.head_dim") }} elements. One token takes {{ num("analytic.kv.llama3_70b.kib_per_token") }} through all of them; a block of {{ stated("appendix.s09.block_tokens") }} takes {{ num("analytic.kv.llama3_70b.block_mib") }}.',
        caption="A token is a column through all layers and heads: none of its parts can be left out, so a block moves as one piece.",
        source="Llama-3 70B, fp16",
    ),
    Diagram(
        "3.2", "kv_scaling", "KV of one sequence by context, to scale", scaling,
        alt='KV of one sequence: {% for context in ["4k", "32k", "128k", "512k", "1m"] %}{{ context.upper() }} tokens {{ num("analytic.kv.llama3_70b." ~ context ~ ".gb") }}{{ ", " if not loop.last else "." }}{% endfor %} A device has {{ num("analytic.hbm.capacity_gb") }} of HBM, of which {{ num("analytic.hbm.kv_gb") }} is left for KV.',
        caption='GB are decimal. Left for KV: HBM less {{ num("analytic.hbm.weights_gb") }} of weights and {{ num("analytic.hbm.activations_gb") }} of activations.',
        source="Llama-3 70B, B200",
    ),
)  # fmt: skip
