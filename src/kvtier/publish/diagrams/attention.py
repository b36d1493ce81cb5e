"""Part 2: the projections of one token with their true widths, and a worked softmax."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words

TOKENS = (("the", "The"), ("capital", "capital"), ("of", "of"), ("france", "France"))
"""Name in the keys, and as written."""


def swatch(canvas: Canvas, x: float, y: float, fill: str, words: Words, *, size: float = 12) -> float:
    """A small square and what its colour means; returns where the words end."""
    canvas.rect(x, y - 9, 10, 10, fill=fill, radius=1)
    return x + 15 + canvas.text(x + 15, y, words, size=size, tone="muted")


def cells(canvas: Canvas, x: float, y: float, count: int, unit: float, tall: float, fill: str) -> None:
    """Heads side by side, one unit each."""
    for head in range(count):
        canvas.rect(x + head * unit, y, unit - 1, tall, fill=fill, radius=0.5)


def projections(canvas: Canvas) -> None:
    """One token's vector through three matrices; widths to one scale; which query heads read which KV head."""
    facts, narrow = canvas.facts, canvas.narrow
    hidden, query_width, kv_width = (
        facts.stated("appendix.s02.hidden"),
        facts.num("analytic.layer.query_width"),
        facts.num("analytic.layer.kv_width"),
    )
    queries, kv_heads = facts.stated("appendix.s01.query_heads"), facts.stated("appendix.s01.kv_heads")
    size, shared = facts.stated("appendix.s03.head_dim"), facts.num("analytic.gqa.queries_per_kv_head")
    unit = 3.5 if narrow else 6
    scale = unit / size.value
    wide, slim = query_width.value * scale, kv_width.value * scale
    gap = 24
    key, value = wide + gap, wide + 2 * gap + slim
    note = value + slim + 24
    # The token's vector, as wide as it is.
    canvas.text(0, 14, ["One token: ", hidden, " elements"], weight=600)
    canvas.rect(0, 24, hidden.value * scale, 12, fill="ochre-tint", stroke="ochre", radius=1)
    canvas.path(f"M{wide / 2} 36V46M{wide / 2} 46H{value + slim / 2}", bottom=46, stroke="ochre", thick=1.25)
    # Three matrices.
    y, tall = 60, 60
    for x, across, words in ((0, wide, "Query weights"), (key, slim, "Key"), (value, slim, "Value")):
        canvas.arrow(x + across / 2, 46, x + across / 2, y - 2, tone="ochre")
        if words == "Query weights":
            canvas.box(x, y, across, tall, words, fill="grey", note=[hidden, " × ", query_width])
        elif narrow:
            canvas.rect(x, y, across, tall, fill="grey")
            canvas.text(x + across / 2, y + tall / 2 + 4, words[0], anchor="middle")
        else:
            canvas.box(x, y, across, tall, words, fill="grey", pad=0)
        canvas.arrow(x + across / 2, y + tall + 2, x + across / 2, y + tall + 18, tone="ochre")
    if not narrow:
        canvas.text(note, y + 26, "Key and value weights,", size=12, tone="muted")
        canvas.text(note, y + 43, [hidden, " × ", kv_width, " each"], size=12, tone="muted")
    # What comes out, by head.
    y += tall + 20
    cells(canvas, 0, y, int(queries.value), unit, 20, "ochre-tint")
    cells(canvas, key, y, int(kv_heads.value), unit, 20, "blue-tint")
    cells(canvas, value, y, int(kv_heads.value), unit, 20, "green-tint")
    if not narrow:
        canvas.text(note, y + 8, [queries, " query heads,"], size=12, tone="muted")
        canvas.text(note, y + 25, [kv_heads, " KV heads of ", size], size=12, tone="muted")
    # Every KV head under the query heads that read it.
    y += 24
    slot = wide / kv_heads.value
    for head in range(int(kv_heads.value)):
        x = head * slot
        canvas.bracket(x + 1, x + slot - 3, y, depth=5)
        canvas.line(x + slot / 2 - 1, y + 5, x + slot / 2 - 1, y + 12)
        canvas.box(x, y + 12, slot - 2, 18, f"K{head}", fill="blue-tint", size=11, pad=0, radius=2)
        canvas.box(x, y + 32, slot - 2, 18, f"V{head}", fill="green-tint", size=11, pad=0, radius=2)
    kept = facts.num("analytic.layer.kv_kib_per_token")
    if narrow:
        canvas.path(
            f"M{key + slim / 2} {y}V{y + 21}M{value + slim / 2} {y}V{y + 21}M{value + slim / 2} {y + 21}H{key + slim / 2}",
            bottom=y + 21,
            stroke="blue",
            thick=1.25,
        )
        canvas.arrow(key + slim / 2, y + 21, wide + 4, y + 21, tone="blue")
        canvas.text(key, y + 44, ["cache: ", kept], size=12)
        y = canvas.paragraph(
            0,
            y + 72,
            canvas.width,
            [
                queries,
                " query heads and ",
                kv_heads,
                " KV heads, of ",
                size,
                " elements: ",
                shared,
                " queries share a KV head. Key and value weights are ",
                hidden,
                " × ",
                kv_width,
                " each.",
            ],
            size=12,
            tone="muted",
        )
    else:
        for x in (key, value):
            canvas.path(f"M{x + slim / 2} {y}V{y + 31}", bottom=y + 31, stroke="blue", thick=1.25)
        canvas.path(f"M{value + slim / 2} {y + 31}H{key + slim / 2}", bottom=y + 31, stroke="blue", thick=1.25)
        canvas.arrow(key + slim / 2, y + 31, wide + 6, y + 31, tone="blue")
        canvas.text(note, y + 25, ["to the cache: ", kept], size=12.5, weight=600)
        canvas.text(note, y + 42, "a token, in each layer", size=12, tone="muted")
        canvas.text(0, y + 72, ["One KV head is read by ", shared, " query heads."], size=12, tone="muted")
        y += 72
    # What sharing saves.
    y += 36
    canvas.text(0, y, "KV of one token in all layers, to scale", weight=600)
    grouped, full = facts.num("analytic.kv.llama3_70b.kib_per_token"), facts.num("analytic.kv.llama1_65b.kib_per_token")
    y += 12
    long = wide * grouped.value / full.value
    canvas.rect(0, y, long, 18, fill="blue", radius=1)
    canvas.text(long + 8, y + 13.5, [grouped, " with heads shared"], size=12.5)
    y += 26
    canvas.rect(0, y, wide, 18, stroke="muted", dash="3 3", radius=1)
    if narrow:
        canvas.text(wide + 8, y + 13.5, [full], size=12.5)
        canvas.text(0, y + 35, "one KV head for each query head (Llama-1 65B)", size=12, tone="muted")
    else:
        canvas.text(wide + 8, y + 13.5, [full, ", one KV head for each query head (Llama-1 65B)"], size=12.5)


