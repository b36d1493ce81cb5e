"""Fates of results by condition, and what a list may not hold."""

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import survival
from kvtier.evidence.arithmetic import Values, evaluate
from kvtier.evidence.survival import Fate

ROOT = Path(__file__).resolve().parents[2]
VALUES = Values({"old.gain": 34.0, "new.gain": 1.7}, {}, {"new.gain": (1.6, 1.9)})

ENTRY = """
results:
  - id: S1
    result: Kept counts are worth much.
    was: '{{ num("old.gain") }}'
    now: '{{ plus_minus("new.gain") }}'
    survives: 'num("new.gain") > 0.5 * num("old.gain")'
    weaker: 'low("new.gain") > 0'
"""


@pytest.fixture
def listed(tmp_path):
    def write(text):
        path = tmp_path / "survival.yaml"
        path.write_text(text)
        return path

    return write


def fate(path, values=VALUES):
    return survival.judge(path, survival.read(path), values)["S1"]


@pytest.mark.parametrize(
    ("value", "interval", "expected"),
    [(20.0, (19.0, 21.0), Fate.SURVIVES), (1.7, (1.6, 1.9), Fate.WEAKER), (1.7, (-0.1, 1.9), Fate.GONE), (-2.0, (-3.0, -1.0), Fate.GONE)],
)
def test_fate_follows_from_value_and_interval(value, interval, expected, listed):
    values = Values({"old.gain": 34.0, "new.gain": value}, {}, {"new.gain": interval})
    assert fate(listed(ENTRY), values) is expected


def test_without_a_weaker_condition_there_are_two_fates(listed):
    assert fate(listed("\n".join(line for line in ENTRY.splitlines() if "weaker" not in line))) is Fate.GONE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("result: Kept", "reslt: Kept"), r"S1\.result: found nothing, expected the field"),
        (("    weaker:", "    smaller:"), r"S1\.smaller: found an unknown field"),
        (("worth much", "worth 34 points"), r"S1\.result: found '34', typed"),
        (("plus_minus", "guess"), r"S1\.now: found guess"),
        (('num("old.gain") }}', 'num("no.such") }}'), r"no such key"),
        (('low("new.gain")', 'low("old.gain")'), r"interval of 'old.gain'.*none"),
        (("> 0.5 *", "+ 0.5 *"), "expected true or false"),
        (("results:", "outcomes:"), "expected the field results"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)
def test_a_list_that_is_wrong_is_refused(change, message, listed):
    with pytest.raises(InputError, match=message):
        fate(listed(ENTRY.replace(*change, 1)), VALUES)


def test_an_id_twice_is_refused(listed):
    with pytest.raises(InputError, match="the id twice"):
        survival.read(listed(ENTRY + ENTRY.split("results:\n")[1]))


def test_ends_of_intervals_in_expressions():
    assert evaluate('high("new.gain") - low("new.gain")', VALUES, "here") == pytest.approx(0.3)


def test_the_published_list_reads_and_has_an_entry_for_each_finding_of_the_study():
    results = survival.read(ROOT / "data/published/survival.yaml")
    assert [result.id for result in results] == [f"S{number}" for number in range(1, len(results) + 1)]
    assert all("rev2" in result.was and "rev3" in result.now and "rev3" in result.survives for result in results)
