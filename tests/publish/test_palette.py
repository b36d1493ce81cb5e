"""Words are legible in every colour, on light and on dark paper; charts draw in these colours alone, and no two share one."""

import pytest

from kvtier.evidence.labels import Label
from kvtier.publish import series
from kvtier.publish.palette import COLOURS, DARK, LIGHT, badge


def _luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_words_are_legible_on_every_paper(palette):
    for tone in ("ink", "muted", "blue", "ochre", "rose", "green"):
        assert contrast(palette[tone], palette["paper"]) >= 4.5, tone
    for tint in ("grey", "blue-tint", "ochre-tint", "rose-tint", "green-tint"):
        assert contrast(palette["ink"], palette[tint]) >= 7, tint
        assert contrast(palette["muted"], palette[tint]) >= 4.5, tint


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_a_colour_has_one_name(palette):
    assert len(set(palette.values())) == len(COLOURS)


@pytest.mark.parametrize("policy", series.STYLES)
def test_words_in_the_colour_of_a_policy_are_legible(policy):
    assert series.STYLES[policy].colour in LIGHT.values()
    assert contrast(series.STYLES[policy].colour, LIGHT["paper"]) >= 4.5


@pytest.mark.parametrize("label", Label)
def test_words_of_a_badge_are_legible(label):
    look = badge(label)
    assert contrast(LIGHT[look.words], LIGHT[look.fill]) >= 7


def test_a_simulated_number_is_never_taken_for_a_measured_one():
    looks = {label: badge(label) for label in (Label.MEASURED, Label.SIMULATED, Label.ANALYTICAL, Label.TARGET)}
    assert len(set(looks.values())) == len(looks)
