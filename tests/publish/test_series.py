import pytest

from kvtier.publish import series


def test_slugs_and_titles_name_the_same_policy():
    assert [series.slug(*policy) for policy in (("lru", None), ("ema", 0.15), ("ema", 0.003))] == ["lru", "ema015", "ema0003"]
    assert [series.title(slug) for slug in ("lru", "ema015", "ema0003", "ema05")] == ["LRU", "EMA 0.15", "EMA 0.003", "EMA 0.5"]


def test_each_policy_differs_in_colour_dash_or_marker_and_not_by_colour_alone():
    styles = list(series.STYLES.values())
    assert len({style.colour for style in styles}) == len(styles) <= 5
    assert len({style.shape for style in styles}) == len(styles)


def test_an_unknown_policy_has_no_style():
    with pytest.raises(KeyError):
        series.style("fifo")


@pytest.mark.parametrize(
    "told",
    [
        ["lru", "lfu", "ema05", "ema015", "ema001", "ema0001"],
        ["zipf", "scan", "loop"],
        ["8", "16", "128"],
        ["4k", "32k", "512k", "1m"],
        ["1x4096", "1x16384", "4x4096", "16x4096"],
        ["mfu25", "mfu50"],
        ["32gbps", "121gbps"],
    ],
    ids=lambda told: told[0],
)
def test_swept_values_are_told_in_reading_order(told):
    assert sorted(sorted(told), key=series.order) == told
