"""What a decoder caches, layer by layer: groups of layers that keep the same thing, and how a group is dealt out to ranks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from kvtier.analytic.kv_formats import Format
from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status

LARGEST = 2**40
"""No dimension of a model, and no context, is larger: a larger one is a slip."""

MOST_RANKS = 2**16


class Kind(StrEnum):
    """What a layer keeps of the tokens behind it."""

    FULL = "full"
    """Keys and values of all of them (multi-head, grouped-query, multi-query)."""
    SLIDING = "sliding"
    """Keys and values of the last `window_tokens`, the newest among them."""
    CHUNKED = "chunked"
    """Keys and values of the present chunk of `window_tokens` (Llama 4). What is counted is a whole chunk, the most it ever holds."""
    LATENT = "latent"
    """One compressed vector and one rotary key for all heads (multi-head latent attention, DeepSeek-V2, 2024)."""
    STATE = "state"
    """No KV: a state of fixed size (state space, linear attention)."""
    CROSS = "cross"
    """KV of another input, an image say, which does not grow with the text: not counted."""


HEADS = frozenset({Kind.FULL, Kind.SLIDING, Kind.CHUNKED})
WINDOWED = frozenset({Kind.SLIDING, Kind.CHUNKED})
NEEDS: dict[Kind, tuple[str, ...]] = {
    Kind.FULL: ("kv_heads", "head_dim"),
    Kind.SLIDING: ("kv_heads", "head_dim", "window_tokens"),
    Kind.CHUNKED: ("kv_heads", "head_dim", "window_tokens"),
    Kind.LATENT: ("latent_dim", "rope_dim"),
    Kind.STATE: (),
    Kind.CROSS: (),
}
MAY_HAVE: dict[Kind, tuple[str, ...]] = {
    Kind.FULL: ("value_dim",),
    Kind.SLIDING: ("value_dim",),
    Kind.CHUNKED: ("value_dim",),
    Kind.LATENT: ("head_dim", "value_dim"),
    Kind.STATE: ("state_bytes",),
    Kind.CROSS: (),
}
SIZES = ("kv_heads", "head_dim", "value_dim", "window_tokens", "latent_dim", "rope_dim", "state_bytes")


@dataclass(frozen=True)
class LayerGroup:
    """Layers that cache alike; where they stand in the model does not matter.

    Parameters
    ----------
    kind : Kind
    layers : int
        How many.
    kv_heads, head_dim : int, optional
        KV heads of a layer, elements of a key. In latent layers `head_dim` is that of a key as attention sees it, which no cache holds.
    value_dim : int, optional
        Elements of a value; those of a key where not given.
    window_tokens : int, optional
        Window or chunk.
    latent_dim, rope_dim : int, optional
        kv_lora_rank and qk_rope_head_dim.
    state_bytes : int, optional
        State of one layer and sequence [B]; None where the source does not give it, and then it is not counted.

    Raises
    ------
    InputError
        If a size is no positive whole number, or the kind lacks one that it needs, or has one that it cannot have.
    """

    kind: Kind
    layers: int
    kv_heads: int | None = None
    head_dim: int | None = None
    value_dim: int | None = None
    window_tokens: int | None = None
    latent_dim: int | None = None
    rope_dim: int | None = None
    state_bytes: int | None = None

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", Kind(self.kind))
        except ValueError:
            raise InputError("layers", "kind", self.kind, "one of " + ", ".join(Kind)) from None
        where = f"{self.kind} layers"
        for field in ("layers", *SIZES):
            value = getattr(self, field)
            needed = field == "layers" or field in NEEDS[self.kind]
            if value is None and not needed:
                continue
            if type(value) is not int or not 0 < value <= LARGEST:
                raise InputError(where, field, "nothing" if value is None else value, f"a whole number from 1 to {LARGEST:,}")
            if not needed and field not in MAY_HAVE[self.kind]:
                raise InputError(where, field, value, "nothing: such layers have none")

    @property
    def caches(self) -> bool:
        """Whether the layers cache anything for each token."""
        return self.kind in HEADS or self.kind is Kind.LATENT

    @property
    def vectors(self) -> tuple[tuple[int, int], ...]:
        """What one layer caches of one token: (how many, elements of each), keys first."""
        if self.kind in HEADS:
            return ((self.kv_heads, self.head_dim), (self.kv_heads, self.value_dim or self.head_dim))
        return ((1, self.latent_dim), (1, self.rope_dim)) if self.kind is Kind.LATENT else ()

    def held_tokens(self, context_tokens: int) -> int:
        """Tokens of a context whose KV the layers need at its end, or may need in the present chunk."""
        return min(context_tokens, self.window_tokens) if self.kind in WINDOWED else context_tokens

    def attended_pairs(self, context_tokens: int) -> int:
        """Pairs of a token and one that it attends to, itself included, over a causal prompt."""
        if not self.caches:
            return 0
        n, w = context_tokens, self.held_tokens(context_tokens)
        if self.kind is Kind.CHUNKED:
            chunks, rest = divmod(n, self.window_tokens)
            return chunks * (self.window_tokens * (self.window_tokens + 1) // 2) + rest * (rest + 1) // 2
        return w * (w + 1) // 2 + (n - w) * w


@dataclass(frozen=True)
class Layout:
    """A model as its cache sees it.

    Parameters
    ----------
    model : str
        Name as printed.
    groups : tuple of LayerGroup
        At least one of them caches KV.
    query_heads : int, optional
    parameters, active_parameters : int, optional
        All, and those that one token passes through; the latter for mixtures of experts alone.
    weight_bytes : int, optional
        Weights as stored, where a checkpoint or its card says so [B].
    weights_stored : str
        Format in which the publisher gives the weights.
    context_tokens : int, optional
        Longest context that the publisher states.
    label : Label
        Evidence class: where the shape was copied from.
    source : str
    notes : tuple of str
        What a reader of the figures should know of how they were read.

    Raises
    ------
    InputError
        If no layer caches KV, a count is no positive whole number, there are more active parameters than parameters, or the query heads
        do not divide into groups.
    """

    model: str
    groups: tuple[LayerGroup, ...]
    query_heads: int | None = None
    parameters: int | None = None
    active_parameters: int | None = None
    weight_bytes: int | None = None
    weights_stored: str = "bf16"
    context_tokens: int | None = None
    label: Label = Label.LITERATURE
    source: str = ""
    notes: tuple[str, ...] = ()

    status: ClassVar[Status] = Status.STANDS
    """A shape is what its publisher says it is."""

    def __post_init__(self) -> None:
        where = f"model {self.model}"
        if not any(group.caches for group in self.groups):
            raise InputError(where, "layers", "none that caches KV", "at least one")
        for field in ("query_heads", "parameters", "active_parameters", "weight_bytes", "context_tokens"):
            value = getattr(self, field)
            if value is not None and (type(value) is not int or not 0 < value <= 2**60):
                raise InputError(where, field, value, "a positive whole number or nothing")
        if self.active_parameters is not None and (self.parameters is None or self.active_parameters > self.parameters):
            raise InputError(where, "active_parameters", self.active_parameters, f"at most the {self.parameters} parameters")
        for group in self.groups:
            if self.query_heads is not None and group.kind in HEADS and self.query_heads % group.kv_heads:
                raise InputError(where, "query_heads", self.query_heads, f"a multiple of the {group.kv_heads} KV heads")

    @property
    def cached(self) -> tuple[LayerGroup, ...]:
        """Groups that cache KV."""
        return tuple(group for group in self.groups if group.caches)

    @property
    def windowed(self) -> bool:
        """Whether some layers need less than the whole context."""
        return any(group.kind in WINDOWED for group in self.groups)

    @property
    def not_counted(self) -> tuple[str, ...]:
        """What the layers keep besides, in words."""
        words = []
        for group in self.groups:
            if group.kind is Kind.CROSS:
                words.append(f"KV of the other input in {group.layers} cross-attention layers")
            if group.kind is Kind.STATE and group.state_bytes is None:
                words.append(f"state of {group.layers} layers without KV, which the source does not give")
        return tuple(words)

    def heads_on_rank(self, group: LayerGroup, tp: int) -> int:
        """KV heads of a layer that one of `tp` ranks holds: its share, or a replica where there are more ranks than heads.

        Raises
        ------
        InputError
            If `tp` is no rank count, or divides neither the heads nor is divided by them, or does not divide the query heads.
        """
        where = f"model {self.model}"
        if type(tp) is not int or not 0 < tp <= MOST_RANKS:
            raise InputError(where, "tp", tp, f"a whole number from 1 to {MOST_RANKS:,}")
        if group.kind in HEADS and group.kv_heads % tp and tp % group.kv_heads:
            raise InputError(where, "tp", tp, f"a divisor or a multiple of its {group.kv_heads} KV heads")
        if self.query_heads is not None and self.query_heads % tp:
            raise InputError(where, "tp", tp, f"a divisor of its {self.query_heads} query heads")
        return max(1, group.kv_heads // tp) if group.kind in HEADS else 1

    def layer_parts(self, group: LayerGroup, stored: Format, tp: int = 1) -> tuple[int, ...]:
        """Bytes that one rank stores of one token in one layer: keys and values, or latent and rotary key [B].

        Notes
        -----
        Heads are split over the ranks, and replicated where there are fewer of them than ranks. A latent serves all heads, so that every
        rank keeps all of it.
        """
        heads = self.heads_on_rank(group, tp)
        return tuple((heads if group.kind in HEADS else count) * stored.vector_bytes(elements) for count, elements in group.vectors)

    def token_bytes(self, group: LayerGroup, stored: Format, tp: int = 1) -> int:
        """Bytes that one rank stores of one token in all layers of a group [B]."""
        return group.layers * sum(self.layer_parts(group, stored, tp))
