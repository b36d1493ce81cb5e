"""The draws of SPEC §3: their order decides every published record, so the first ones are pinned as integers."""

from dataclasses import replace

import numpy as np
import pytest

from kvtier.workload.synthetic import KINDS, PUBLISHED, Shape, generate
from kvtier.workload.turns import BLOCK_BYTES

CONTEXTS = {1: [397, 424, 595, 733, 88, 165], 2: [653, 248, 140, 274, 355, 637]}

DRAWS = {
    ("zipf", 1): ([191, 191, 191, 62, 124, 179, 101, 62], 258_786, [319, 396, 270, 511, 178, 465], 678_585),
    ("zipf", 2): ([96, 173, 32, 47, 178, 145, 32, 145], 251_821, [479, 484, 39, 114, 216, 429], 677_951),
    ("scan", 1): ([2, 132, 0, 89, 4, 174, 1, 128], 131_465, [322, 409, 221, 348, 474, 281], 670_723),
    ("scan", 2): ([3, 90, 3, 63, 1, 124, 0, 60], 131_838, [259, 84, 420, 490, 317, 377], 672_802),
    ("loop", 1): ([0, 1, 2, 3, 4, 5, 6, 7], 48_550, [274, 345, 108, 238, 456, 448], 688_188),
    ("loop", 2): ([0, 1, 2, 3, 4, 5, 6, 7], 48_550, [399, 243, 402, 177, 155, 326], 679_389),
}
"""First sessions and their sum over all turns, first generated tokens and their sum."""


@pytest.mark.parametrize(("kind", "seed"), DRAWS)
def test_published_draws(kind, seed):
    turns = generate(kind, seed)
    sessions, session_sum, decoded, decoded_sum = DRAWS[kind, seed]
    assert turns.prefix_blocks == 128
    assert (len(turns.context_blocks), len(turns.session), len(turns.decode_tokens)) == (200, 2500, 2500)
    assert turns.context_blocks[:6].tolist() == CONTEXTS[seed]
    assert turns.session[:8].tolist() == sessions
    assert turns.session.sum() == session_sum
    assert turns.decode_tokens[:6].tolist() == decoded
    assert turns.decode_tokens.sum() == decoded_sum


def test_published_footprints():
    """421 GiB is where seed 1 starts; decode growth ends it near 622 GiB (SPEC §9, D12)."""
    turns = generate("zipf", 1)
    first, last = (int(turns.prefix_blocks + blocks.sum()) * BLOCK_BYTES / 2**30 for blocks in (turns.context_blocks, turns.final_blocks))
    assert (round(first), round(last)) == (421, 622)


@pytest.mark.parametrize("kind", KINDS)
def test_revision1_stops_before_the_decode_draw(kind):
    growing, fixed = generate(kind, 3), generate(kind, 3, growing=False)
    assert np.array_equal(growing.context_blocks, fixed.context_blocks)
    assert np.array_equal(growing.session, fixed.session)
    assert not fixed.decode_tokens.any()
    assert growing.decode_tokens.all()
    assert np.array_equal(fixed.final_blocks, fixed.context_blocks)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_stay_in_their_ranges(kind):
    """Bounds that the study states, reached at both ends over a long workload."""
    shape = replace(PUBLISHED, sessions=300, turns=6000, context_tokens=(64, 128), decode_tokens=(32, 40))
    turns = generate(kind, 5, shape)
    assert set(turns.context_blocks.tolist()) == {4, 5, 6, 7}
    assert (turns.decode_tokens.min(), turns.decode_tokens.max()) == (32, 39)
    even, odd = turns.session[::2], turns.session[1::2]
    if kind == "zipf":
        assert (turns.session.min(), turns.session.max()) == (0, 299)
    elif kind == "scan":
        assert set(even.tolist()) == {0, 1, 2, 3, 4}
        assert (odd.min(), odd.max()) == (5, 299)
    else:
        assert turns.session.tolist() == [turn % 40 for turn in range(6000)]


def test_zipf_frequencies_follow_the_exponent():
    """The most visited session gets 1/H of all turns, H = sum of k^-1.1 over 200 ranks, within five deviations."""
    visits = np.bincount(generate("zipf", 1, Shape(turns=100_000)).session, minlength=200)
    share = 1 / sum(rank**-1.1 for rank in range(1, 201))
    assert visits.max() == pytest.approx(100_000 * share, abs=5 * (100_000 * share * (1 - share)) ** 0.5)


def test_seeds_differ_and_repeat():
    assert np.array_equal(generate("zipf", 7).session, generate("zipf", 7).session)
    assert not np.array_equal(generate("zipf", 7).session, generate("zipf", 8).session)


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="workload kind 'uniform': expected one of zipf, scan, loop"):
        generate("uniform", 1)
