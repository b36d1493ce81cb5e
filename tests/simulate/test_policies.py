import math

import pytest

from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, PUBLISHED, S3FIFO, SIEVE, Policy, decay, ema, slug


@pytest.mark.parametrize("alpha", [0, 0.0, 1, 1.0, 1.5, -0.1, math.nan, math.inf, -math.inf])
def test_alpha_outside_the_open_interval_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha .*: expected a number in \(0, 1\)"):
        ema(alpha)


def test_ema_needs_an_alpha():
    with pytest.raises(ValueError, match=r"alpha None: expected a number in \(0, 1\)"):
        Policy("ema")


@pytest.mark.parametrize("name", ["lru", "lfu", "fifo", "sieve", "s3fifo", "min"])
def test_others_take_no_alpha(name):
    with pytest.raises(ValueError, match=rf"alpha 0\.15: expected none for {name}"):
        Policy(name, 0.15)


def test_unknown_name_is_refused():
    with pytest.raises(ValueError, match="policy 'clock': expected one of lru, lfu, ema, fifo, sieve, s3fifo, min"):
        Policy("clock")


@pytest.mark.parametrize("policy", [LRU, FIFO, SIEVE, S3FIFO, MIN])
def test_nothing_persists_where_there_is_no_state(policy):
    with pytest.raises(ValueError, match=f"persistent: expected lfu or ema, not {policy.name}"):
        Policy(policy.name, persistent=True)
    assert policy.title == {"s3fifo": "S3-FIFO"}.get(policy.name, policy.name.upper())


def test_published_names_and_order():
    assert [policy.title for policy in PUBLISHED] == ["LRU", "LFU", "EMA a=0.15", "EMA a=0.01"]
    assert [policy.slug for policy in PUBLISHED] == ["lru", "lfu", "ema015", "ema001"]
    assert ema(0.003).slug == "ema0003"


def test_slug_of_a_row_is_that_of_its_policy():
    rows = [{"policy": policy.name, "alpha": policy.alpha} for policy in (LRU, LFU, ema(0.05))]
    assert [slug(row) for row in rows] == ["lru", "lfu", "ema005"]


def test_decay_is_that_of_the_references():
    weight, left, rate = decay(0.15, 40)
    assert (weight, rate) == (0.15, -math.log(1 - 0.15))
    assert left.tolist() == [(1 - 0.15) ** elapsed for elapsed in range(41)]
    assert decay(0.15, 40)[1] is left


def test_persistence_makes_another_policy_of_the_same_name():
    assert ema(0.15, persistent=True) != ema(0.15)
    assert ema(0.15, persistent=True).slug == ema(0.15).slug
