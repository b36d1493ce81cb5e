"""KV bytes of a token, a block and a sequence, for any layout, storage and number of ranks.

Two figures stand side by side where layers have windows. *Window-aware*: each layer holds what it needs, so a fixed part that windows and
states fill once, and a slope from the layers that see everything. *Paged*: all layers in unified pages, each holding the whole context, as
a paged cache allocates them. Bytes are those of one rank unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from kvtier.analytic.kv_formats import Format
from kvtier.analytic.layouts import LARGEST, WINDOWED, Kind, Layout
from kvtier.errors import InputError


def checked_count(name: str, value: int, most: int = LARGEST) -> int:
    """A count of tokens or sequences.

    Raises
    ------
    InputError
        If it is no whole number from 1 to `most`.
    """
    if type(value) is not int or not 0 < value <= most:
        raise InputError("size", name, value, f"a whole number from 1 to {most:,}")
    return value


@dataclass(frozen=True)
class Piece:
    """What one block of one layer is made of.

    Parameters
    ----------
    layers : int
        Layers that have such blocks.
    part_bytes : tuple of int
        Keys and values, or latent and rotary key [B].
    copies : int
        Contiguous copies that move the block of one layer.
    """

    layers: int
    part_bytes: tuple[int, ...]
    copies: int

    @property
    def layer_bytes(self) -> int:
        """Block of one layer [B]."""
        return sum(self.part_bytes)


@dataclass(frozen=True)
class Footprint:
    """Bytes of a model's cache.

    Parameters
    ----------
    layout : Layout
    stored : Format
        Of the cached elements.
    tp : int
        Ranks of tensor parallelism.

    Raises
    ------
    InputError
        If the layout cannot be dealt out to so many ranks.
    """

    layout: Layout
    stored: Format
    tp: int = 1

    def __post_init__(self) -> None:
        for group in self.layout.groups:
            self.layout.heads_on_rank(group, self.tp)

    @property
    def _grown(self) -> Iterator[tuple[int, int | None]]:
        """(bytes a token, window) of each group that caches KV."""
        for group in self.layout.cached:
            yield self.layout.token_bytes(group, self.stored, self.tp), group.window_tokens

    @property
    def bytes_per_token(self) -> int:
        """One token in all layers [B]: what a paged cache spends, and what a context within every window needs."""
        return sum(size for size, _ in self._grown)

    @property
    def bytes_per_token_in_all(self) -> int:
        """The same on all ranks together, replicas included [B]."""
        return self.tp * self.bytes_per_token

    @property
    def slope_bytes(self) -> int:
        """What one more token needs once every window is full [B]."""
        return sum(size for size, window in self._grown if window is None)

    @property
    def window_bytes(self) -> int:
        """Windows of one sequence, full [B]."""
        return sum(size * window for size, window in self._grown if window is not None)

    @property
    def state_bytes(self) -> int:
        """States of one sequence in layers without KV [B]; split over the ranks, a remainder rounded up in each layer."""
        states = (group for group in self.layout.groups if group.kind is Kind.STATE and group.state_bytes)
        return sum(group.layers * -(-group.state_bytes // self.tp) for group in states)

    @property
    def fixed_bytes(self) -> int:
        """What one long sequence needs whatever its length: full windows and states [B]."""
        return self.window_bytes + self.state_bytes

    def sequence_bytes(self, context_tokens: int) -> int:
        """One sequence, window-aware [B].

        Raises
        ------
        InputError
            If `context_tokens` is no count.
        """
        tokens = checked_count("context", context_tokens)
        held = sum(self.layout.token_bytes(group, self.stored, self.tp) * group.held_tokens(tokens) for group in self.layout.cached)
        return held + self.state_bytes

    def paged_bytes(self, context_tokens: int) -> int:
        """One sequence with all layers in unified pages [B], the last page counted as far as it is filled.

        Raises
        ------
        InputError
            If `context_tokens` is no count.
        """
        return self.bytes_per_token * checked_count("context", context_tokens) + self.state_bytes

    def block_bytes(self, block_tokens: int) -> int:
        """One block of all layers [B].

        Raises
        ------
        InputError
            If `block_tokens` is no count.
        """
        return self.bytes_per_token * checked_count("block", block_tokens)

    def pieces(self, block_tokens: int) -> tuple[Piece, ...]:
        """Blocks of single layers, one piece a group: the unit of a copy where each layer has its own buffer.

        Notes
        -----
        Keys and values lie apart in the common layout (2, blocks, tokens, heads, elements), hence two copies a layer; a latent and its
        rotary key lie side by side, hence one.
        """
        tokens = checked_count("block", block_tokens)
        found = []
        for group in self.layout.cached:
            parts = tuple(tokens * part for part in self.layout.layer_parts(group, self.stored, self.tp))
            found.append(Piece(group.layers, parts, 1 if group.kind is Kind.LATENT else len(parts)))
        return tuple(found)

    def crossover_paged(self, weight_bytes: int) -> Fraction:
        """Tokens at which the KV of one sequence, paged, is as large as the weights of a rank."""
        return Fraction(max(0, weight_bytes - self.state_bytes), self.bytes_per_token)

    def crossover(self, weight_bytes: int) -> Fraction | None:
        """The same, window-aware; None if windows alone never grow so large."""
        left, slope, reached = Fraction(weight_bytes - self.state_bytes), self.bytes_per_token, 0
        if left <= 0:
            return Fraction(0)
        windows = sorted((window, size) for size, window in self._grown if window is not None)
        for window, size in windows:
            if slope * (window - reached) >= left:
                break
            left -= slope * (window - reached)
            reached, slope = window, slope - size
        return reached + left / slope if slope else None


def kinds(layout: Layout) -> str:
    """The layers in words: ``24 layers: 12 sliding, window 128; 12 full``."""
    words = []
    for group in layout.groups:
        heads = f", {group.kv_heads} KV heads of {group.head_dim}" if group.kv_heads else ""
        if group.value_dim and group.kv_heads and group.value_dim != group.head_dim:
            heads += f" and {group.value_dim}"
        latent = f", {group.latent_dim} + {group.rope_dim}" if group.kind is Kind.LATENT else ""
        window = f", {'window' if group.kind is Kind.SLIDING else 'chunk'} {group.window_tokens:,}" if group.kind in WINDOWED else ""
        words.append(f"{group.layers} {group.kind}{heads}{latent}{window}")
    return f"{sum(group.layers for group in layout.groups)} layers: {'; '.join(words)}"
