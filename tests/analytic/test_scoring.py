import pytest

from kvtier.analytic import scoring

WEIGHTS, CUTS = (0.25, 0.55, 0.20), (0.3, 0.6)


def test_published_half_life():
    assert round(scoring.half_life_steps(0.05), 1) == 13.5
    assert round(scoring.half_life_s(0.05, 10), 2) == 1.35
    assert scoring.half_life_steps(0.5) == 1


def test_half_life_halves():
    assert 0.95 ** scoring.half_life_steps(0.05) == pytest.approx(0.5)


def test_published_example_uses_the_withdrawn_alpha():
    hot = scoring.ema_scores(0.2, [0.04, 0.03, 0.05])
    assert [round(score, 3) for score in hot] == [0.008, 0.012, 0.020]
    assert [round(score, 4) for score in scoring.ema_scores(0.2, [0.001, 0.0, 0.002])] == [0.0002, 0.0002, 0.0005]
    assert round(scoring.ema_scores(0.05, [0.04, 0.03, 0.05])[-1], 3) == 0.006


def test_constant_attention_is_the_fixed_point():
    assert scoring.ema_update(0.05, 0.3, 0.3) == pytest.approx(0.3)
    assert scoring.ema_scores(0.05, [0.04] * 1000)[-1] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("signals", "priority", "tier"),
    [((0, 0, 0), 0, "T2"), ((1, 0, 0), 0.25, "T2"), ((0, 1, 0), 0.55, "T1"), ((0, 1, 1), 0.75, "T0"), ((1, 1, 1), 1, "T0")],
)
def test_priority_and_tier(signals, priority, tier):
    assert scoring.priority(*signals, WEIGHTS) == pytest.approx(priority)
    assert scoring.tier_of(scoring.priority(*signals, WEIGHTS), CUTS) == tier


def test_a_priority_on_a_cut_goes_to_the_nearer_tier():
    assert [scoring.tier_of(value, CUTS) for value in (0.299, 0.3, 0.599, 0.6)] == ["T2", "T1", "T1", "T0"]


def test_prefetch_scores():
    assert scoring.prefetch_priority(0, 100) == 1
    assert scoring.prefetch_priority(100, 100) == 0.5
    assert scoring.prefetch_blend(1, 0, (0.6, 0.4)) == 0.6
    assert scoring.prefetch_blend(0.5, 0.5, (0.6, 0.4)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: scoring.ema_update(0, 0.1, 0.1),
        lambda: scoring.ema_update(1.1, 0.1, 0.1),
        lambda: scoring.half_life_steps(0),
        lambda: scoring.half_life_steps(1),
        lambda: scoring.half_life_s(0.05, 0),
        lambda: scoring.priority(1.1, 0, 0, WEIGHTS),
        lambda: scoring.priority(1, 0, 0, (0.6, 0.4)),
        lambda: scoring.prefetch_blend(-0.1, 0, (0.6, 0.4)),
        lambda: scoring.prefetch_priority(-1, 100),
        lambda: scoring.prefetch_priority(1, 0),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"must|need"):
        call()