def softmax(canvas: Canvas) -> None:
    """Score, exponential and weight of four tokens; the weights as printed as a mark; the mix of values that they give."""
    facts, narrow = canvas.facts, canvas.narrow
    scores = [facts.stated("appendix.s02.scores", index) for index in range(len(TOKENS))]
    exponentials = [facts.num(f"analytic.softmax.{token}.exponential") for token, _ in TOKENS]
    weights = [facts.both("appendix.s02.softmax", index) for index in range(len(TOKENS))]
    top, step, tall = (40, 32, 16) if narrow else (44, 36, 20)
    # Right edge of the numbers of each column, and the most that a bar beside them may take.
    columns = ((106, 0), (158, 0), (212, 108)) if narrow else ((152, 104), (328, 104), (512, 200))
    heads = ("score", "exp", "weight") if narrow else ("Score, query · key", "Exponential", "Weight: share of the sum")
    for (right, room), head in zip(columns, heads, strict=True):
        if room:
            canvas.text(right + 8, 12, head, size=12, tone="muted")
        else:
            canvas.text(right, 12, head, size=12, tone="muted", anchor="end")
    canvas.line(0, 22, canvas.width, 22, tone="faint")
    most = (*(max(fact.value for fact in facts_of) for facts_of in (scores, exponentials)), max(fact.published.value for fact in weights))
    for index, (_, written) in enumerate(TOKENS):
        y = top + index * step
        canvas.text(0, y + tall - 5, written, weight=600)
        row = (scores[index], exponentials[index], weights[index])
        for (right, room), fact, most_here in zip(columns, row, most, strict=True):
            last = fact is weights[index]
            canvas.text(right, y + tall - 5, [fact], weight=600 if last else 400, anchor="end")
            if room:
                canvas.rect(right + 8, y, room * fact.value / most_here, tall, fill="ochre" if last else "ochre-tint", radius=1)
        right, room = columns[2]
        printed = right + 8 + room * weights[index].published.value / most[2]
        canvas.line(printed, y - 4, printed, y + tall + 4, tone="paper", thick=6)
        canvas.line(printed, y - 4, printed, y + tall + 4, tone="rose", thick=2)
    y = top + len(TOKENS) * step
    canvas.line(0, y - 4, canvas.width, y - 4, tone="faint")
    canvas.text(0, y + 14, "sum", size=12.5, tone="muted")
    canvas.text(columns[0][0], y + 14, [facts.num("analytic.softmax.score_sum")], anchor="end", tone="muted")
    canvas.text(columns[1][0], y + 14, [facts.num("analytic.softmax.exponential_sum")], anchor="end")
    x = columns[2][0] + 9
    canvas.line(x, y + 3, x, y + 17, tone="rose", thick=2)
    canvas.text(x + 8, y + 14, "as v6.0 printed", size=12, tone="rose")
    # The mix.
    y += 52
    title = "Output: the four values, by weight" if narrow else "Output for France: the values of all four tokens, each by its weight"
    canvas.text(0, y, title, weight=600)
    y += 12
    x, whole = 0.0, sum(fact.value for fact in weights)
    for (token, written), fact in zip(TOKENS, weights, strict=True):
        across = canvas.width * fact.value / whole
        canvas.rect(x, y, across - (2 if token != TOKENS[-1][0] else 0), 32, fill="green-tint", radius=1)
        weight = facts.num(f"analytic.softmax.{token}.percent")
        canvas.text(x + 8, y + 20.5, [weight] if narrow else [f"{written}, ", weight], size=12.5)
        if narrow:
            canvas.text(x + 8, y + 48, written, size=12, tone="muted")
        x += across


