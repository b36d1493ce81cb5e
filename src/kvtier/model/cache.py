"""The KV cache in blocks of 16 tokens: exported to bytes, put back, dropped, rounded, made to forget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kvtier.analytic.attention import block_count
from kvtier.model.config import ModelConfig

BLOCK_TOKENS = 16
"""Tokens of a block (SPEC §2)."""


class NotResident(LookupError):
    """A block was read whose payload is in no slot: a cache miss, told before any logit is computed."""


class KVCache:
    """Keys and values of one sequence, as paged attention keeps them.

    Parameters
    ----------
    config : ModelConfig
    dtype : data type
        Of keys and values; their bytes in a payload are little-endian.
    first_position : int
        Position of the first token. Above 0, what comes before it is not there: no block, nothing to attend to.
    block_tokens : int
        Tokens of a block.

    Notes
    -----
    A block's payload has the shape ``(layers, 2, kv_heads, block_tokens, head_dim)``, keys before values. Keys are stored rotated to
    their position, so a payload belongs to its position and to the tokens before it. Payloads lie in slots; a table gives the slot of
    each block, so blocks that come back may lie in another order.
    """

    def __init__(self, config: ModelConfig, dtype: DTypeLike, first_position: int = 0, block_tokens: int = BLOCK_TOKENS) -> None:
        self.config, self.dtype = config, np.dtype(dtype).newbyteorder("<")
        self.first_position, self.block_tokens = first_position, block_tokens
        self.tokens = 0
        self._payloads: list[NDArray] = []
        self._free: list[int] = []
        self._table: list[int | None] = []
        self._forgotten: set[tuple[int, int, int]] = set()

    @property
    def payload_shape(self) -> tuple[int, int, int, int, int]:
        """Layers, keys and values, KV heads, tokens, elements of a head."""
        return (self.config.layers, 2, self.config.kv_heads, self.block_tokens, self.config.head_dim)

    @property
    def block_bytes(self) -> int:
        """Payload of one block, whether filled or not [B]."""
        return int(np.prod(self.payload_shape)) * self.dtype.itemsize

    @property
    def blocks(self) -> int:
        """Blocks begun, resident or not."""
        return len(self._table)

    @property
    def resident_bytes(self) -> int:
        """Payloads that are in a slot [B]."""
        return sum(slot is not None for slot in self._table) * self.block_bytes

    @property
    def slots(self) -> tuple[int | None, ...]:
        """Slot of each block; None of one that is not resident."""
        return tuple(self._table)

    def payload(self, block: int) -> NDArray:
        """The payload of a block, in place.

        Returns
        -------
        ndarray, shape (layers, 2, kv_heads, block_tokens, head_dim)

        Raises
        ------
        NotResident
            If the block was dropped.
        """
        slot = self._table[block]
        if slot is None:
            raise NotResident(f"block {block} is not resident: put it back or compute it again")
        return self._payloads[slot]

    def _take_slot(self) -> int:
        if not self._free:
            self._payloads.append(np.empty(0))
            self._free.append(len(self._payloads) - 1)
        slot = self._free.pop(0)
        self._payloads[slot] = np.zeros(self.payload_shape, self.dtype)
        return slot

    def extend(self, tokens: int) -> NDArray[np.int64]:
        """Make room for more tokens.

        Returns
        -------
        ndarray, shape (tokens,)
            Their positions.

        Raises
        ------
        NotResident
            If a block before them is not there; nothing has changed then.
        """
        for block in range(self.blocks):
            self.payload(block)
        first = self.first_position + self.tokens
        self.tokens += tokens
        while self.blocks < block_count(self.tokens, self.block_tokens):
            self._table.append(self._take_slot())
        return np.arange(first, first + tokens)

    def write(self, layer: int, keys: NDArray, values: NDArray) -> None:
        """Fill one layer of the newest tokens, once.

        Parameters
        ----------
        layer : int
        keys, values : ndarray, shape (kv_heads, tokens, head_dim)
            Of the last tokens that :meth:`extend` made room for; keys rotated.
        """
        first = self.tokens - keys.shape[1]
        for token in range(keys.shape[1]):
            block, row = divmod(first + token, self.block_tokens)
            self.payload(block)[layer, :, :, row] = keys[:, token], values[:, token]

    def read(self, layer: int) -> tuple[NDArray, NDArray]:
        """Keys and values of a layer, gathered in the order of their positions.

        Returns
        -------
        keys, values : ndarray, shape (kv_heads, tokens, head_dim)

        Raises
        ------
        NotResident
            If a block is not there.
        """
        payloads = [self.payload(block)[layer] for block in range(self.blocks)]
        keys, values = np.concatenate(payloads, axis=2)[:, :, : self.tokens]
        return np.ascontiguousarray(keys), np.ascontiguousarray(values)

    def kept(self, layer: int) -> NDArray[np.bool_]:
        """Which entries of a layer were not forgotten: shape (kv_heads, tokens)."""
        kept = np.ones((self.config.kv_heads, self.tokens), dtype=bool)
        for forgotten_layer, kv_head, token in self._forgotten:
            if forgotten_layer == layer:
                kept[kv_head, token] = False
        return kept

    def export_block(self, block: int) -> bytes:
        """The payload of a block as any tier stores it.

        Raises
        ------
        NotResident
            If the block is not there.
        """
        return self.payload(block).tobytes()

    def drop_block(self, block: int) -> None:
        """Give up the slot of a block: reading it is a miss from now on, not another result."""
        self.payload(block)
        self._free.append(self._table[block])
        self._table[block] = None

    def put_block(self, block: int, content: bytes) -> None:
        """Put a payload into a slot, over the present one or where there is none.

        Raises
        ------
        ValueError
            If it is not the size of a block.
        """
        if len(content) != self.block_bytes:
            raise ValueError(f"block {block}: got {len(content)} B, expected {self.block_bytes} B")
        if self._table[block] is None:
            self._table[block] = self._take_slot()
        self.payload(block)[...] = np.frombuffer(content, self.dtype).reshape(self.payload_shape)

    def alter(self, change: Callable[[NDArray], NDArray]) -> None:
        """Replace every payload by what `change` makes of it: rounding, for one."""
        for block in range(self.blocks):
            self.payload(block)[...] = change(self.payload(block))

    def forget(self, layer: int, kv_head: int, tokens: range) -> None:
        """Leave entries out of attention for good, as methods that evict by head and token do: no miss tells the reader.

        Parameters
        ----------
        layer, kv_head : int
        tokens : range
            Counted from the first token of the cache.
        """
        self._forgotten.update((layer, kv_head, token) for token in tokens)

    def copy(self, blocks: int | None = None) -> KVCache:
        """A cache of its own with the same content, or with that of the first full `blocks` alone.

        Raises
        ------
        NotResident
            If a block to copy is not there.
        ValueError
            If there are not so many full blocks.
        """
        if blocks is not None and not 0 <= blocks * self.block_tokens <= self.tokens:
            raise ValueError(f"got {blocks} blocks, expected 0 to {self.tokens // self.block_tokens}, which are full")
        other = KVCache(self.config, self.dtype, self.first_position, self.block_tokens)
        other.extend(self.tokens if blocks is None else blocks * self.block_tokens)
        for block in range(other.blocks):
            other.put_block(block, self.export_block(block))
        other._forgotten = {entry for entry in self._forgotten if entry[2] < other.tokens}
        return other
