import dataclasses
import itertools

import altair as alt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_CAVEAT, Label
from kvtier.publish import render, theme


def figure(quotes, limits="one machine"):
    return theme.Figure(
        "f", "A title", "Revision 2", limits, "A caption.", "Words.", quotes, pl.DataFrame({"x": [1]}), [alt.Chart().mark_point()]
    )


def texts(spec: dict) -> list[str]:
    return [layer["encoding"]["text"]["value"] for layer in spec["layer"] if "value" in layer.get("encoding", {}).get("text", {})]


def test_the_badge_is_the_label_of_the_ledger(ledger):
    for key, quote in ((key, ledger[key]) for key in ledger):
        assert figure([quote]).badge == f"{quote.label} · Revision 2", key


def test_one_weak_number_makes_the_whole_figure_weak(ledger):
    drawn = figure([ledger["measured.gb10.stream.copy_gbps"], ledger["analytic.hbm.capacity_gb"]])
    assert drawn.label is Label.VENDOR
    assert "Vendor specification · Revision 2" in texts(render.spec(drawn))


@pytest.mark.parametrize("key", ["analytic.hbm.capacity_gb", "measured.gb10.stream.copy_gbps", None])
def test_a_simulated_figure_cannot_be_without_the_caveat(ledger, key):
    quotes = [ledger["sim.rev2.e2.lru.hit"], *([ledger[key]] if key else [])]
    drawn = figure(quotes, limits="nothing to see")
    assert drawn.caveat == theme.CAVEAT
    assert theme.CAVEAT in texts(render.spec(drawn))
    assert "nothing to see" not in str(render.spec(drawn))


def test_the_short_caveat_says_what_the_standing_one_says():
    for words in ("rovisional", "synthetic workload", "no hardware validation", "costs assumed"):
        assert words in theme.CAVEAT
        assert words in SIMULATION_CAVEAT


def test_panels_share_one_frame(ledger):
    drawn = dataclasses.replace(
        figure([ledger["sim.rev2.e2.lru.hit"]]), panels=[[alt.Chart().mark_point()]] * 2, columns=2, gaps=(40, 30), height=100
    )
    spec = render.spec(drawn)
    assert drawn.depth == 240
    assert len(spec["concat"]) == 3
    assert drawn.badge in texts(spec["concat"][0])
    assert not texts(spec["concat"][1])
    render.svg(drawn, spec)


def test_a_figure_needs_numbers_and_limits(ledger):
    with pytest.raises(InputError, match="the numbers drawn"):
        figure([])
    with pytest.raises(InputError, match="limits"):
        figure([ledger["analytic.hbm.capacity_gb"]], limits="")


@given(st.lists(st.floats(0, 340), min_size=1, max_size=8))
def test_labels_are_apart_in_order_and_inside(positions):
    placed = theme.spread(positions, 15, 0, 340)
    by_position = [place for _, place in sorted(zip(positions, placed, strict=True), key=lambda pair: pair)]
    assert all(above + 15 <= below + 1e-9 for above, below in itertools.pairwise(sorted(placed)))
    assert by_position == sorted(by_position)
    assert min(placed) >= 0
    assert max(placed) <= 340 + 1e-9


def test_labels_with_room_stay_where_they_are():
    assert theme.spread([10, 100, 50], 15, 0, 340) == [10, 100, 50]
    assert theme.spread([100, 100], 15, 0, 340) == [92.5, 107.5]