DIAGRAMS = (
    Diagram(
        "2.1", "qkv_projections", "Query, key and value of one token, widths to scale", projections,
        alt=(
            'A vector of {{ stated("appendix.s02.hidden") }} elements goes through three matrices. Queries come out '
            '{{ num("analytic.layer.query_width") }} wide, as {{ stated("appendix.s01.query_heads") }} heads of '
            '{{ stated("appendix.s03.head_dim") }}; keys and values {{ num("analytic.layer.kv_width") }} wide each, as '
            '{{ stated("appendix.s01.kv_heads") }} heads. Each KV head stands under the '
            '{{ num("analytic.gqa.queries_per_kv_head") }} query heads that read it. Keys and values go to the cache: '
            '{{ num("analytic.layer.kv_kib_per_token") }} a token and layer, '
            '{{ num("analytic.kv.llama3_70b.kib_per_token") }} in all layers. With one KV head for each query head it would be '
            '{{ num("analytic.kv.llama1_65b.kib_per_token") }}, as in Llama-1 65B.'
        ),
        caption=(
            "Grouped-query attention: heads of queries are many, for they live for one step; heads of keys and values are few, for "
            "they are stored. Heights are not to scale: all three matrices have as many rows as the vector has elements. "
            "Two bytes an element."
        ),
        source="Llama-3 70B",
    ),
    Diagram(
        "2.2", "softmax_example", "From scores to weights: a softmax worked out", softmax,
        alt=(
            "The token France attends to four tokens. Score, exponential and weight: "
            '{% for token in ["the", "capital", "of", "france"] %}{{ token }} {{ stated("appendix.s02.scores", loop.index0) }}, '
            '{{ num("analytic.softmax." ~ token ~ ".exponential") }}, {{ num("analytic.softmax." ~ token ~ ".percent") }}'
            '{{ "; " if not loop.last else ". " }}{% endfor %}The exponentials add up to {{ num("analytic.softmax.exponential_sum") }}. '
            "A mark in each row shows the weight that was printed; the output is a bar of the four values in the shares of their weights."
        ),
        caption=(
            "The scores are those of v6.0; a scale by the root of the head size is taken to be in them. A softmax takes the exponential of "
            "each score over the sum of all four, so that a low score keeps a share. All four values are read for this one output: "
            "a small weight leaves no block out."
        ),
        limits="The scores are an example: no model was run.",
    ),
)  # fmt: skip
