import json
from pathlib import Path

import pytest

from kvtier.certification import claims_table
from kvtier.errors import InputError
from kvtier.evidence import retractions
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.files import read_json
from kvtier.publish.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "data/published/headline_claims.yaml"
TIMES = ROOT / "data/bench/rule_times.csv"
RULES = {
    "simulate": {"inputs": ["data/x"], "outputs": ["results/x"]},
    "measure": {"inputs": ["results/x"], "outputs": ["results/y"]},
}


def record(value, display, label, rule, **more):
    return {
        "value": value,
        "display": display,
        "unit": "points",
        "label": label,
        "status": "stands",
        "definition": "x / y",
        "rule": rule,
        "params": {},
        "uncertainty": {},
        **more,
    }


def ledger(**changed):
    records = {
        "sim.gain": record(
            2.5,
            "2.50",
            "Simulated (provisional)",
            "simulate",
            uncertainty={"interval_low": 2.0, "interval_high": 3.0, "interval_level": 0.95},
        ),
        "measured.lead": record(-1.0, "-1.0", "Measured", "measure"),
    }
    for key, fields in changed.items():
        records[key.replace("__", ".")].update(fields)
    return Ledger("numbers.json", records)


def headlines(tmp_path, text=None):
    path = tmp_path / "headline_claims.yaml"
    path.write_text(
        text
        or """
claims:
  - {claim: 'Revision 3: there is a gain.', number: sim.gain, holds: 'low("sim.gain") > 0', shown: figures/a.svg}
  - {claim: It is behind., number: measured.lead, holds: 'num("measured.lead") < 0', shown: CLAIMS.md#here}
"""
    )
    return claims_table.read(path)


def table(tmp_path, numbers=None, text=None, published=("figures/a.svg", "CLAIMS.md"), times=None, retracted=()):
    times = {"simulate": 61.0, "measure": 10.0} if times is None else times
    return claims_table.table("claims", headlines(tmp_path, text), numbers or ledger(), retracted, published, RULES, times, "times.csv")


def test_a_row_has_value_interval_class_place_rule_and_minutes_of_all_that_is_needed(tmp_path):
    rows = table(tmp_path).splitlines()
    gain = (
        "| Revision 3: there is a gain. | +2.50 [2.00, 3.00] points | Simulated (provisional) | `sim.gain` "
        "| [figures/a.svg](figures/a.svg) | `simulate` | 2 |"
    )
    lead = "| It is behind. | −1.0 points | Measured | `measured.lead` | [CLAIMS.md](CLAIMS.md#here) | `measure` | 2 |"
    assert rows[-2:] == [gain, lead]


def test_simulated_values_stand_under_their_caveat(tmp_path):
    assert table(tmp_path).startswith(f"> {SIMULATION_CAVEAT}")


def test_a_claim_that_no_longer_holds_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"claim 2\.holds: found false"):
        table(tmp_path, ledger(measured__lead={"value": 1.0, "display": "1.0"}))


def test_a_number_that_does_not_stand_is_refused(tmp_path):
    with pytest.raises(InputError, match="which is retracted"):
        table(tmp_path, ledger(measured__lead={"status": "retracted"}))


def test_an_unknown_number_is_refused(tmp_path):
    text = "claims:\n  - {claim: It is., number: sim.gone, holds: 'num(\"sim.gone\") > 0', shown: CLAIMS.md}\n"
    with pytest.raises(InputError, match=r"sim\.gone: found no such key"):
        table(tmp_path, text=text)


def test_a_place_that_is_not_published_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"claim 1\.shown: found figures/a\.svg"):
        table(tmp_path, published=("CLAIMS.md",))


def test_a_rule_without_a_time_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"times\.csv: column rule: found no row measure"):
        table(tmp_path, times={"simulate": 61.0})


def test_a_retracted_value_is_refused(tmp_path):
    retracted = [entry for entry in retractions.read(ROOT / "data/published/retractions.yaml") if entry.id == "hit_rate"]
    assert retracted
    numbers = ledger(measured__lead={"value": -97.0, "display": "97", "unit": "%"})
    text = "claims:\n  - {claim: HBM hit rate., number: measured.lead, holds: 'num(\"measured.lead\") < 0', shown: CLAIMS.md}\n"
    with pytest.raises(InputError, match="a retracted value"):
        table(tmp_path, numbers, text, retracted=retracted)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{claim: It gains 2.5 points., number: sim.gain, holds: 'num(\"sim.gain\") > 0', shown: a}", "'2.5', typed"),
        ("{claim: It gains., number: sim.gain, holds: 'num(\"other\") > 0', shown: a}", "a condition over sim.gain"),
        ("{claim: It gains., number: sim.gain, holds: 'true and', shown: a}", "a condition over sim.gain"),
        ("{claim: It gains., number: sim.gain, shown: a}", "claim 1.holds: found nothing"),
        ("{claim: It gains., number: sim.gain, holds: 'num(\"sim.gain\") > 0', shown: a, colour: red}", "an unknown field"),
        ("just words", "expected named fields"),
    ],
)
def test_a_bad_claim_is_told_in_one_line(tmp_path, entry, said):
    with pytest.raises(InputError) as error:
        headlines(tmp_path, f"claims:\n  - {entry}\n")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule,seconds\nsimulate,fast\n", "row 1"),
        ("rule,seconds\nsimulate,0\n", "column seconds, row 1: found 0"),
        ("rule,minutes\nsimulate,1\n", "columns rule and seconds"),
    ],
)
def test_bad_times_are_told_in_one_line(tmp_path, text, said):
    path = tmp_path / "rule_times.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        claims_table.read_times(path)


def test_the_readme_keeps_all_but_what_is_between_the_marks():
    readme = f"before {claims_table.BEGIN} old \\1 {claims_table.END} after"
    assert claims_table.inserted(readme, "new \\1", "README.md") == f"before {claims_table.BEGIN}\n\nnew \\1\n\n{claims_table.END} after"


@pytest.mark.parametrize(
    "readme", ["no marks", f"{claims_table.END} {claims_table.BEGIN}", f"{claims_table.BEGIN} " * 2 + claims_table.END]
)
def test_a_readme_without_its_marks_is_refused(readme):
    with pytest.raises(InputError, match="marks of the claims table"):
        claims_table.inserted(readme, "new", "README.md")


@pytest.mark.xdist_group("certification")
def test_the_table_in_the_readme_is_what_the_ledger_makes(rules):
    def readme(records):
        made = claims_table.table(
            SOURCE,
            claims_table.read(SOURCE),
            Ledger("numbers.json", records),
            retractions.read(ROOT / "data/published/retractions.yaml"),
            rules["published"],
            rules["rules"],
            claims_table.read_times(TIMES),
            TIMES,
        )
        return claims_table.inserted((ROOT / "README.md").read_text(), made, "README.md")

    records = read_json(ROOT / "data/numbers.json")
    assert readme(records) == (ROOT / "README.md").read_text()
    # And the drift: a number moves.
    moved = json.loads(json.dumps(records))
    moved["sim.rev2.e1.32.ema015.hit"]["display"] = "99.99"
    assert readme(moved) != (ROOT / "README.md").read_text()
