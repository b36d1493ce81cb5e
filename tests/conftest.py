"""What holds for all tests."""

import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline would make a test depend on what else the machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

PUBLIC = {
    "conversation": "mooncake_conversation_trace.jsonl.gz",
    "synthetic": "mooncake_synthetic_trace.jsonl.gz",
    "agentic": "agentic_coding_sessions.jsonl.gz",
    "code": "azure_llm_2023_code.csv.gz",
    "conv": "azure_llm_2023_conv.csv.gz",
}


def public_path(name):
    """File of a public trace, which is no part of the checkout."""
    folder = os.environ.get("KVTIER_TRACES")
    if not folder:
        pytest.skip("KVTIER_TRACES does not name a folder with the public traces")
    return Path(folder, PUBLIC[name])


@pytest.fixture(scope="session")
def public_trace():
    """Public traces by name, each read once; skips where they are absent."""
    from kvtier.workload import traces

    return cache(lambda name: traces.load(public_path(name)))
