import pytest

from kvtier.errors import InputError
from kvtier.publish import dots, render
from kvtier.publish.charts import what_survives
from kvtier.publish.ledger import Ledger


def draw(effects):
    return what_survives.draw(Ledger("numbers.json", effects))


def test_tells_the_story_in_order_with_the_ledgers_numbers(effects):
    figure = draw(effects)
    assert figure.drawn["effect"].unique(maintain_order=True).to_list() == [
        "Kept state, LFU",
        "Kept state, EMA 0.01",
        "Kept state, EMA 0.15",
        "LFU over LRU",
        "Best α over LRU",
        "EMA 0.15 over LRU, 8 GiB",
        "EMA 0.15 over LRU, 128 GiB",
    ]
    assert "LFU over LRU: −22.25 points, then +6.90 [6.80, 7.00]" in figure.alt
    assert "Best α: 0.05 in Revision 2, 0.01 in Revision 3" in figure.caption
    assert "95 % intervals of the mean over 30 seeds" in figure.caption


def test_every_value_is_written_and_zero_is_marked(effects):
    figure = draw(effects)
    spec = render.spec(figure)
    picture = render.svg(figure, spec)
    for words in ("+34.15<", "+1.75 [1.65, 1.85]<", "−0.21<", "−22.25<", "+6.90 [6.80, 7.00]<", "+19.11<", "+7.15 [6.80, 7.47]<"):
        assert f">{words}" in picture
    assert [{"points": 0}] in spec["datasets"].values()


def test_only_revision_3_has_intervals(effects):
    rows = {row["key"]: row for row in draw(effects).drawn.iter_rows(named=True)}
    assert rows["sim.rev2.e5.gain.lfu.hit"]["lower"] is None
    assert (rows["sim.rev2.e1.32.lfu.margin"]["lower"], rows["sim.rev2.e1.32.lfu.margin"]["upper"]) == (-23.25, -21.25)
    assert rows["sim.rev3.e5.gain.lfu.hit"]["lower"] == pytest.approx(1.65)


def test_axis_holds_all_that_is_drawn_in_whole_tens(effects):
    assert dots.domain(draw(effects).drawn, "points") == (-30.0, 40.0)


def test_a_missing_effect_is_refused(effects):
    del effects["sim.rev3.e5.gain.lfu.hit"]
    with pytest.raises(InputError, match=r"sim\.rev3\.e5\.gain\.lfu\.hit"):
        draw(effects)


def test_an_effect_that_is_no_difference_in_points_is_refused(effects):
    effects["sim.rev3.e5.gain.lfu.hit"]["unit"] = "%"
    with pytest.raises(InputError, match="a difference in points"):
        draw(effects)
