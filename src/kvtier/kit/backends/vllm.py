"""Decode by vLLM where it is installed: paged attention, prefix caching off.

Written to run unchanged where vLLM (version 0.10 or later, its engine V1) and its GPU are; it was not run when it was written, for neither
was there. A generation holds its prefill: prefill is in the time of 2 tokens as in that of N, and drops out of their difference.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from kvtier.audit.physical_bound import Checked
from kvtier.audit.sequences import no_prefix_hits
from kvtier.errors import InputError
from kvtier.kit.backends import Loaded, Pool, shapes
from kvtier.kit.backends.transformers import qwen2_config
from kvtier.model.config import ModelConfig

WAY = "vllm"
HITS, QUERIES = "vllm:prefix_cache_hits", "vllm:prefix_cache_queries"


def resident(worker: Any) -> dict[str, Any]:
    """What lies in a worker's memory; runs inside the worker."""
    runner = worker.model_runner
    parameters = list(runner.model.parameters())
    pools = [tensor for each in runner.kv_caches for tensor in (each if isinstance(each, list | tuple) else [each])]
    tensors = [*parameters, *runner.model.buffers()]
    return {
        "parameters": sum(each.numel() for each in parameters),
        "weight_bytes": sum(each.numel() * each.element_size() for each in tensors),
        "dtypes": sorted({str(each.dtype).removeprefix("torch.") for each in parameters}),
        "pool_bytes": sum(each.numel() * each.element_size() for each in pools),
    }


class Vllm:
    """A model in vLLM, on one GPU.

    Parameters
    ----------
    model : ModelConfig or str
        A shape, which is given random weights, or a folder's or hub's name.
    dtype : str
        Of weights and KV.
    seed : int
    positions : int
        Longest sequence.
    batch : int
        Most sequences at a time.
    """

    def __init__(self, model: ModelConfig | str, dtype: str, seed: int, positions: int, batch: int) -> None:
        # In one process, so that what is resident can be asked of the worker.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import LLM, SamplingParams

        self._sampling, self._folder = SamplingParams, None
        shape = model if isinstance(model, ModelConfig) else shapes.SHAPES.get(model)
        settings: dict[str, Any] = {"load_format": "auto"}
        where = str(model)
        if shape is not None:
            self._folder = tempfile.TemporaryDirectory()
            config = qwen2_config(shape, positions)
            config.architectures = ["Qwen2ForCausalLM" if shape.qkv_bias else "LlamaForCausalLM"]
            config.save_pretrained(self._folder.name)
            where, settings = self._folder.name, {"load_format": "dummy"}
        self._engine = LLM(
            model=where,
            dtype=dtype,
            seed=seed,
            max_model_len=positions,
            max_num_seqs=batch,
            enable_prefix_caching=False,
            skip_tokenizer_init=True,
            disable_log_stats=False,
            **settings,
        )
        (self._resident,) = self._engine.collective_rpc(resident)
        config = self._engine.llm_engine.model_config.hf_config
        self.loaded = self._loaded(config, dtype, where if shape is None else shapes.in_words(shape))
        self.described = {WAY: "paged attention, prefix caching off; prefill is inside both times and drops out of their difference"}
        self._prompts: list[list[int]] = []

    def _loaded(self, config: Any, dtype: str, said: str) -> Loaded:
        table = config.vocab_size * config.hidden_size
        kv_heads, head_dim = shapes.kv_of(config)
        tied = bool(config.tie_word_embeddings)
        return Loaded(
            model=said,
            dtype=dtype,
            resident_dtype=", ".join(self._resident["dtypes"]),
            parameters=self._resident["parameters"],
            layer_parameters=self._resident["parameters"] - table * (1 if tied else 2) - config.hidden_size,
            weight_bytes=self._resident["weight_bytes"],
            unread_bytes=0 if tied else table * shapes.element_bytes(dtype),
            layers=config.num_hidden_layers,
            kv_heads=kv_heads,
            head_dim=head_dim,
            vocabulary=config.vocab_size,
            kv_bytes_per_token=2 * config.num_hidden_layers * kv_heads * head_dim * shapes.element_bytes(dtype),
        )

    def prompt_tokens(self, context_tokens: int, steps: int) -> int:
        """As :meth:`kvtier.kit.backends.Backend.prompt_tokens`: token 1 is the prefill's, token k reads prompt + k − 1; 3 to N remain."""
        return context_tokens - (steps + 1) // 2

    def prefill(self, prompts: Sequence[Sequence[int]], progress: Callable[[float], None] = lambda share: None) -> None:
        """Keep the prompts: they are prefilled in each generation."""
        self._prompts = [list(map(int, prompt)) for prompt in prompts]

    def decode_s(self, way: str, batch: int, prompt_tokens: int, tokens: int) -> float:
        """As :meth:`kvtier.kit.backends.Backend.decode_s`, with the prefill."""
        sampling = self._sampling(temperature=0.0, max_tokens=tokens, min_tokens=tokens, ignore_eos=True, detokenize=False)
        prompts = [{"prompt_token_ids": prompt[:prompt_tokens]} for prompt in self._prompts[:batch]]
        start = perf_counter_ns()
        answers = self._engine.generate(prompts, sampling, use_tqdm=False)
        seconds = (perf_counter_ns() - start) * 1e-9
        lengths = {len(answer.outputs[0].token_ids) for answer in answers}
        if lengths != {tokens} or len(answers) != batch:
            raise InputError("vllm", "tokens generated", sorted(lengths), f"{tokens} in each of {batch} sequences")
        return seconds

    def pool(self) -> Pool:
        """Blocks that the engine has allocated."""
        cache = self._engine.llm_engine.vllm_config.cache_config
        return Pool(self._resident["pool_bytes"], cache.num_gpu_blocks * cache.block_size)

    def checked(self, source: str) -> list[Checked]:
        """As :meth:`kvtier.kit.backends.Backend.checked`: weights, pool, and no hit of the prefix cache."""
        counters = {each.name: each.value for each in self._engine.get_metrics() if each.name in (HITS, QUERIES)}
        hits = no_prefix_hits(int(counters.get(HITS, 0)), int(counters.get(QUERIES, 0)), source)
        return [self.loaded.check_weights(source), self.pool().check(self.loaded, source), hits]

    def close(self) -> None:
        """Give the engine and the folder of its configuration back."""
        self._engine = None
        if self._folder is not None:
            self._folder.cleanup()
