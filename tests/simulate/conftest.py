"""Random workloads small enough to replay by hand, and one large enough to keep its counts."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, S3FIFO, SIEVE, Policy, ema
from kvtier.workload import synthetic
from kvtier.workload.turns import Turns


def pytest_make_parametrize_id(val):
    """Name policies in the names of tests."""
    return val.slug + "-persistent" * val.persistent if isinstance(val, Policy) else None


@st.composite
def _workloads(draw, *, growing=True, most_turns=40, most_sessions=6):
    contexts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=most_sessions))
    session = draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=most_turns))
    decode = [draw(st.integers(0, 60)) if growing else 0 for _ in session]
    return Turns(draw(st.integers(0, 4)), *(np.array(values, dtype=np.int64) for values in (contexts, session, decode)))


@st.composite
def _policies(draw, *, alphas=(0.999, 0.5, 0.15, 0.01, 1e-6, 1e-13), persistence=True):
    policy = draw(st.sampled_from((LRU, LFU, *map(ema, alphas))))
    persistent = persistence and policy != LRU and draw(st.booleans())
    return Policy(policy.name, policy.alpha, persistent)


@pytest.fixture(scope="session")
def workloads():
    """Strategy of workloads; `growing`, `most_turns`, `most_sessions` narrow it."""
    return _workloads


@pytest.fixture(scope="session")
def policies():
    """Strategy of policies, persistent ones included."""
    return _policies


@pytest.fixture(scope="session")
def capacities():
    """Strategy of (HBM, CXL) in blocks: none, one, some, more than everything."""

    def of(turns):
        whole = int(turns.first_block[-1])
        return st.tuples(st.integers(0, whole + 1), st.integers(0, whole + 1))

    return of


@pytest.fixture(scope="session")
def make_turns():
    """Turns from plain lists, without growth unless tokens are given."""

    def make(sessions, contexts, prefix=0, decode=None):
        arrays = (np.array(values, dtype=np.int64) for values in (contexts, sessions, decode or [0] * len(sessions)))
        return Turns(prefix, *arrays)

    return make


@dataclass(frozen=True)
class Golden:
    """A workload, a capacity, and the hits of each policy that is asked request by request."""

    turns: Turns
    hbm_blocks: int
    requests: int
    hits: dict[Policy, int]


@pytest.fixture(scope="session")
def golden_requests():
    """Zipf, seed 1, contexts that stop growing at 768 blocks, 32 GiB; FIFO and S3-FIFO as libCacheSim 0.3.5 counts them, ids alike."""
    hits = {LRU: 1_064_981, FIFO: 942_316, LFU: 1_307_198, SIEVE: 1_307_198, S3FIFO: 1_264_534, MIN: 1_434_176}
    golden = Golden(synthetic.generate("zipf", 1).capped(768), capacity_blocks(32), 1_955_025, hits)
    assert len(golden.turns.requests) == golden.requests
    return golden
