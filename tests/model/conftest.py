import numpy as np
import pytest

from kvtier.model.config import ModelConfig
from kvtier.model.weights import random_weights


@pytest.fixture(scope="session")
def tiny():
    """A model small enough for loops in Python, its head size not hidden over heads."""
    return ModelConfig(layers=2, hidden=12, query_heads=6, kv_heads=2, head_dim=4, ffn=20, vocab=24)


@pytest.fixture(scope="session")
def tiny_weights(tiny):
    return random_weights(tiny, seed=3, dtype=np.float64)
