"""What decodes a model: transformers, vLLM, or numpy where neither is installed. Each library is imported when a model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvtier.audit.physical_bound import Checked, resident_weights
from kvtier.audit.residency import kv_pool

BLOCK_TOKENS = 16
"""Tokens of a block (SPEC §2)."""


@dataclass(frozen=True)
class Loaded:
    """A model in memory, by what its tensors say.

    Parameters
    ----------
    model : str
        Its name, or its shape in words.
    dtype : str
        Type that was asked for.
    resident_dtype : str
        Type, or types, of the tensors that lie in memory.
    parameters, layer_parameters : int
        Of the model, and of its layers alone: without embedding and unembedding.
    weight_bytes : int
        Parameters and buffers, resident [B].
    unread_bytes : int
        Of these, an embedding table of its own, of which a step reads a row a token [B].
    layers, kv_heads, head_dim, vocabulary : int
        Shape of its KV, and number of its token ids.
    kv_bytes_per_token : int
        Keys and values of one token in all layers at the type that was asked for (SPEC §2) [B].
    """

    model: str
    dtype: str
    resident_dtype: str
    parameters: int
    layer_parameters: int
    weight_bytes: int
    unread_bytes: int
    layers: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    kv_bytes_per_token: int

    def check_weights(self, source: str) -> Checked:
        """Refuse weights of another type than was asked for.

        Raises
        ------
        UnexpectedWeights
            If the bytes are not those of the type.
        """
        return resident_weights(self.weight_bytes, self.parameters, self.dtype, source)


@dataclass(frozen=True)
class Pool:
    """KV that is allocated.

    Parameters
    ----------
    pool_bytes : int
        Of all its tensors [B].
    tokens : int
        That they have room for.
    """

    pool_bytes: int
    tokens: int

    def check(self, loaded: Loaded, source: str) -> Checked:
        """Refuse a pool of another type or shape than the model's.

        Raises
        ------
        UnexpectedPool
            If its bytes a token are not those of the geometry.
        """
        return kv_pool(self.pool_bytes, self.tokens, loaded.kv_bytes_per_token, loaded.dtype, source)


class Backend(Protocol):
    """A model that is loaded, ready to decode in one way or several."""

    loaded: Loaded
    described: dict[str, str]
    """How it decodes, for the record."""

    def prompt_tokens(self, context_tokens: int, steps: int) -> int:
        """Tokens of the prompt, for the steps that the difference leaves to read `context_tokens` on average, to half a token."""
        ...

    def prefill(self, prompts: Sequence[Sequence[int]], progress: Callable[[float], None]) -> None:
        """Take the prompts, one a sequence, and have their KV ready where that can be done outside the clock."""
        ...

    def decode_s(self, way: str, batch: int, prompt_tokens: int, tokens: int) -> float:
        """Time of `tokens` generated tokens in each of the first `batch` sequences, on the first tokens of their prompts [s]."""
        ...

    def checked(self, source: str) -> list[Checked]:
        """Guards over what is resident, after the last timing.

        Raises
        ------
        InputError
            Of the guard that does not hold.
        """
        ...

    def pool(self) -> Pool:
        """KV as allocated."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...
