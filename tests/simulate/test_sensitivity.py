"""One size of the workload at a time, and the given workload in each factor."""

from collections import Counter
from dataclasses import asdict

import polars as pl

from kvtier.simulate import revision3, sensitivity
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LRU
from kvtier.workload import synthetic
from kvtier.workload.synthetic import PUBLISHED, Shape


def test_each_level_changes_one_size():
    levels = sensitivity.levels(PUBLISHED)
    plain = asdict(PUBLISHED)
    changed = [[name for name, value in asdict(level.shape).items() if value != plain[name]] for level in levels]
    assert Counter(map(len, changed)) == {0: 5, 1: 10}
    sizes = {"exponent": "zipf_exponent", "contexts": "context_tokens", "decode": "decode_tokens", "prefix": "prefix_tokens"}
    assert all(names in ([], [sizes.get(level.factor, level.factor)]) for names, level in zip(changed, levels, strict=True))
    assert Counter(level.factor for level in levels) == dict.fromkeys(("exponent", "sessions", "contexts", "decode", "prefix"), 3)
    assert len({(level.factor, level.level) for level in levels}) == 15


def test_words_say_what_the_shape_has():
    words = {(level.factor, level.level): level.words for level in sensitivity.levels(PUBLISHED)}
    assert words["exponent", "08"] == "Zipf exponent 0.8"
    assert words["sessions", "400"] == "400 sessions"
    assert words["contexts", "published"] == "contexts from 1,024 to 12,287 tokens"
    assert words["decode", "long"] == "64 to 1,023 tokens generated a turn"
    assert words["prefix", "0"] == "shared prefix of 0 tokens"


def test_narrow_contexts_keep_the_mean_and_decode_is_quartered_and_doubled():
    shapes = {(level.factor, level.level): level.shape for level in sensitivity.levels(PUBLISHED)}

    def mean(tokens):
        return (tokens[0] + tokens[1] - 1) / 2

    assert mean(shapes["contexts", "narrow"].context_tokens) == mean(PUBLISHED.context_tokens) == 6655.5
    short, published, long = (mean(shapes["decode", level].decode_tokens) for level in ("short", "published", "long"))
    assert (short / published, long / published) == (67.5 / 271.5, 543.5 / 271.5)


def test_the_given_workload_has_the_same_rows_in_each_factor():
    middle = Shape(sessions=40, turns=80)
    runs = sensitivity.replay(middle, [1, 2], 40)
    assert runs.height == 15 * 3 * 2
    levels = {level.factor: level.level for level in sensitivity.levels(middle) if level.shape == middle}
    assert levels == {"exponent": "11", "sessions": "40", "contexts": "published", "decode": "published", "prefix": "2048"}
    parts = [runs.filter(factor=factor, level=level).drop("factor", "level", "workload") for factor, level in levels.items()]
    assert all(part.equals(parts[0]) for part in parts)
    assert set(runs["policy"]) == {"lru", "ema001_persistent", "min"}
    turns = synthetic.generate("zipf", 2, Shape(sessions=80, turns=80))
    row = runs.row(by_predicate=(pl.col("level") == "80") & (pl.col("seed") == 2) & (pl.col("policy") == "lru"), named=True)
    assert row["hits"] == revision3.replay(turns, LRU, capacity_blocks(32)).hits[40:].sum()
