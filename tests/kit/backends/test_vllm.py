"""What can be said of the vLLM backend without vLLM: its engine is played by a stand-in with the same attributes."""

from types import SimpleNamespace

import numpy as np
import pytest

from kvtier.audit.physical_bound import UnexpectedWeights
from kvtier.audit.residency import UnexpectedPool
from kvtier.audit.sequences import PrefixCacheHit
from kvtier.errors import InputError
from kvtier.kit.backends.vllm import HITS, QUERIES, Vllm, resident


class Tensor:
    """As much of a tensor as is asked for."""

    def __init__(self, count, element_bytes, dtype="torch.float16"):
        self.count, self.bytes, self.dtype = count, element_bytes, dtype

    def numel(self):
        return self.count

    def element_size(self):
        return self.bytes


CONFIG = SimpleNamespace(
    num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=100, tie_word_embeddings=True
)
BLOCKS, BLOCK = 10, 16
POOL = 2 * 2 * 2 * 8 * BLOCKS * BLOCK


def backend(weight_bytes=2, pool_bytes=2, hits=0, generated=None):
    runner = SimpleNamespace(
        model=SimpleNamespace(parameters=lambda: [Tensor(10_000, weight_bytes)], buffers=lambda: [Tensor(16, 4)]),
        kv_caches=[Tensor(POOL // 2, pool_bytes), [Tensor(POOL // 2, pool_bytes)]],
    )

    class Engine:
        llm_engine = SimpleNamespace(vllm_config=SimpleNamespace(cache_config=SimpleNamespace(num_gpu_blocks=BLOCKS, block_size=BLOCK)))
        asked = None

        def get_metrics(self):
            return [SimpleNamespace(name=HITS, value=hits), SimpleNamespace(name=QUERIES, value=500), SimpleNamespace(name="other")]

        def generate(self, prompts, sampling, use_tqdm):
            Engine.asked = (prompts, sampling)
            count = sampling["max_tokens"] if generated is None else generated
            return [SimpleNamespace(outputs=[SimpleNamespace(token_ids=[0] * count)]) for _ in prompts]

    made = Vllm.__new__(Vllm)
    made._sampling, made._folder, made._engine, made._prompts = dict, None, Engine(), []
    made._resident = resident(SimpleNamespace(model_runner=runner))
    made.loaded = made._loaded(CONFIG, "float16", "tiny")
    return made


def test_what_is_resident_is_held_against_type_and_geometry():
    subjects = backend().checked("here")
    assert [subject.unit for subject in subjects] == ["GiB", "B/token", "hits"]
    assert backend().loaded.layer_parameters == 10_000 - 100 * 32 - 32


def test_planted_failures_are_refused():
    with pytest.raises(UnexpectedWeights, match="the size of float32"):
        backend(weight_bytes=4).checked("here")
    with pytest.raises(UnexpectedPool, match="the size of float32"):
        backend(pool_bytes=4).checked("here")
    with pytest.raises(PrefixCacheHit):
        backend(hits=16).checked("here")


def test_a_generation_has_the_length_that_is_asked_for_and_no_end():
    made = backend()
    made.prefill(np.arange(300).reshape(3, 100))
    assert made.decode_s("vllm", 2, 40, 8) > 0
    prompts, sampling = made._engine.asked
    assert [prompt["prompt_token_ids"] for prompt in prompts] == [list(range(40)), list(range(100, 140))]
    assert sampling == {"temperature": 0.0, "max_tokens": 8, "min_tokens": 8, "ignore_eos": True, "detokenize": False}
    stopped = backend(generated=5)
    stopped.prefill(np.arange(300).reshape(3, 100))
    with pytest.raises(InputError, match=r"tokens generated: found \[5\], expected 8 in each of 2"):
        stopped.decode_s("vllm", 2, 40, 8)


def test_context_is_the_mean_of_what_the_remaining_steps_read():
    for steps in (5, 10, 32):
        prompt = backend().prompt_tokens(100, steps)
        read = [prompt + token - 1 for token in range(3, steps + 1)]
        assert abs(sum(read) / len(read) - 100) <= 0.5
