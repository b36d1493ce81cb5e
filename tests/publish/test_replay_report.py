"""The report of a replay: what it draws, in which colours, and what it refuses."""

import re

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish import replay_report, series
from kvtier.publish.palette import LIGHT
from kvtier.publish.replay_report import REPLAYS, Sheet

CAVEAT = "Simulated (provisional): what is assumed <here>."


def rows(policies=("lru", "sieve"), capacities=(2**30, 2**31), **other):
    cells = [
        {
            "policy": policy,
            "capacity_bytes": size,
            "capacity": f"{size >> 30} GiB",
            "hit_percent": 20.0 + 0.5 * rank + 5 * place,
            "optimum_percent": 60.0 + place,
            "regret_points": 40.0 - 0.5 * rank - 4 * place,
            "tier_percents": [12.5],
            "recomputed_percent": 2.5,
            "new_percent": 65.0 - 0.5 * rank - 5 * place,
            "stall_ms_mean": 1234.5 + rank,
        }
        | other
        for place, size in enumerate(capacities)
        for rank, policy in enumerate(policies)
    ]
    return pl.DataFrame(cells, schema=REPLAYS.columns)


def page(tmp_path, frame, **other):
    path = tmp_path / "report.html"
    given = {
        "source": "trace <1>",
        "facts": [("tiers", "one\ntwo")],
        "assumed": [CAVEAT, "and more"],
        "notes": [],
        "sheets": [Sheet("Hits", ["HBM", "Policy", "Rate"], [("1 GiB", "LRU", "20.00")], frozenset({"Rate"}))],
        "rows": frame,
        "tiers": ["cxl"],
    }
    replay_report.write(path, **(given | other))
    return path.read_text(encoding="utf-8")


def charts(text):
    return re.findall(r"<figure.*?</figure>", text, re.DOTALL)


@pytest.mark.parametrize("capacities", [(2**30,), (2**30, 2**31)])
def test_every_chart_has_badge_caveat_and_words(tmp_path, capacities):
    text = page(tmp_path, rows(capacities=capacities))
    found = charts(text)
    assert len(found) == 2 + len(capacities)
    for chart in found:
        assert 'class="badge simulated-provisional"' in chart
        assert "what is assumed &lt;here&gt;." in chart
        assert re.search(r'role="img" aria-label="[^"]*LRU[^"]*SIEVE', chart)
    assert "trace &lt;1&gt;" in text
    assert "<1>" not in text


def test_the_optimum_is_drawn_beside_hits_and_not_beside_stall(tmp_path):
    for capacities in ((2**30,), (2**30, 2**31)):
        hits, *_, stall = charts(page(tmp_path, rows(capacities=capacities)))
        assert re.search(r">optimum:? 6[01]\.", hits)
        assert "optimum" not in stall


def test_numbers_stand_at_the_ends_of_lines_and_dots(tmp_path):
    assert ">SIEVE: 25.5<" in charts(page(tmp_path, rows()))[0]
    assert ">20.50<" in charts(page(tmp_path, rows(capacities=(2**30,))))[0]


def test_shares_start_where_the_last_one_ends():
    stacked = replay_report.stacked(rows(), 1)
    assert stacked["share_0_from"].to_list() == [0.0] * 4
    for index in range(3):
        assert stacked[f"share_{index}_to"].to_list() == stacked[f"share_{index + 1}_from"].to_list()
    assert stacked["share_3_to"].to_list() == [100.0] * 4


def test_sources_of_three_capacities_are_drawn_of_any_number(tmp_path):
    text = page(tmp_path, rows(capacities=[2**power for power in range(30, 39)]))
    assert re.findall(r"come from, HBM (\d+) GiB</h3>", text) == ["1", "16", "256"]


def test_published_policies_keep_their_colours_and_the_rest_is_grey():
    found = replay_report.palette(["fifo", "lru", "ema001", "arc", "mq", "ema005"])
    assert found["lru"] == series.STYLES["lru"].colour
    assert found["ema001"] == series.STYLES["ema001"].colour
    assert len({found[slug] for slug in ("fifo", "lru", "ema001", "arc")}) == 4
    assert found["mq"] == found["ema005"] == LIGHT["muted"]


def test_many_policies_have_room(tmp_path):
    from kvtier.simulate.eviction import NAMES

    text = page(tmp_path, rows(policies=tuple(NAMES)))
    heights = [float(height) for height in re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', text)]
    assert min(heights) > 16 * len(NAMES)


def test_light_and_dark_and_no_network(tmp_path):
    text = page(tmp_path, rows())
    assert "prefers-color-scheme:dark" in text
    assert all(f"--{name}:" in text for name in LIGHT)
    # What is drawn follows the page: no colour of its own.
    assert not re.search(r'(?:fill|stroke)="#', text)
    assert "default-src 'none'" in text
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)|url\((?!data:|#)|@import""", text)


def test_without_rates_or_times_nothing_is_drawn_and_the_tables_stand(tmp_path):
    frame = rows(hit_percent=None, optimum_percent=None, regret_points=None, stall_ms_mean=None)
    text = page(tmp_path, frame)
    assert charts(text) == []
    assert '<td class="right">20.00</td>' in text


def test_rows_that_are_not_as_declared_are_refused(tmp_path):
    with pytest.raises(InputError, match="regret_points"):
        page(tmp_path, rows().drop("regret_points"))
    with pytest.raises(InputError, match="hit_percent"):
        page(tmp_path, rows(hit_percent=float("nan")))
    assert list(tmp_path.iterdir()) == []


def test_one_report_is_byte_for_byte_the_same(tmp_path):
    assert page(tmp_path, rows()) == page(tmp_path, rows())
