"""Folders where the tier file costs no disk, and stores in them."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from kvtier.blocks.store import open_store
from kvtier.workload.turns import Turns


@pytest.fixture
def fast_folder(tmp_path):
    """A folder in memory where there is one: an fsync of a disk costs milliseconds."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="kvtier-test-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def opened(fast_folder):
    """Open stores with payloads of 64 bytes, each in a folder of its own unless one is named; all are closed afterwards."""
    stores = []

    def open_(hbm, cxl, nvme, folder=None, payload_bytes=64, **options):
        where = fast_folder / (folder or f"store{len(stores)}")
        stores.append(open_store(where, payload_bytes, hbm, cxl, nvme, **options))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@st.composite
def _workloads(draw):
    contexts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    session = draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=30))
    decode = [draw(st.integers(0, 60)) for _ in session]
    return Turns(draw(st.integers(0, 4)), *(np.array(values, dtype=np.int64) for values in (contexts, session, decode)))


@pytest.fixture(scope="session")
def workloads():
    """Strategy of workloads small enough to replay many of."""
    return _workloads
