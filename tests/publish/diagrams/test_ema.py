"""The score that Diagram 11.1 draws."""

from __future__ import annotations

import pytest

from kvtier.analytic.scoring import ema_scores
from kvtier.publish.diagrams.ema import KNOB, STEPS, TOUCHES, scores
from kvtier.publish.series import alpha_of


@pytest.mark.parametrize("policy", [policy for policy, _ in KNOB])
def test_the_drawn_scores_are_those_of_the_model(policy):
    alpha = float(alpha_of(policy))
    assert scores(alpha) == pytest.approx(ema_scores(alpha, [float(step in TOUCHES) for step in range(STEPS)]))


def test_an_untouched_score_halves_in_its_half_life():
    alpha = 1 - 0.5 ** (1 / 10)
    found = scores(alpha, touches=(0,), steps=21)
    assert found[0] == pytest.approx(alpha)
    assert found[10] == pytest.approx(found[0] / 2)
    assert found[20] == pytest.approx(found[0] / 4)


@pytest.mark.parametrize(("alpha", "leads"), [(0.9, "lately"), (0.001, "often")])
def test_near_one_the_last_touch_decides_and_near_zero_their_number(alpha, leads):
    touched = {"often": (0, 1, 2, 3), "lately": (10,)}
    last = {name: scores(alpha, touches, 12)[-1] for name, touches in touched.items()}
    assert max(last, key=last.get) == leads
