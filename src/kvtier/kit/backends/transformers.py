"""Decode by transformers on a CPU or an accelerator, with its own attention and cache, in a loop of our own.

Prompts are prefilled once, one sequence at a time, outside any clock. For each timing a cache is put together, outside the clock as well,
from the first tokens of the first sequences: in a causal model KV of a token depends on what comes before it alone, so a prompt cut short
has the KV of the shorter prompt. So every timing of a point starts at the same context, with memory that no other timing has grown.

The loop feeds the likeliest token back on the device. Logits are not copied to the host and no end of sequence stops it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter_ns
from typing import Any

import numpy as np

from kvtier.audit.physical_bound import Checked
from kvtier.errors import InputError
from kvtier.kit.backends import Loaded, Pool, shapes
from kvtier.model.config import ModelConfig

WAYS = {
    "sdpa": ("sdpa", False, "torch's scaled dot-product attention; each step concatenates its KV to a new cache, as transformers does"),
    "sdpa-in-place": ("sdpa", True, "the same attention; KV is written into a cache with room for it, so that a step only reads the rest"),
    "eager": ("eager", False, "attention as separate products, with KV repeated for each query head; cache as of sdpa"),
}
"""By name: attention, whether the cache is written in place, and what that means."""

Sequence_ = list[tuple[Any, Any]]
"""Keys and values of one sequence by layer, each of shape (1, kv_heads, tokens, head_dim)."""


def shape_of(model: str) -> ModelConfig:
    """Shape of a model by name: of its configuration, in a folder or on the hub.

    Raises
    ------
    InputError
        If there is no such model, or its configuration is not that of a decoder whose layers are alike.
    """
    if model in shapes.SHAPES:
        return shapes.SHAPES[model]
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise InputError("decode", "model", model, f"a folder or a name on the hub: {str(error).splitlines()[0]}") from None
    try:
        return ModelConfig(
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            query_heads=config.num_attention_heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
            ffn=config.intermediate_size,
            vocab=config.vocab_size,
            tied=bool(config.tie_word_embeddings),
        )
    except AttributeError as error:
        raise InputError("decode", "model", model, f"a decoder whose layers are alike: {error}") from None


def qwen2_config(shape: ModelConfig, positions: int) -> Any:
    """The shape as transformers' Qwen2 configuration, or Llama's where queries, keys and values have no bias."""
    import transformers

    kind = transformers.Qwen2Config if shape.qkv_bias else transformers.LlamaConfig
    return kind(
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.query_heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.ffn,
        vocab_size=shape.vocab,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        rms_norm_eps=shape.norm_eps,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=positions,
    )


def _random(shape: ModelConfig, dtype: Any, device: str, positions: int) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device(device):
        return AutoModelForCausalLM.from_config(qwen2_config(shape, positions), dtype=dtype, attn_implementation="sdpa")


def _named(model: str, dtype: Any, device: str) -> Any:
    from transformers import AutoModelForCausalLM

    try:
        # `dtype`, not the older `torch_dtype`: that one was once ignored without a word, and float32 was loaded.
        return AutoModelForCausalLM.from_pretrained(model, dtype=dtype, attn_implementation="sdpa").to(device)
    except (OSError, ValueError) as error:
        raise InputError("decode", "model", model, f"a folder or a name on the hub: {str(error).splitlines()[0]}") from None


@cache
def _in_place_layer() -> type:
    from transformers.cache_utils import DynamicLayer

    class InPlaceLayer(DynamicLayer):
        """A layer of a cache with room for tokens to come; keys and values are views of what is filled."""

        def begin(self, keys: Any, values: Any, filled: int) -> None:
            self.lazy_initialization(keys, values)
            self._keys, self._values = keys, values
            self._fill(filled)

        def _fill(self, filled: int) -> None:
            self._filled = filled
            self.keys, self.values = self._keys[:, :, :filled], self._values[:, :, :filled]

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            start, stop = self._filled, self._filled + key_states.shape[-2]
            if stop > self._keys.shape[-2]:
                raise InputError("cache", "tokens", stop, f"at most {self._keys.shape[-2]}, the room there is")
            self._keys[:, :, start:stop], self._values[:, :, start:stop] = key_states, value_states
            self._fill(stop)
            return self.keys, self.values

    return InPlaceLayer


class Transformers:
    """A causal model of transformers, with random weights of a shape or by name.

    Parameters
    ----------
    model : ModelConfig or str
        A shape, or a folder's or hub's name.
    dtype : str
        Of weights and KV, as torch names it.
    device : str
        ``cpu``, ``cuda``, ``cuda:1``.
    seed : int
        Of the random weights and of the tokens that are fed first.
    positions : int
        Longest sequence that a random model is made for.
    threads : int, optional
        Of torch on the CPU.
    """

    def __init__(self, model: ModelConfig | str, dtype: str, device: str, seed: int, positions: int, threads: int | None = None) -> None:
        import torch

        self.torch, self.device = torch, torch.device(device)
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise InputError("decode", "device", device, "a device that torch sees; it sees the CPU alone")
        if threads and self.device.type == "cpu":
            torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self._seed, kind = seed, getattr(torch, dtype)
        shape = model if isinstance(model, ModelConfig) else shapes.SHAPES.get(model)
        self.model = (_named(str(model), kind, device) if shape is None else _random(shape, kind, device, positions)).eval()
        self.loaded = self._loaded(str(model) if shape is None else shapes.in_words(shape), dtype)
        names = inspect.signature(self.model.forward).parameters
        # Version 5.24 calls `cache` what was `past_key_values` before.
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._attention, self._sequences, self._pool = "sdpa", [], Pool(0, 0)
        self.described = {name: what for name, (_, _, what) in WAYS.items()}

    def _loaded(self, said: str, dtype: str) -> Loaded:
        config, model = self.model.config, self.model
        tensors = [*model.parameters(), *model.buffers()]
        embedding, unembedding = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        tied = embedding.data_ptr() == unembedding.data_ptr()
        tables = embedding.numel() + (0 if tied else unembedding.numel())
        count = sum(each.numel() for each in model.parameters())
        kv_heads, head_dim = shapes.kv_of(config)
        return Loaded(
            model=said,
            dtype=dtype,
            resident_dtype=", ".join(sorted({str(each.dtype).removeprefix("torch.") for each in model.parameters()})),
            parameters=count,
            layer_parameters=count - tables - config.hidden_size,
            weight_bytes=sum(each.numel() * each.element_size() for each in tensors),
            unread_bytes=0 if tied else embedding.numel() * embedding.element_size(),
            layers=config.num_hidden_layers,
            kv_heads=kv_heads,
            head_dim=head_dim,
            vocabulary=config.vocab_size,
            kv_bytes_per_token=2 * config.num_hidden_layers * kv_heads * head_dim * shapes.element_bytes(dtype),
        )

    def prompt_tokens(self, context_tokens: int, steps: int) -> int:
        """As :meth:`kvtier.kit.backends.Backend.prompt_tokens`: step i reads prompt + i tokens, its own included; steps 3 to N remain."""
        return context_tokens - (steps + 3) // 2

    def prefill(self, prompts: Sequence[Sequence[int]], progress: Callable[[float], None] = lambda share: None) -> None:
        """Run the prompts, one after the other, and keep their KV."""
        self._sequences = []
        for done, prompt in enumerate(prompts):
            progress(done / len(prompts))
            self._sequences.append(self._prefill_one(prompt))

    def _prefill_one(self, ids: Sequence[int]) -> Sequence_:
        from transformers import DynamicCache

        own = DynamicCache()
        with self.torch.inference_mode():
            self._set_attention("sdpa")
            self._forward(self.torch.tensor([list(ids)], device=self.device), own)
        return [(layer.keys, layer.values) for layer in own.layers]

    def _forward(self, ids: Any, own: Any) -> Any:
        return self.model(ids, use_cache=True, logits_to_keep=1, **{self._cache_name: own}).logits[:, -1]

    def _set_attention(self, attention: str) -> None:
        if attention != self._attention:
            self.model.set_attn_implementation(attention)
            self._attention = attention

    def cache(self, batch: int, tokens: int, in_place: bool = False, room: int = 0) -> Any:
        """A cache of the first `tokens` tokens of the first `batch` sequences, in memory of its own.

        Parameters
        ----------
        batch, tokens : int
        in_place : bool
            Whether later tokens are written into `room` that is kept for them.
        room : int
            Tokens.

        Returns
        -------
        transformers.DynamicCache
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        if batch > len(self._sequences) or any(tokens > layers[0][0].shape[-2] for layers in self._sequences[:batch]):
            raise InputError("decode", "prompts", f"{len(self._sequences)} sequences", f"{batch} of {tokens} tokens or more")
        made = DynamicCache()
        made.layers = []
        for layer in range(self.loaded.layers):
            keys, values = (self._together(layer, which, batch, tokens, room if in_place else 0) for which in (0, 1))
            if in_place:
                own = _in_place_layer()()
                own.begin(keys, values, tokens)
            else:
                own = DynamicLayer()
                own.lazy_initialization(keys, values)
                own.keys, own.values = keys, values
            made.layers.append(own)
        return made

    def _together(self, layer: int, which: int, batch: int, tokens: int, room: int) -> Any:
        first = self._sequences[0][layer][which]
        together = first.new_empty((batch, first.shape[1], tokens + room, first.shape[3]))
        for sequence in range(batch):
            together[sequence, :, :tokens] = self._sequences[sequence][layer][which][0, :, :tokens]
        return together

    def first_tokens(self, batch: int) -> Any:
        """Token that each sequence is fed first: shape (batch, 1)."""
        ids = np.random.default_rng((self._seed, batch)).integers(self.loaded.vocabulary, size=(batch, 1))
        return self.torch.from_numpy(ids).to(self.device)

    def generate(self, ids: Any, own: Any, tokens: int) -> Any:
        """Feed `ids`, then the likeliest token, `tokens` times; the last one generated, shape (batch, 1), on the device."""
        for _ in range(tokens):
            ids = self._forward(ids, own).argmax(-1, keepdim=True)
        return ids

    def decode_s(self, way: str, batch: int, prompt_tokens: int, tokens: int) -> float:
        """As :meth:`kvtier.kit.backends.Backend.decode_s`: from an idle device to an idle device."""
        attention, in_place, _ = WAYS[way]
        with self.torch.inference_mode():
            self._set_attention(attention)
            own, ids = self.cache(batch, prompt_tokens, in_place, tokens), self.first_tokens(batch)
            seconds = self._clocked(lambda: self.generate(ids, own, tokens))
        if own.get_seq_length() != prompt_tokens + tokens:
            raise InputError(f"decode, {way}", "tokens in the cache", own.get_seq_length(), f"{prompt_tokens} and the {tokens} generated")
        self._pool = _pool(own, batch * (prompt_tokens + tokens), in_place)
        return seconds

    def regenerate_s(self, ids: Sequence[int], context_tokens: int) -> tuple[float, float]:
        """Make the KV of tokens again on top of the cached context before them, without logits.

        Parameters
        ----------
        ids : sequence of int
            The tokens; they are those of the first prompt from `context_tokens` on.
        context_tokens : int

        Returns
        -------
        seconds, deviation : float
            Time [s]; and the largest difference, over layers, between new KV and that of the prefill, relative to its norm.
        """
        with self.torch.inference_mode():
            self._set_attention("sdpa")
            own, fed = self.cache(1, context_tokens), self.torch.tensor([list(ids)], device=self.device)
            body = self.model.base_model
            seconds = self._clocked(lambda: body(fed, use_cache=True, **{self._cache_name: own}))
            stop = context_tokens + len(ids)
            pairs = [
                (new[:, :, context_tokens:].double(), old[:, :, context_tokens:stop].double())
                for layer, kept in zip(own.layers, self._sequences[0], strict=True)
                for new, old in zip((layer.keys, layer.values), kept, strict=True)
            ]
            return seconds, max(float((new - old).norm() / old.norm()) for new, old in pairs)

    def _clocked(self, run: Callable[[], object]) -> float:
        self.synchronise()
        start = perf_counter_ns()
        run()
        self.synchronise()
        return (perf_counter_ns() - start) * 1e-9

    def synchronise(self) -> None:
        """Wait until the device is idle."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def pool(self) -> Pool:
        """KV of all prompts."""
        tensors = [each for layers in self._sequences for pair in layers for each in pair]
        tokens = sum(layers[0][0].shape[-2] for layers in self._sequences)
        return Pool(sum(each.numel() * each.element_size() for each in tensors), tokens)

    def checked(self, source: str) -> list[Checked]:
        """As :meth:`kvtier.kit.backends.Backend.checked`: weights, KV of the prompts, and KV of the last timing if there was one."""
        found = [self.loaded.check_weights(source), self.pool().check(self.loaded, source)]
        return [*found, self._pool.check(self.loaded, f"{source}, last timing")] if self._pool.tokens else found

    def close(self) -> None:
        """Give model and KV back."""
        self._sequences, self.model = [], None
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()


def _pool(own: Any, tokens: int, in_place: bool) -> Pool:
    def of(layer: Any) -> list[Any]:
        return [layer._keys, layer._values] if in_place else [layer.keys, layer.values]

    return Pool(sum(each.numel() * each.element_size() for layer in own.layers for each in of(layer)), tokens)
