"""Part 1: one layer of the transformer, and the place of the KV cache in it."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas

ATTENTION_TALL = 36
"""Height of the attention box [px]; the feed-forward box follows from the parameters."""


def plus(canvas: Canvas, x: float, y: float, radius: float = 8) -> None:
    """A sum on the residual stream."""
    d = f"M{x - radius} {y}A{radius} {radius} 0 1 1 {x + radius} {y}A{radius} {radius} 0 1 1 {x - radius} {y}Z"
    canvas.path(d, bottom=y + radius, fill="paper", stroke="ochre", thick=1.25)
    canvas.line(x - 4, y, x + 4, y, tone="ochre", thick=1.25)
    canvas.line(x, y - 4, x, y + 4, tone="ochre", thick=1.25)


def branch(canvas: Canvas, stream: float, left: float, wide: float, top: float) -> None:
    """From the stream through a norm."""
    canvas.arrow(stream + 6, top + 12, left, top + 12, tone="ochre")
    canvas.box(left, top, wide, 24, "Norm", fill="paper", stroke="muted", size=12.5)
    canvas.arrow(left + wide / 2, top + 24, left + wide / 2, top + 40, tone="ochre")


def cache(canvas: Canvas, left: float, top: float, *, tokens: int) -> tuple[float, float]:
    """Keys and values of one layer, a column a token, the newest last; returns the column of the newest and the end."""
    right = canvas.width - (40 if canvas.narrow else 68)
    cell = (right - left) / tokens
    for row, (name, tint, full) in enumerate((("keys", "blue-tint", "blue"), ("values", "green-tint", "green"))):
        canvas.text(right + 6, top + row * 14 + 10, name[0].upper() if canvas.narrow else name, size=12, tone="muted")
        for token in range(tokens):
            fill = full if token == tokens - 1 else tint
            canvas.rect(left + token * cell, top + row * 14, cell - 2, 12, fill=fill, radius=1)
    return right - cell, right - 2


def layer(canvas: Canvas) -> None:
    """The residual stream from top to bottom, both parts of a layer beside it, the cache beside attention."""
    facts, narrow = canvas.facts, canvas.narrow
    hidden, layers = facts.stated("appendix.s01.hidden"), facts.stated("appendix.s01.layers")
    attention, ffn = facts.num("analytic.layer.attention_parameters"), facts.num("analytic.layer.ffn_parameters")
    stream = 24
    left, wide = (52, 116) if narrow else (84, 196)
    store = 212 if narrow else 408
    # The token comes in.
    canvas.box(0, 0, 96, 28, "Embedding", fill="grey")
    words = "one vector a token: " if narrow else "one vector for each token, the residual stream. Elements: "
    canvas.text(108, 18, [words, hidden], size=12.5)
    top = 52
    first = top + 36
    second = first + 40 + ATTENTION_TALL + 28
    ffn_tall = ATTENTION_TALL * ffn.value / attention.value
    bottom = second + 40 + ffn_tall + 16
    # Sheets behind the first are the other layers.
    for sheet in (3, 2, 1, 0):
        edge = "faint" if sheet else "muted"
        canvas.rect(sheet * 4 + 0.5, top + sheet * 4, canvas.width - 13, bottom - top, fill="paper", stroke=edge, radius=4)
    canvas.text(left, top + 20, ["One of ", layers], weight=600)
    if not narrow:
        canvas.text(canvas.width - 24, top + 20, "each layer has weights and a cache of its own", size=12, tone="muted", anchor="end")
    canvas.rect(stream - 6, 28, 12, bottom + 32 - 28, fill="ochre-tint", radius=0)
    # Attention.
    branch(canvas, stream, left, wide, first)
    y = first + 40
    many = "" if narrow else " parameters"
    canvas.box(left, y, wide, ATTENTION_TALL, "Attention", fill="grey", weight=600, note=[attention, many], pad=2)
    canvas.arrow(left, y + ATTENTION_TALL / 2, stream + 8, y + ATTENTION_TALL / 2, tone="ochre")
    plus(canvas, stream, y + ATTENTION_TALL / 2)
    newest, end = cache(canvas, store, y - 8, tokens=5 if narrow else 16)
    canvas.text(store, y - 16, "KV cache" if narrow else "KV cache of this layer", weight=600)
    reads, writes = y + 5, y + 30
    canvas.arrow(store - 4, reads, left + wide, reads, tone="blue")
    middle = (newest + end) / 2
    canvas.path(f"M{left + wide} {writes}H{middle}V{y + 24}", bottom=writes, stroke="blue", thick=1.25)
    canvas.arrow(middle, writes, middle, y + 21, tone="blue")
    if not narrow:
        canvas.text((left + wide + store) / 2, reads - 6, "all earlier tokens", size=12, tone="muted", anchor="middle")
        canvas.text((left + wide + store) / 2, writes - 6, "this token", size=12, tone="muted", anchor="middle")
    kept = facts.num("analytic.layer.kv_kib_per_token")
    words = ["reads all earlier tokens, adds ", kept]
    if not narrow:
        words = ["A step reads keys and values of all earlier tokens and adds its own: ", kept, " in each layer."]
    room = canvas.width - 20 - store
    canvas.paragraph(store, writes + 20, room, words, size=12, tone="muted")
    # Feed-forward.
    branch(canvas, stream, left, wide, second)
    y = second + 40
    canvas.box(left, y, wide, ffn_tall, "Feed-forward", fill="grey", weight=600, note=[ffn, many], pad=2)
    canvas.arrow(left, y + ffn_tall / 2, stream + 8, y + ffn_tall / 2, tone="ochre")
    plus(canvas, stream, y + ffn_tall / 2)
    at = y + 14
    for words in (
        "Keeps nothing of a token.",
        "Weights: one copy for all sequences. Cache: one for each.",
        "Areas of both grey boxes: parameters, to scale.",
    ):
        at = canvas.paragraph(store, at, room, words, size=12, tone="muted") + 24
    # And out.
    y = bottom + 32
    canvas.box(0, y, 132 if narrow else 180, 28, "Norm, output" if narrow else "Norm, output projection", fill="grey")
    words = "scores of the next token" if narrow else "one score for each token of the vocabulary: the next token is drawn from them"
    canvas.text(144 if narrow else 192, y + 18, words, size=12.5)


DIAGRAMS = (
    Diagram(
        "1.1", "transformer_layer", "One layer, and where the KV cache sits", layer,
        alt=(
            'A token enters as a vector of {{ stated("appendix.s01.hidden") }} elements, the residual stream, which runs through '
            '{{ stated("appendix.s01.layers") }}. In each, attention and then a feed-forward part take a normed copy of the stream and add '
            'their result to it. Attention has {{ num("analytic.layer.attention_parameters") }} parameters, the feed-forward part '
            '{{ num("analytic.layer.ffn_parameters") }}; the boxes are drawn to that scale. The KV cache belongs to attention: a step '
            'reads keys and values of all earlier tokens and adds {{ num("analytic.layer.kv_kib_per_token") }} for its own. Behind '
            "the last layer stand a norm and the output projection."
        ),
        caption=(
            "Both parts add to the stream and replace nothing in it. Attention is the only place where a token sees other tokens, so "
            "it is the only one with a state that grows. Not drawn: rotary positions (part 7), which turn queries and keys before "
            "they meet."
        ),
        source="Llama-3 70B",
    ),
)  # fmt: skip
