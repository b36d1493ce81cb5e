"""Folds against numpy, exactly; what is refused; a small run from end to end."""

import numpy as np
import pytest

from kvtier.audit.physical_bound import AboveTheBus
from kvtier.errors import InputError
from kvtier.kit import folding
from kvtier.kit.folding import ELEMENT_BYTES, FOLDS, Folding, Point, Scores, WrongFold, bfloat16_bits, fold
from kvtier.kit.machine import Bus, Machine
from kvtier.measure import kept
from kvtier.workload.turns import BLOCK_TOKENS


def machine(bus_gbps=40.0, cache_bytes=2**23):
    return Machine("a test", "a_test", 1, cache_bytes, 2**34, 2**33, (0,), Bus(bus_gbps, "made up") if bus_gbps else None)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("streams", "blocks"), [(1, 1), (3, 65), (640, 200), (7, 2049)])
def test_equals_numpy(streams, blocks, threads):
    """Chunks that are full and not, of whole and broken lines."""
    if threads > folding.numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core")
    scores = np.random.default_rng(5).integers(0, 256, (streams, blocks * BLOCK_TOKENS)).astype(np.float32)
    for given in (scores, bfloat16_bits(scores)):
        assert fold(given, "max", threads).tolist() == scores.max(axis=0).tolist()
        assert fold(given, "sum", threads).tolist() == scores.sum(axis=0).tolist()
        by_block = scores.reshape(streams, blocks, BLOCK_TOKENS)
        assert fold(given, "max of tokens", threads).tolist() == by_block.max(axis=(0, 2)).tolist()
        assert fold(given, "sum of tokens", threads).tolist() == by_block.sum(axis=(0, 2)).tolist()


def test_a_maximum_of_fractions_is_exact():
    scores = np.random.default_rng(6).random((20, 100), dtype=np.float32)
    assert (fold(scores, "max") == scores.max(axis=0)).all()
    halved = np.float32([[0.5, 0.0], [0.25, 0.0078125]])
    assert fold(bfloat16_bits(halved), "max").tolist() == [0.5, 0.0078125]


def test_the_number_of_threads_is_left_as_it_was():
    before = folding.numba.get_num_threads()
    fold(np.ones((2, 64), dtype=np.float32), "sum", 1)
    assert folding.numba.get_num_threads() == before


def test_a_fold_that_is_wrong_is_caught():
    """The defect planted: the last stream is left out."""
    scores = Scores(8, 32, seed=1)
    with pytest.raises(WrongFold, match=r"sum, float32, 1 threads, block \d+: found \d+, expected \d+, as numpy computes"):
        scores.time(Point("sum", "float32", 1), lambda streams, how, threads: fold(streams[:-1], how, threads))


def test_refusals():
    scores = np.ones((2, 24), dtype=np.float32)
    with pytest.raises(InputError, match="fold: found 'mean', expected one of max, sum"):
        fold(scores, "mean")
    with pytest.raises(InputError, match="tokens: found 24, expected a multiple of 16"):
        fold(scores, "max of tokens")
    with pytest.raises(InputError, match="threads: found 0"):
        fold(scores, "max", 0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"streams": 0}, "streams × blocks: found 0 × 8192"),
        ({"streams": 4113}, "streams: found 4113, expected at most 4,112"),
        ({"repetitions": 2}, "repetitions: found 2"),
        ({"threads": (1, 3)}, "threads: found 3, expected 1 to 1"),
    ],
)
def test_settings_that_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        Folding(**settings).plan(machine())


def test_plan_counts_the_scores():
    """640 × 8,192 scores of 4 B are 20 MiB, of 2 B 10 MiB; those of tokens are 16 times as many."""
    (step,) = Folding().plan(machine())
    assert step.memory_bytes == 17 * 30 * 2**20
    assert 10 < step.seconds < 100


def test_run(monkeypatch):
    # Tiny folds are short against the clock, and a shared machine may drift: both guards have tests of their own.
    monkeypatch.setattr(folding, "tick_s", lambda: 1e-12)
    monkeypatch.setattr(folding, "steady", lambda times, source: times)
    shares = []
    outcome = Folding(16, 128, (1,), 3).run(machine(), lambda says, share: shares.append(share))
    rows = kept.FOLDING.check(outcome.tables["folding"])
    assert rows.height == len(FOLDS) * len(ELEMENT_BYTES) * 3
    assert set(rows["fold"]) == set(FOLDS)
    assert set(rows["dtype"]) == set(ELEMENT_BYTES)
    assert rows["seconds"].min() > 0
    assert outcome.about["read_bytes"]["max of tokens, bfloat16"] == 16 * 128 * BLOCK_TOKENS * 2
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert len(outcome.checked) == 2


def test_scores_that_no_cache_holds_are_held_against_the_bus(monkeypatch):
    monkeypatch.setattr(folding, "tick_s", lambda: 1e-12)
    monkeypatch.setattr(folding, "steady", lambda times, source: times)
    with pytest.raises(AboveTheBus, match="max, float32, 1 threads, median"):
        Folding(16, 128, (1,), 3).run(machine(bus_gbps=1e-6, cache_bytes=1024), lambda says, share: None)
    outcome = Folding(16, 128, (1,), 3).run(machine(bus_gbps=None, cache_bytes=1024), lambda says, share: None)
    assert outcome.about["left_out"]["physical bound"] == "the bandwidth of the memory bus is not known"
