"""Strips of the kinds of heads: inside their windows, to the scale of the blocks."""

from itertools import pairwise

import pytest

from kvtier.publish.diagrams.heads import BLOCKS, KINDS, strip


def blocks_of(kind):
    return [block for block, value in enumerate(strip(kind, BLOCKS, 16, 200, 100)) if value]


@pytest.mark.parametrize("kind", KINDS)
def test_strongest_block_is_as_high_as_the_strip(kind):
    values = strip(kind, BLOCKS, 16, 200, 100)
    assert len(values) == BLOCKS
    assert max(values) == 1
    assert min(values) >= 0


def test_windows_end_where_they_are_stated_to():
    assert blocks_of("recency") == list(range(BLOCKS - 13, BLOCKS)), "200 tokens back, in blocks of 16"
    assert blocks_of("anchor") == list(range(7)), "100 positions reach into the seventh block"


def test_retrieval_follows_no_order():
    places = blocks_of("retrieval")
    assert len(places) == 5
    assert len({after - before for before, after in pairwise(places)}) > 1
