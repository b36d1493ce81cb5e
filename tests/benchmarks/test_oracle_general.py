"""The trace handed to libCacheSim: the same requests, and a next-access column that brute force finds too."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.workload import synthetic
from kvtier.workload.turns import Turns

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def oracle_general():
    spec = importlib.util.spec_from_file_location("oracle_general", BENCHMARKS / "oracle_general.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def next_access(requests):
    """Index of each request's successor, found by looking."""
    following = [np.flatnonzero(requests[at + 1 :] == block) for at, block in enumerate(requests)]
    return [at + 1 + int(found[0]) if len(found) else -1 for at, found in enumerate(following)]


@st.composite
def small_turns(draw):
    contexts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    sessions = draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=12))
    tokens = draw(st.lists(st.integers(0, 40), min_size=len(sessions), max_size=len(sessions)))
    # A turn that asks for nothing at all cannot end a trace: an empty file has no records to map.
    return Turns(draw(st.integers(1, 3)), np.array(contexts), np.array(sessions), np.array(tokens))


@settings(max_examples=60, deadline=None)
@given(turns=small_turns())
def test_holds_the_requests_and_where_each_block_comes_next(oracle_general, tmp_path_factory, turns):
    path = tmp_path_factory.mktemp("trace") / "trace.bin"
    count = oracle_general.write(path, turns)
    trace = np.fromfile(path, oracle_general.RECORD)
    assert path.stat().st_size == 24 * count
    assert trace["obj_id"].tolist() == turns.requests.tolist()
    assert trace["time"].tolist() == list(range(count))
    assert set(trace["size"].tolist()) == {1}
    assert trace["next_access_vtime"].tolist() == next_access(turns.requests)


def test_a_workload_of_the_study(oracle_general, tmp_path):
    turns = synthetic.generate("zipf", 1, synthetic.Shape(sessions=6, turns=20)).capped(300)
    oracle_general.write(tmp_path / "trace.bin", turns)
    trace = np.fromfile(tmp_path / "trace.bin", oracle_general.RECORD)
    assert trace["obj_id"].tolist() == turns.requests.tolist()
    assert trace["next_access_vtime"].tolist() == next_access(turns.requests)
