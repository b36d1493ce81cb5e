"""Random workloads small enough to replay by hand, and the published settings."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from kvtier.simulate.policies import LFU, LRU, ema
from kvtier.workload.turns import Turns

ROOT = Path(__file__).resolve().parents[2]


@st.composite
def _workloads(draw, *, growing=True, most_turns=40, most_sessions=6):
    contexts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=most_sessions))
    session = draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=most_turns))
    decode = [draw(st.integers(0, 60)) if growing else 0 for _ in session]
    return Turns(draw(st.integers(0, 4)), *(np.array(values, dtype=np.int64) for values in (contexts, session, decode)))


@st.composite
def _policies(draw, *, alphas=(0.999, 0.5, 0.15, 0.01, 1e-6, 1e-13), persistence=True):
    policy = draw(st.sampled_from((LRU, LFU, *map(ema, alphas))))
    persistent = persistence and draw(st.booleans())
    return type(policy)(policy.name, policy.alpha, persistent)


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
